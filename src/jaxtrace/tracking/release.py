"""Releases: when each particle enters a run, and how long it may stay.

Slots are fixed. Every release is a boundary between two steps, so a particle moves from
its seed at its time exactly, whatever the field, the motion and the boundary.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int32

from jaxtrace.tracking.schedule import Steps, as_number, steps_between

NEVER = np.iinfo(np.int32).max
ROUNDING = 1e-9  # of the interval, that the last of repeated releases may be beyond


@dataclass(frozen=True, eq=False)
class Releases:
    """When each particle is released, and when it is taken out; infinite for never."""

    times: Float[np.ndarray, " particles"]
    ends: Float[np.ndarray, " particles"]
    max_age: float = np.inf
    # Variables and states at the release, by name.
    values: dict[str, np.ndarray] = field(default_factory=dict)

    def on_steps(
        self, frames: Float[np.ndarray, " frames"], substeps: int
    ) -> tuple["Releases", Steps, Int32[np.ndarray, "particles 2"]]:
        """Return releases at ends of steps, all steps, and two of each particle.

        They are the first step of a particle and the first that it is too old for.
        """
        even = steps_between(frames, substeps, np.zeros(0))
        snapped = self._snapped(np.append(even.start[even.active], frames[-1]))
        both = np.concatenate([snapped.times, snapped.ends])
        instants = np.unique(both[np.isfinite(both)])
        steps = steps_between(frames, substeps, instants)
        starts, sign = steps.start[steps.active], 1 if frames[-1] >= frames[0] else -1
        find = lambda times: np.searchsorted(sign * starts, sign * times)
        ends = snapped.ends
        last = np.where(np.isfinite(ends), find(ends), NEVER)
        lifetime = np.stack([find(snapped.times), last], axis=1).astype(np.int32)
        if np.isfinite(self.max_age):
            # Who enters between releases may be too old within a step: at its end then.
            late = steps.end + sign * (1 - ROUNDING) * self.max_age
            steps = steps._replace(expires=find(late).astype(np.int32))
        return snapped, steps, lifetime

    def _snapped(self, edges: Float[np.ndarray, " edges"]) -> "Releases":
        """Return the same with times that are edges of steps but for rounding on them.

        A step from one to the other would have no length to speak of.
        """
        ordered = np.sort(edges)
        slack = ROUNDING * np.abs(np.diff(ordered)).max(initial=0)

        def snap(times: np.ndarray) -> np.ndarray:
            after = np.searchsorted(ordered, times - slack).clip(0, len(ordered) - 1)
            near = np.abs(ordered[after] - times) <= slack
            return np.where(near, ordered[after], times)

        return Releases(snap(self.times), snap(self.ends), self.max_age)

    def waiting(
        self, frames: Float[np.ndarray, " frames"], forward: bool
    ) -> Bool[np.ndarray, "frames particles"]:
        """Return who is not yet released at each frame."""
        sign = 1 if forward else -1
        return sign * frames[:, None] < sign * self.times[None]

    def first_frames(
        self, frames: Float[np.ndarray, " frames"], forward: bool
    ) -> Int32[np.ndarray, " particles"]:
        """Return the last frame at or before each release, where its seed is kept."""
        sign = 1 if forward else -1
        found = np.searchsorted(sign * frames, sign * self.times, side="right") - 1
        return found.astype(np.int32)

    def words(self) -> list[Any]:
        """Return what tells this release from another, for a run that is resumed."""
        parts = (self.times, self.ends[np.isfinite(self.ends)])
        return [float(part.sum()) for part in parts] + [len(part) for part in parts]


def release_times(release: Any, facts: Mapping[str, Any], name: str = "release") -> Any:
    """Return times of release as the field counts them, from numbers or dates."""
    if release is None:
        return None
    if isinstance(release, tuple) and len(release) == 3:
        start, stop, every = release
        return as_number(start, facts, name), as_number(stop, facts, name), every
    given = np.asarray(release)
    if given.ndim == 0:
        return as_number(release, facts, name)
    if given.dtype.kind in "biuf":
        return given
    times = [as_number(each, facts, name) for each in given.ravel()]
    return np.reshape(np.array(times), given.shape)


def make_releases(
    release: Any, seeds: int, span: tuple[float, float], max_age: float | None = None
) -> Releases | None:
    """Return when so many seeds are released; None where all start with the run.

    `release` is one time, a time per seed, or a tuple (start, stop, every): then all
    seeds are released again and again, one after another of as many copies of them.
    """
    if release is None and max_age is None:
        return None
    if max_age is not None and not max_age > 0:
        raise ValueError(f"max_age={max_age} must be above 0")
    if isinstance(release, tuple) and len(release) == 3:
        release = np.repeat(repeated(*release), seeds)
        seeds = len(release)
    given = np.asarray(span[0] if release is None else release, np.float64)
    if given.ndim > 1 or given.shape not in ((), (seeds,)):
        raise ValueError(
            f"release has shape {given.shape} for {seeds} seeds: give one time, "
            "one for each seed, or a tuple (start, stop, every)"
        )
    times = np.broadcast_to(given, (seeds,)).copy()
    low, high = min(span), max(span)
    outside = ~((times >= low) & (times <= high))
    if outside.any():
        first = int(np.argmax(outside))
        raise ValueError(
            f"{int(outside.sum())} of {seeds} particles are released outside the "
            f"time span from {span[0]:g} to {span[1]:g}, the first at t = "
            f"{times[first]:g}: release them within it"
        )
    # Backward in time a particle ends before it is released.
    age = np.inf if max_age is None else max_age
    return Releases(times, times + (age if span[1] >= span[0] else -age), age)


def repeated(start: float, stop: float, every: float) -> Float[np.ndarray, " times"]:
    """Return times from start to stop, both included where they are so far apart.

    >>> repeated(0.0, 1.0, 0.25).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    if not every or (stop - start) / every < 0:
        raise ValueError(
            f"release ({start:g}, {stop:g}, {every:g}): the third is the time from one "
            "release to the next, above 0 forward and below 0 backward"
        )
    count = int(np.floor((stop - start) / every + ROUNDING)) + 1
    return start + every * np.arange(count)
