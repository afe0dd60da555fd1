"""The clock of a run: frames, the substeps between them and every stage's instant.

All of it follows from the frame times alone, on the host and in float64, so no time is
ever summed up step by step.
"""

import functools
import math
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, SupportsFloat

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jaxtrace.fields.base import AbstractField, RecordField
from jaxtrace.fields.clock import Clock, Instant
from jaxtrace.integrators import Tableau
from jaxtrace.io.convert import dates_to_numbers

# A requested step this much longer than the frame spacing is worth a warning, and a
# spacing this much longer than the step is not worth a substep.
SLACK = 0.01


@dataclass(frozen=True)
class Timing:
    """The frames of a run, how many substeps lie between two, and what was asked."""

    frames: tuple[float, ...]
    substeps: int
    requested: float | None

    @property
    def dt(self) -> float:
        """Return the length of a substep; negative when tracking backward."""
        if len(self.frames) < 2:
            return 0.0
        span = self.frames[-1] - self.frames[0]
        return span / (len(self.frames) - 1) / self.substeps


def as_number(given: Any, facts: Mapping[str, Any], name: str) -> float:
    """Return a time as a field counts it; `facts` are those of its data.

    A date is ISO 8601 text, or one of the standard library, NumPy, pandas or cftime.
    """
    if isinstance(given, np.datetime64):
        given = str(given.astype("datetime64[us]"))
    date = given.isoformat() if hasattr(given, "isoformat") else given
    if isinstance(date, np.timedelta64) or not isinstance(date, str | SupportsFloat):
        raise TypeError(f"{name} is {given!r}: give a number or a date")
    if not isinstance(date, str):
        return float(date)
    if "time_units" not in facts:
        raise ValueError(
            f"{name} is the date {date}, but the times of the data are plain numbers: "
            "give numbers"
        )
    try:
        # An hour without minutes would be overlooked.
        return dates_to_numbers([re.sub(r"([T ]\d\d)$", r"\1:00", date)], facts)[0]
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} is {date!r}, no date of the calendar {facts['calendar']}: give "
            'one such as "2020-02-28" or "2020-02-28T12:00"'
        ) from error


def as_span(
    time_span: Any, facts: Mapping[str, Any], name: str = "time_span"
) -> tuple[float, float]:
    """Return the first and last time of a run, from numbers or dates."""
    if isinstance(time_span, str) or np.shape(time_span) != (2,):
        raise ValueError(
            f"{name} is {time_span!r}: give its first and last time, as in (0, 4)"
        )
    first, last = time_span
    return as_number(first, facts, name), as_number(last, facts, name)


def plan_times(
    time_span: tuple[float, float],
    n_timesteps: int | None,
    dt: float | None,
    slices: Any = None,
) -> Timing:
    """Return frames and substeps of a span, given the longest substep.

    Without a number of frames they are `dt` apart; without either there is one frame
    per slice of the field inside the span.
    """
    first, last = time_span
    if not (math.isfinite(first) and math.isfinite(last)):
        raise ValueError(f"time_span ({first}, {last}): both ends must be finite")
    if dt is not None and not (math.isfinite(dt) and dt != 0):
        raise ValueError(f"dt={dt} must be finite and nonzero")
    if dt is not None and dt < 0 and last > first:
        raise ValueError(
            f"dt={dt} is below 0, but time_span ({first:g}, {last:g}) goes forward: "
            f"give dt={-dt}, or time_span=({last:g}, {first:g}) to track backward"
        )
    length = abs(float(dt)) if dt is not None else None
    if n_timesteps is None:
        n_timesteps, given = _frames(first, last, length, slices)
        if given is not None:
            return Timing(tuple(given), 1, None)
    if int(n_timesteps) != n_timesteps or n_timesteps < 1:
        raise ValueError(
            f"n_timesteps is {n_timesteps}: give a whole number of frames from 1"
        )
    n_timesteps = int(n_timesteps)
    frames = tuple(np.linspace(first, last, n_timesteps).tolist())
    if n_timesteps == 1:
        return Timing((first,), 1, length)
    spacing = abs(last - first) / (n_timesteps - 1)
    return Timing(frames, _substeps(spacing, length), length)


def _frames(first: float, last: float, length: float | None, slices: Any):
    if length is not None:
        # A span shorter than the step still has two ends.
        intervals = max(round(abs(last - first) / length), int(first != last))
        return intervals + 1, None
    known = np.asarray([] if slices is None else slices, np.float64)
    low, high = min(first, last), max(first, last)
    inside = known[(known > low) & (known < high)]
    if known.size < 2:
        raise TypeError("give n_timesteps or dt: this field has no slices to follow")
    frames = [first, *(inside if last >= first else inside[::-1]), last]
    return len(frames), frames


