"""Options of a tracker, checked once, with defaults from the configuration."""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

from jaxrig import Meter, make_meter
from jaxrig.settings import Checked, flag, maybe, number, one_of, whole
from jaxtrace.config import get_config
from jaxtrace.settings import DTYPES, GIB
from jaxtrace.tracking.motion import AbstractMotion

COORDINATE_BYTES = 12


def _as_given(value: Any, name: str) -> Any:
    del name
    return value


@dataclass(frozen=True)
class TrackerOptions(Checked):
    """How a tracker works; every field may be given to `create_tracker` by name.

    `batch_size` particles are advanced at a time (None: all of them); after an
    out-of-memory error batches are halved down to `min_batch_size`. `position_dtype`
    "float64" integrates in double precision over a field of any precision. `devices`
    spreads particles over that many devices. `static_compilation`, `use_scan_jit` and
    `device_put_inputs` are accepted from scripts that set them: runs always do this.
    """

    batch_size: Annotated[int | None, maybe(whole())] = None
    record_velocities: Annotated[bool, flag] = False
    use_jax_jit: Annotated[bool, flag] = field(
        default_factory=lambda: get_config().use_jax_jit
    )
    static_compilation: Annotated[bool, flag] = True
    use_scan_jit: Annotated[bool, flag] = True
    device_put_inputs: Annotated[bool, flag] = True
    progress_callback: Annotated[Callable[..., Any] | None, _as_given] = None
    max_memory_gb: Annotated[float, number(0)] = field(
        default_factory=lambda: get_config().memory_limit_gb
    )
    min_batch_size: Annotated[int, whole()] = 100
    oom_recovery: Annotated[bool, flag] = field(
        default_factory=lambda: get_config().oom_recovery
    )
    recording_interval: Annotated[int, whole()] = 1
    progress_style: Annotated[str, one_of("auto", "tqdm", "simple", "none")] = "auto"
    progress_desc: Annotated[str, _as_given] = "Tracking"
    progress_update_every: Annotated[float, number(0, 1)] = 0.05
    adaptive_dt: Annotated[bool, flag] = False
    error_tolerance: Annotated[float, number(0)] = 1e-6
    seed: Annotated[int, whole(0)] = 0
    motion: Annotated[AbstractMotion | None, _as_given] = None
    position_dtype: Annotated[str | None, maybe(one_of(*DTYPES))] = None
    devices: Annotated[int | None, maybe(whole())] = None

    @property
    def budget_bytes(self) -> int:
        """Return the memory a run may take."""
        return int(self.max_memory_gb * GIB)

    def frame_bytes(self, n_particles: int) -> int:
        """Return what one recorded frame takes."""
        return n_particles * COORDINATE_BYTES * (2 if self.record_velocities else 1)

    def frames_per_call(self, n_particles: int, frames: int, watched: bool) -> int:
        """Return frames of one compiled call: all, or fewer to fit or to show progress.

        Two calls' records exist at a time: one being made, one being fetched.
        """
        if frames == 0:
            return 1
        frame = max(self.frame_bytes(n_particles), 1)
        room = max(1, self.budget_bytes // (4 * frame))
        if watched:
            room = min(room, math.ceil(frames * self.progress_update_every))
        return _even(frames, min(room, frames))


def _even(frames: int, most: int) -> int:
    """Return nearly the most frames that give calls of equal length."""
    calls = math.ceil(frames / most)
    for count in range(calls, calls + calls // 4 + 1):
        if frames % count == 0:
            return frames // count
    return math.ceil(frames / calls)


class Progress:
    """Tells a user's function and a meter how far a run is."""

    def __init__(self, options: TrackerOptions):
        self.options = options
        self.meter = _meter(options)

    @property
    def watched(self) -> bool:
        """Return whether progress is shown anywhere."""
        silent = type(self.meter) is Meter
        return self.options.progress_callback is not None or not silent

    def start(self, total: int) -> None:
        """Begin."""
        self.total = max(total, 1)
        self.meter.start(self.options.progress_desc, self.total)

    def show(self, done: int) -> None:
        """Show how many of the frames are done."""
        self.meter.show(done)
        callback = self.options.progress_callback
        if callback is None:
            return
        if _takes_two(callback):
            callback(done, self.total)
        else:
            callback(done / self.total)

    def stop(self) -> None:
        """End."""
        self.meter.stop()


def _meter(options: TrackerOptions) -> Meter:
    """Return a meter, silent unless a style or a verbose configuration asks for one."""
    settings = get_config()
    kinds = {"tqdm": "rich", "simple": "text", "none": "silent"}
    quiet = not settings.show_progress
    kinds["auto"] = "silent" if quiet else "auto"
    return make_meter(kinds[options.progress_style])


def _takes_two(callback: Callable[..., Any]) -> bool:
    """Return whether a callback is f(step, total) rather than f(fraction)."""
    parameters = inspect.signature(callback).parameters.values()
    needed = [
        p
        for p in parameters
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        and p.default is p.empty
    ]
    return len(needed) >= 2
