"""The loop around a compiled update: progress, metrics, checkpoints and resuming."""

import json
import logging
import math
import time
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
from jaxrig.settings import whole, wrong
from jaxrig.sharding import wait_for_all

logger = logging.getLogger(__name__)

S = TypeVar("S", bound=PyTree)
Metrics = dict[str, float]
Sink = Callable[[int, Metrics], None]


class JsonLines:
    """Metrics as one JSON object per line; a resumed run drops what it will redo."""

    def __init__(self, path: Path | str):
        self._path = Path(path)
        self._path.parent.mkdir(parents=True, exist_ok=True)

    def begin(self) -> None:
        """Refuse a file that holds the lines of another run."""
        if any(_step_of(line) is not None for line in self._lines()):
            raise ValueError(
                f"{self._path} contains another run, and there is no checkpoint to "
                "resume it from: use another file, or move this one"
            )
        self.rewind(0)

    def rewind(self, step: int) -> None:
        """Keep the lines up to this step."""
        kept, lines = [], self._lines()
        for number, line in enumerate(lines, 1):
            found = _step_of(line)
            if found is None:  # half a line is what a killed run leaves
                warnings.warn(
                    f"{self._path}, line {number} is not a record and is dropped",
                    stacklevel=3,
                )
            elif found <= step:
                kept.append(line + "\n")
        if len(kept) < len(lines):
            with atomic_write(self._path) as file:
                file.write("".join(kept).encode())

    def _lines(self) -> list[str]:
        return self._path.read_text().splitlines() if self._path.exists() else []

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
    """Return scalars of a metrics module or mapping as Python numbers by name."""
    found = metrics if isinstance(metrics, Mapping) else vars(metrics)
    for name, value in found.items():
        if jax.numpy.shape(value):
            raise ValueError(
                f"metric {name!r} is not a scalar: {jax.numpy.shape(value)}"
            )
    plain = lambda value: value.item() if hasattr(value, "item") else value
    return {name: plain(value) for name, value in jax.device_get(dict(found)).items()}


def _check_finite(metrics: Metrics, update: int) -> None:
    for name in ("loss", "total_loss"):
        if not math.isfinite(metrics.get(name, 0.0)):
            raise FloatingPointError(
                f"update {update}: {name} is {metrics[name]}; look for a reward, value "
                "or log probability that is not finite"
            )


def _restore(
    state: S, updates: int, manager: CheckpointManager, config: dict[str, str]
) -> tuple[int, S]:
    """Return how many updates are done, and the state after them."""
    restored = manager.restore(state)
    before = restored.metadata.get("config", {})
    changed = [
        f"{name}: {before.get(name)} -> {config.get(name)}"
        for name in sorted(before.keys() | config.keys())
        if before.get(name) != config.get(name)
    ]
    if changed:
        raise ValueError(
            f"{manager.folder} contains a run with a different configuration "
            f"({'; '.join(changed)}): use another folder, or the same values"
        )
    if restored.step > updates:
        raise ValueError(
            f"the checkpoint in {manager.folder} is at update {restored.step}, "
            f"beyond updates={updates}: increase updates, or use another folder"
        )
    logger.info("resuming at update %d from %s", restored.step, manager.folder)
    return restored.step, restored.tree


class _Saver:
    """Saves the state of a run when enough updates or enough time have passed."""

    def __init__(
        self,
        manager: CheckpointManager | None,
        every: int,
        seconds: float,
        metadata: dict[str, Any],
    ):
        self._manager, self._every, self._metadata = manager, every, metadata
        # Clocks of several hosts differ, and a save that only some of them start would
        # wait forever for the others: there the count alone decides.
        self._seconds = seconds if jax.process_count() == 1 else math.inf
        self.step, self._time = -1, time.monotonic()  # the step that is on disk

    def save(self, step: int, state: PyTree) -> None:
        """Save, unless this step is on disk already."""
        if self._manager is not None and step != self.step:
            self._manager.save(step, state, self._metadata)
            self.step, self._time = step, time.monotonic()

    def save_if_due(self, step: int, state: PyTree) -> None:
        """Save if the count or the clock says so."""
        late = time.monotonic() - self._time >= self._seconds
        if step % self._every == 0 or late:
            self.save(step, state)


def train(
    update: Callable[[S], tuple[S, eqx.Module | Mapping[str, Any]]],
    state: S,
    updates: int,
    *,
    meter: Meter | None = None,
    sinks: tuple[Sink, ...] = (),
    manager: CheckpointManager | None = None,
    save_every: int = 100,
    save_seconds: float = 60.0,
    config: object = None,
    label: str = "updates",
) -> tuple[S, list[Metrics]]:
    """Call `update` until `updates` are done; return the state and every metrics.

    With a manager the state is saved at the start, every `save_every` updates, every
    `save_seconds` (on a single host), at the end, and when interrupted. A run that
    finds a checkpoint goes on from it, unless its `config` (a dataclass) was another;
    killed at any moment and run again, it ends as if it had not been killed. History
    covers what this call ran. A loss that is not finite ends the run, and the state
    that led to it is not saved.
    """
    whole(at_least=0)(updates, "updates")
    whole()(save_every, "save_every")
    if not save_seconds >= 0:  # infinite: by count alone
        raise wrong("save_seconds", save_seconds, "seconds from 0")
    meter = meter or Meter()
    known = {} if config is None else {k: repr(v) for k, v in vars(config).items()}
    saver = _Saver(manager, save_every, save_seconds, {"config": known})
    done, state = _begin(state, updates, sinks, manager, known, saver)
    history = []
    meter.compiling(label)
    try:
        while done < updates:
            following, metrics = update(state)
            found = as_metrics(metrics)  # waits for the device; may be interrupted
            _check_finite(found, done + 1)
            if not history:
                meter.start(label, updates)
            state, done = following, done + 1
            history.append(found)
            for sink in sinks:
                sink(done, found)
            meter.show(done)
            saver.save_if_due(done, state)
        saver.save(done, state)
    except KeyboardInterrupt as stop:
        saver.save(done, state)
        if manager is not None:
            stop.add_note(
                f"saved update {done} in {manager.folder}; run again to resume"
            )
        raise
    finally:
        meter.stop()
    return state, history


def _begin(
    state: S,
    updates: int,
    sinks: tuple[Sink, ...],
    manager: CheckpointManager | None,
    config: dict[str, str],
    saver: _Saver,
) -> tuple[int, S]:
    """Go on from a checkpoint, or make the first one before any metrics are written.

    So whatever the metrics hold after a kill, there is a checkpoint to go back to.
    """
    files = [sink for sink in sinks if isinstance(sink, JsonLines)]
    latest = None if manager is None else manager.latest()
    if manager is not None:  # no host may save before all have looked
        wait_for_all(f"start of {manager.folder}")
    if manager is None or latest is None:
        for file in files:
            file.begin()
        saver.save(0, state)
        return 0, state
    done, state = _restore(state, updates, manager, config)
    saver.step = done
    for file in files:
        file.rewind(done)
    return done, state
