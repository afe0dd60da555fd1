"""Fields larger than memory in a run: the slices that some frames need."""

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxtrace.fields.clock import Instant
from jaxtrace.fields.streamed import StreamedField
from jaxtrace.fields.variables import Variable
from jaxtrace.tracking.behaviors import Behaviors
from jaxtrace.tracking.dynamics import Dynamics, Method, sample_variables
from jaxtrace.tracking.particles import Vectors
from jaxtrace.tracking.release import Releases
from jaxtrace.tracking.schedule import FLOW, Schedule


class SliceWindows:
    """What acts on particles, with the slices of each field that some frames need."""

    def __init__(
        self,
        dynamics: Dynamics,
        field: Any = None,
        variables: Mapping[str, Variable] | None = None,
    ):
        given = {FLOW: field} | {n: v.field for n, v in (variables or {}).items()}
        self._streamed = {
            name: one for name, one in given.items() if isinstance(one, StreamedField)
        }
        self.searches = dynamics.field.searches
        # The window of the moment is asked for; another one would only take up room.
        for name in self._streamed:
            dynamics = eqx.tree_at(_place_of(name), dynamics, None)
        self._world = dynamics

    @property
    def streams(self) -> bool:
        """Return whether only some slices are in memory."""
        return bool(self._streamed)

    def check(self, method: Method) -> None:
        """Refuse what asks for the field at instants that no schedule names."""
        newcomers = self._world.motion.has_velocity and self._world.boundary.recycles
        if FLOW in self._streamed and (method.tolerance is not None or newcomers):
            what = "heavy newcomers" if newcomers else "adaptive steps"
            raise ValueError(
                f"{what} may need any slice at any time, but this field is streamed: "
                "increase the memory limit, or use fixed steps and passive tracers"
            )

    def cover(self, needed: Mapping[str, tuple[int, int]]) -> Dynamics:
        """Return the world of windows that hold these slices of each field."""
        dynamics = self._world
        for name, field in self._streamed.items():
            # One field may be the flow and a variable: its window serves both.
            same = [needed[n] for n, other in self._streamed.items() if other is field]
            lows, highs = zip(*same, strict=True)
            here = field.cover(min(lows), max(highs))
            dynamics = eqx.tree_at(
                _place_of(name), dynamics, here, is_leaf=lambda x: x is None
            )
        return dynamics

    def at(
        self, instant: Instant, samples: Mapping[str, Instant]
    ) -> tuple[Dynamics, Instant, dict[str, Instant]]:
        """Return the world of one instant, and the instant as it sees it."""
        if not self.streams:
            return self._world, instant, dict(samples)
        given = {FLOW: instant, **samples}
        used = {name: np.asarray(given[name].slices) for name in self._streamed}
        ends = {name: (int(u.min()), int(u.max())) for name, u in used.items()}
        dynamics = self.cover(ends)
        here = {
            name: eqx.tree_at(lambda m: m.slices, one, one.slices - self._first(name))
            for name, one in given.items()
        }
        return dynamics, here[FLOW], {name: here[name] for name in samples}

    def _first(self, name: str) -> int:
        return self._streamed[name].first if name in self._streamed else 0

    def piece(
        self, schedule: Schedule, first: int, length: int
    ) -> tuple[Dynamics, Schedule, int]:
        """Return the world and the schedule of some frames, and where they end.

        There are at most `length`, to which the schedule is padded.
        """
        last = min(first + length, schedule.frames)
        for name, field in self._streamed.items():
            # The last frame whose slices share a window with the first.
            while last > first + 1:
                low, high = schedule.slices(first, last, name)
                if high - low < field.window:
                    break
                last -= 1
        part = schedule.part(first, last, length)
        dynamics = self.cover(
            {name: schedule.slices(first, last, name) for name in self._streamed}
        )
        for name in self._streamed:
            part = part.rebased(self._first(name), name)
        return dynamics, part, last

    def prefetch(self, schedule: Schedule, first: int) -> None:
        """Begin to read what the frames from this one on need."""
        if first >= schedule.frames:
            return
        ahead = schedule.dt[first, 0] >= 0
        for name, field in self._streamed.items():
            low, high = schedule.slices(first, first + 1, name)
            field.prefetch(low if ahead else high + 1 - field.window)


def _place_of(name: str) -> Callable[[Dynamics], Any]:
    """Return what finds a field among what acts on particles."""
    if name == FLOW:
        return lambda d: d.field
    return lambda d: d.behaviors.variables[name].field


def released_values(
    windows: SliceWindows, behaviors: Behaviors, seeds: Vectors, releases: Releases
) -> dict[str, np.ndarray]:
    """Return variables and states of particles at their seeds, when each is released.

    A field that is streamed has slices of one instant at a time.
    """
    variables, dtype = behaviors.variables, seeds.dtype
    found = behaviors.initial(len(seeds), dtype) or {}
    found = {n: np.array(x, dtype) for n, x in found.items() if not n.startswith("_")}
    streams = any(isinstance(v.field, StreamedField) for v in variables.values())
    groups = np.unique(releases.times).tolist() if streams else [releases.times]
    for time in groups if variables else ():
        rows = releases.times == time
        samples = {
            name: jax.tree.map(jnp.asarray, v.instant(time).astype(dtype))
            for name, v in variables.items()
        }
        dynamics, _, here = windows.at(next(iter(samples.values())), samples)
        for name, values in sample_variables(dynamics, seeds, here).items():
            whole = found.setdefault(name, np.full(len(seeds), np.nan, dtype))
            whole[rows] = np.asarray(values)[rows]
    return found
