"""The loop around a compiled update: progress, metrics, checkpoints and resuming."""

import json
import logging
import math
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import equinox as eqx
import jax
from jaxtyping import PyTree

from jaxrig.atomic import atomic_write
from jaxrig.checkpoint import CheckpointManager
from jaxrig.progress import Meter

logger = logging.getLogger(__name__)

S = TypeVar("S", bound=PyTree)
Metrics = dict[str, float]
Sink = Callable[[int, Metrics], None]


class JsonLines:
    """Metrics as one JSON object a line; a resumed run drops what it will redo."""

    def __init__(self, path: Path | str):
        self._path = Path(path)
        self._path.parent.mkdir(parents=True, exist_ok=True)

    def rewind(self, step: int) -> None:
        """Keep the lines up to this step; a run from 0 needs an empty file."""
        kept = []
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        for number, line in enumerate(lines, 1):
            found = _step_of(line)
            if found is None:  # half a line is what a killed run leaves
                warnings.warn(
                    f"{self._path}, line {number} is no record and is dropped",
                    stacklevel=3,
                )
            elif found <= step:
                kept.append(line + "\n")
            elif step == 0:
                raise ValueError(
                    f"{self._path} holds another run, and there is no checkpoint to "
                    "resume it from: give another file, or move this one away"
                )
        if len(kept) < len(lines):
            with atomic_write(self._path) as file:
                file.write("".join(kept).encode())

    def __call__(self, step: int, metrics: Metrics) -> None:
        """Append one line; what is not finite becomes null, as JSON has no NaN."""
        known = {k: v if math.isfinite(v) else None for k, v in metrics.items()}
        with self._path.open("a") as file:
            file.write(json.dumps(known | {"step": step}) + "\n")


def _step_of(line: str) -> int | None:
    try:
        record = json.loads(line)
    except json.JSONDecodeError:
        return None
    step = record.get("step") if isinstance(record, dict) else None
    return step if isinstance(step, int) else None


def as_metrics(metrics: eqx.Module | Mapping[str, Any]) -> Metrics:
    """Scalars of a metrics module or mapping as Python numbers by name."""
    found = metrics if isinstance(metrics, Mapping) else vars(metrics)
    for name, value in found.items():
        if jax.numpy.shape(value):
            raise ValueError(f"metric {name!r} is no scalar: {jax.numpy.shape(value)}")
    return {name: value.item() for name, value in jax.device_get(dict(found)).items()}


def _check_finite(metrics: Metrics, update: int) -> None:
    for name in ("loss", "total_loss"):
        if not math.isfinite(metrics.get(name, 0.0)):
            raise FloatingPointError(
                f"update {update}: {name} is {metrics[name]}; look for a reward, value "
                "or log probability that is not finite"
            )


def _resume(
    state: S,
    updates: int,
    sinks: tuple[Sink, ...],
    manager: CheckpointManager | None,
    config: dict[str, str],
) -> tuple[int, S]:
    """How many updates are done, and the state after them."""
    done = 0
    if manager is not None and manager.latest() is not None:
        restored = manager.restore(state)
        done, state = restored.step, restored.tree
        before = restored.metadata.get("config", {})
        changed = [
            f"{name}: {before.get(name)} -> {config.get(name)}"
            for name in sorted(before.keys() | config.keys())
            if before.get(name) != config.get(name)
        ]
        if changed:
            raise ValueError(
                f"{manager.folder} holds a run of another configuration "
                f"({'; '.join(changed)}): give another folder, or the same values"
            )
        logger.info("resuming at update %d from %s", done, manager.folder)
        if done > updates:
            raise ValueError(
                f"the checkpoint in {manager.folder} is at update {done}, past "
                f"updates={updates}: ask for more, or give another folder"
            )
    for sink in sinks:
        if isinstance(sink, JsonLines):
            sink.rewind(done)
    return done, state


def train(
    update: Callable[[S], tuple[S, Any]],
    state: S,
    updates: int,
    *,
    meter: Meter | None = None,
    sinks: tuple[Sink, ...] = (),
    manager: CheckpointManager | None = None,
    save_every: int = 100,
    config: Any = None,
    label: str = "updates",
) -> tuple[S, list[Metrics]]:
    """Call `update` until `updates` are done; return the state and every metrics.

    With a manager the state is saved every `save_every` updates, at the end, and when
    interrupted; a run that finds a checkpoint goes on from it, unless its `config` (a
    dataclass) was another. History covers what this call ran. A loss that is not
    finite ends the run, and the state that led to it is not saved.
    """
    if save_every < 1:
        raise ValueError(f"save_every={save_every} must be at least 1")
    meter = meter or Meter()
    known = {} if config is None else {k: repr(v) for k, v in vars(config).items()}
    done, state = _resume(state, updates, sinks, manager, known)
    history, saved = [], done
    meter.start(label, updates)
    try:
        while done < updates:
            following, metrics = update(state)
            found = as_metrics(metrics)  # waits for the device; may be interrupted
            _check_finite(found, done + 1)
            state, done = following, done + 1
            history.append(found)
            for sink in sinks:
                sink(done, found)
            meter.show(done)
            if manager is not None and (done % save_every == 0 or done == updates):
                manager.save(done, state, {"config": known})
                saved = done
    except KeyboardInterrupt as stop:
        if manager is not None:
            if done > saved:
                manager.save(done, state, {"config": known})
            stop.add_note(
                f"saved update {done} in {manager.folder}; run again to resume"
            )
        raise
    finally:
        meter.stop()
    return state, history