def _substeps(spacing: float, length: float | None) -> int:
    if length is None or spacing == 0:
        return 1
    if length > spacing * (1 + SLACK):
        warnings.warn(
            f"dt={length:g} is larger than the frame spacing {spacing:g} set by "
            "time_span and n_timesteps: using the frame spacing as the step",
            stacklevel=4,
        )
    return max(1, math.ceil(spacing / length - SLACK))


Timed = Mapping[str, Any]  # fields and variables, which know instants of theirs
NO_SAMPLES: Timed = {}
FLOW = ""  # the name of the velocity itself among what is sampled


class Sampled(NamedTuple):
    """Starts and ends of substeps, and frames, as one variable sees them."""

    start: Instant
    end: Instant
    frame: Instant


class Schedule(eqx.Module):
    """Everything about time that the compiled loop needs, frame by frame.

    `stages` are the instants of each substep's stages as the field sees them, `frame`
    those of the frames themselves, and `samples` starts and ends of substeps and frames
    as each sampled variable sees them. Substeps that are not active are skipped.
    `expires` is the first step that who enters in a substep is too old for.
    """

    start: Float[Array | np.ndarray, "frames substeps"]
    dt: Float[Array | np.ndarray, "frames substeps"]
    step: Int[Array | np.ndarray, "frames substeps"]
    active: Bool[Array | np.ndarray, "frames substeps"]
    stages: Instant
    frame: Instant
    samples: dict[str, Sampled] = eqx.field(default_factory=dict)
    expires: Int[Array | np.ndarray, "frames substeps"] | None = None

    @property
    def frames(self) -> int:
        """Return how many frames there are."""
        return self.step.shape[0]

    @property
    def padded(self) -> bool:
        """Return whether there are substeps to skip."""
        return not bool(np.all(np.asarray(self.active)))

    def part(self, first: int, last: int, length: int) -> "Schedule":
        """Return some of the frames, padded to a fixed length."""
        if first == 0 and last == length == self.frames:
            return self
        missing = length - (last - first)

        def cut(x: Any) -> Any:
            taken = x[first:last]
            if not missing:
                return taken
            filler = np.broadcast_to(taken[-1:], (missing, *taken.shape[1:]))
            return np.concatenate([taken, filler])

        found = jax.tree.map(cut, self)
        real = np.arange(length)[:, None] < last - first
        return eqx.tree_at(lambda s: s.active, found, found.active & real)

    def instants(self, name: str = FLOW) -> list[Instant]:
        """Return all instants at which the flow, or a variable, is asked for."""
        own = [self.stages, self.frame] if name == FLOW else []
        return [*own, *self.samples.get(name, ())]

    def slices(self, first: int, last: int, name: str = FLOW) -> tuple[int, int]:
        """Return the first and the last stored slice that some of the frames need."""
        used = [m.slices[first:last] for m in self.instants(name)]
        if not used[0].size:  # a formula has no slices
            return 0, 0
        return min(int(u.min()) for u in used), max(int(u.max()) for u in used)

    def rebased(self, first_slice: int, name: str = FLOW) -> "Schedule":
        """Return the same for a field whose first stored slice is this one."""
        if first_slice == 0:
            return self
        where = lambda s: [instant.slices for instant in s.instants(name)]
        return eqx.tree_at(where, self, [at - first_slice for at in where(self)])


