"""A training that kills its own process at a chosen line of the code that saves."""

import os
import signal
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from jaxrig.checkpoint import CheckpointManager
from jaxrig.learn.train import JsonLines, train

UPDATES = 12
WATCHED = ("learn/train.py", "checkpoint.py", "atomic.py", "file_format.py")


def run(folder: Path, save_every: int, save_seconds: float, kill_at: int | None):
    """Train in a folder; write how many lines of the watched files ran."""
    count = 0

    def watch(frame, event, _):
        nonlocal count
        if event == "line":
            count += 1
            if count == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
        file = frame.f_code.co_filename
        ours = "jaxrig/" in file and any(name in file for name in WATCHED)
        return watch if ours or event != "call" else None

    sys.settrace(watch)
    try:
        train(
            jax.jit(_update),
            _start(),
            UPDATES,
            manager=CheckpointManager(folder / "checkpoints", keep=2),
            sinks=(JsonLines(folder / "metrics.jsonl"),),
            save_every=save_every,
            save_seconds=save_seconds,
        )
    finally:
        sys.settrace(None)
    (folder / "lines.txt").write_text(str(count))


def restore(folder: Path) -> np.ndarray:
    """Return the numbers of the newest checkpoint."""
    restored = CheckpointManager(folder / "checkpoints").restore(_start())
    assert restored.step == UPDATES
    return np.asarray(restored.tree[1])


def _start():
    return jax.random.key(3), jnp.zeros(5)


def _update(state):
    key, numbers = state
    key, noise = jax.random.split(key)
    numbers = jnp.sin(numbers + jax.random.normal(noise, numbers.shape))
    return (key, numbers), {"loss": jnp.sum(numbers**2)}
