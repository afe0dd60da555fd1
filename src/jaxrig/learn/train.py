"""The loop around a compiled update: progress, metrics, checkpoints and resuming."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import equinox as eqx
import jax
from jaxtyping import PyTree

from jaxrig.atomic import atomic_write
from jaxrig.checkpoint import CheckpointManager
from jaxrig.progress import Meter

S = TypeVar("S", bound=PyTree)
Metrics = dict[str, float]
Sink = Callable[[int, Metrics], None]


class JsonLines:
    """Metrics as one JSON object a line; a resumed run drops what it will redo."""

    def __init__(self, path: Path | str):
        self._path = Path(path)
        self._path.parent.mkdir(parents=True, exist_ok=True)

    def rewind(self, step: int) -> None:
        """Keep the lines up to this step."""
        if self._path.exists():
            lines = self._path.read_text().splitlines(keepends=True)
            # A killed run may have left half a line at the end.
            whole = [line for line in lines if line.endswith("\n")]
            kept = [line for line in whole if json.loads(line)["step"] <= step]
            with atomic_write(self._path) as file:
                file.write("".join(kept).encode())

    def __call__(self, step: int, metrics: Metrics) -> None:
        """Append one line; what is not finite becomes null, as JSON has no NaN."""
        known = {k: v if math.isfinite(v) else None for k, v in metrics.items()}
        with self._path.open("a") as file:
            file.write(json.dumps({"step": step, **known}) + "\n")


def as_metrics(metrics: eqx.Module) -> Metrics:
    """Scalars of a metrics module as Python numbers by field name."""
    return {name: float(value) for name, value in vars(jax.device_get(metrics)).items()}


def train(
    update: Callable[[S], tuple[S, Any]],
    state: S,
    updates: int,
    *,
    meter: Meter | None = None,
    sinks: tuple[Sink, ...] = (),
    manager: CheckpointManager | None = None,
    save_every: int = 100,
    label: str = "updates",
) -> tuple[S, list[Metrics]]:
    """Call `update` until `updates` are done; return the state and every metrics.

    With a manager the state is saved every `save_every` updates, at the end, and when
    interrupted; a run that finds a checkpoint goes on from it. History covers what
    this call ran.
    """
    meter = meter or Meter()
    first = 0
    if manager is not None and manager.latest() is not None:
        restored = manager.restore(state)
        first, state = restored.step, restored.tree
    for sink in sinks:
        if manager is not None and isinstance(sink, JsonLines):
            sink.rewind(first)
    history, done = [], first
    meter.start(label, updates)
    try:
        for done in range(first + 1, updates + 1):
            state, metrics = update(state)
            history.append(as_metrics(metrics))
            for sink in sinks:
                sink(done, history[-1])
            meter.show(done)
            if manager is not None and (done % save_every == 0 or done == updates):
                manager.save(done, state)
    except KeyboardInterrupt:
        finished = first + len(history)
        if manager is not None and finished > (manager.latest() or 0):
            manager.save(finished, state)
        raise
    finally:
        meter.stop()
    return state, history