class Steps(NamedTuple):
    """Starts, lengths and ends of steps, one row per frame; inactive ones fill up."""

    start: Any
    dt: Any
    end: Any
    active: Bool[np.ndarray, "frames substeps"]
    expires: Int[np.ndarray, "frames substeps"] | None = None  # as in a schedule

    def joined(self, interval: int) -> "Steps":
        """Return the rows of so many frames as one, the last one filled up."""
        missing = -len(self.active) % interval

        def join(x: np.ndarray) -> np.ndarray:
            whole = np.concatenate([x, np.repeat(x[-1:], missing, axis=0)])
            return whole.reshape(len(whole) // interval, interval * x.shape[1])

        active = join(self.active)
        active.reshape(-1, self.active.shape[1])[len(self.active) :] = False
        expires = None if self.expires is None else join(self.expires)
        return Steps(join(self.start), join(self.dt), join(self.end), active, expires)


def even_steps(frames: Any, substeps: int) -> Steps:
    """Return so many steps of equal length between frames, which may be traced."""
    xp: Any = jnp if isinstance(frames, jax.Array) else np
    width = (frames[1:] - frames[:-1]) / substeps
    number = xp.arange(substeps, dtype=frames.dtype)
    start = frames[:-1, None] + width[:, None] * number[None]
    end = xp.concatenate([start[:, 1:], frames[1:, None]], 1)
    dt = xp.broadcast_to(width[:, None], start.shape)
    return Steps(start, dt, end, np.ones(start.shape, bool))


def steps_between(
    frames: Float[np.ndarray, " frames"],
    substeps: int,
    instants: Float[np.ndarray, " instants"],
) -> Steps:
    """Return even steps between frames that end at some instants too."""
    rows = []
    for first, last in pairwise(frames.tolist()):
        even = first + (last - first) / substeps * np.arange(substeps)
        low, high = min(first, last), max(first, last)
        inner = instants[(instants > low) & (instants < high)]
        edges = np.unique(np.concatenate([even, [last], inner]))
        rows.append(edges if last > first else edges[::-1])
    most = max((len(edges) for edges in rows), default=2)
    full = np.stack([np.pad(e, (0, most - len(e)), "edge") for e in rows])
    start, end = full[:, :-1], full[:, 1:]
    active = np.arange(most - 1) < np.array([[len(e) - 1] for e in rows])
    return Steps(start, end - start, end, active)


def make_schedule(
    field: AbstractField | Clock,
    frames: Any,
    steps: int | Steps,
    tableau: Tableau,
    dtype: Any,
    samples: Timed = NO_SAMPLES,
) -> Schedule:
    """Return the schedule of the steps between frames; traced times are allowed."""
    traced = isinstance(frames, jax.Array)
    xp: Any = jnp if traced else np
    frames = frames if traced else np.asarray(frames, np.float64)
    start, dt, end, active, expires = (
        even_steps(frames, steps) if isinstance(steps, int) else steps
    )
    nodes = stage_nodes(field, tableau)
    last = nodes[-1]
    nodes = xp.asarray(nodes, frames.dtype)
    instants = start[..., None] + dt[..., None] * nodes[None, None]
    # The last stage of an interval is the next frame, to the last bit.
    if last == 1.0:
        instants = xp.concatenate([instants[..., :-1], end[..., None]], -1)
    return Schedule(
        start.astype(dtype),
        dt.astype(dtype),
        (np.cumsum(active).reshape(active.shape) - 1).astype(np.int32),
        active,
        field.instant(instants).astype(dtype),
        field.instant(frames[1:]).astype(dtype),
        {
            name: Sampled(
                *(x.instant(t).astype(dtype) for t in (start, end, frames[1:]))
            )
            for name, x in samples.items()
        },
        expires,
    )


def stage_nodes(field: Any, tableau: Tableau) -> tuple[float, ...]:
    """Return where in a step the field is asked for: at stages, and at the end too
    where what is closed moves.
    """
    nodes = tuple(tableau.instants)
    ends = nodes[-1] == 1.0 or not getattr(field, "moves", False)
    return nodes if ends else (*nodes, 1.0)


def plan_run(
    field: AbstractField | Clock,
    timing: Timing,
    interval: int,
    tableau: Tableau,
    dtype: Any,
    steps: Steps | None = None,
    samples: Timed = NO_SAMPLES,
) -> tuple[Schedule, Instant]:
    """Return the schedule of a run that keeps every n-th frame, and its first instant.

    The plan of a record depends on its clock alone, and is kept for the next run: a
    small run would take longer to plan than to compute.
    """
    clock: Any = getattr(field, "clock", None)
    kept_plan = isinstance(field, RecordField) and steps is None and not samples
    kept_plan = kept_plan and not getattr(field, "moves", False)
    if clock is not None and kept_plan:
        times = np.asarray(clock.times, np.float64).tobytes()
        rules = clock.interpolation, clock.extrapolation
        return _plan_record(times, rules, timing, interval, tableau, np.dtype(dtype))
    frames = np.asarray(timing.frames)
    steps = steps or even_steps(frames, timing.substeps)
    kept = frames[kept_frames(len(frames), interval)]
    if interval > 1:
        steps = steps.joined(interval)
    schedule = make_schedule(field, kept, steps, tableau, dtype, samples)
    return schedule, field.instant(frames[0]).astype(dtype)


@functools.lru_cache(maxsize=2)  # a plan of millions of steps takes tens of megabytes
def _plan_record(times: bytes, rules: tuple[Any, Any], *plan: Any) -> Any:
    return plan_run(Clock(np.frombuffer(times), *rules), *plan)


def kept_frames(count: int, interval: int) -> Int[np.ndarray, " kept"]:
    """Return which of so many frames are kept: the first, every n-th and the last."""
    if interval < 1:
        raise ValueError(f"recording_interval={interval} must be at least 1")
    kept = np.arange(0, count, interval)
    return kept if kept[-1] == count - 1 else np.append(kept, count - 1)
