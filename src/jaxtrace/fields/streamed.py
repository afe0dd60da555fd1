"""Fields larger than memory: a window of slices that moves along with the run."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxtrace.config import memory_budget_bytes
from jaxtrace.fields.base import AbstractField, Field, as_positions, sample
from jaxtrace.fields.clock import Instant, Numbers, make_clock
from jaxtrace.settings import GIB

COPIES = 4  # of a window at the worst moment: two in use, one on its way, its slices


# Returns the velocities of one slice of a series.
Read = Callable[[int], np.ndarray]


class StreamedField(Field):
    """A field of which only some slices in a row are in memory.

    Slices are read once as a run goes along, the next window while the present one is
    in use. `field` is the frozen field of the first slice; `pack` lays a slice out as
    its values are. At most `memory_limit_gb` (the configured limit) is used for slices.
    """

    def __init__(
        self,
        times: Any,
        read: Read,
        field: Any,
        pack: Callable[[np.ndarray], np.ndarray],
        *,
        slice_bytes: int,
        memory_limit_gb: float | None = None,
        interpolation: str = "linear",
        extrapolation: str = "constant",
    ) -> None:
        clock = make_clock(times, interpolation, extrapolation)
        limit = memory_limit_gb
        budget = memory_budget_bytes() if limit is None else limit * GIB
        self.count = clock.times.shape[0]
        self.window = window_size(slice_bytes, int(budget), self.count)
        self._read, self._pack = read, pack
        self._source_info: dict[str, Any] = {}
        self._first = 0
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="slices")
        self._next: tuple[int, Future[np.ndarray]] | None = None
        values = np.empty((self.window, *field.values.shape[1:]), field.values.dtype)
        values[0] = field.values[0]
        for index in range(1, self.window):
            values[index] = pack(np.asarray(read(index)))
        self._field = eqx.tree_at(
            lambda f: (f.values, f.clock), field, (jnp.asarray(values), clock)
        )

    @property
    def frozen(self) -> AbstractField:
        """Return the field of the present window, whose clock knows all slices."""
        return self._field

    @property
    def first(self) -> int:
        """Return the first slice in memory."""
        return self._first

    def cover(self, first: int, last: int) -> AbstractField:
        """Return the field of a window that holds these slices."""
        if last - first >= self.window:
            raise ValueError(
                f"slices {first} to {last} do not fit a window of {self.window}: "
                "increase the memory limit, or record frames closer together"
            )
        if not self._first <= first <= last < self._first + self.window:
            self._move(min(first, self.count - self.window))
        return self._field

    def prefetch(self, first: int) -> None:
        """Begin to read the window that starts at a slice."""
        first = max(0, min(first, self.count - self.window))
        if first == self._first or (self._next and self._next[0] == first):
            return
        self._next = first, self._reader.submit(self._load, first)

    def sample_at_positions(self, positions: Any, t: Numbers = 0.0) -> Array:
        """Return velocities at positions and a time, read from disk where need be."""
        instant = self._field.instant(np.float64(t))
        here = self.cover(int(instant.slices.min()), int(instant.slices.max()))
        points = as_positions(positions)
        rebased = Instant(
            jnp.asarray(instant.time, points.dtype),
            jnp.asarray(instant.slices - self._first),
            jnp.asarray(instant.weights, points.dtype),
        )
        return sample(here, points, rebased)

    def _move(self, first: int) -> None:
        waiting, self._next = self._next, None
        if waiting is not None and waiting[0] == first:
            values = waiting[1].result()
        else:
            if waiting is not None:
                waiting[1].result()  # one reader at a time
            values = self._load(first)
        self._field = eqx.tree_at(lambda f: f.values, self._field, jnp.asarray(values))
        self._first = first

    def _load(self, first: int) -> np.ndarray:
        """Return the window's values, reusing slices already in memory."""
        present = self._field.values
        values = np.empty(present.shape, present.dtype)
        wanted = np.arange(first, first + self.window)
        known = (wanted >= self._first) & (wanted < self._first + self.window)
        for place in np.flatnonzero(~known):
            values[place] = self._pack(np.asarray(self._read(int(wanted[place]))))
        # Last, for a device gives them only when it is done with the frames at hand.
        for place in np.flatnonzero(known):
            values[place] = _slice(present, wanted[place] - self._first)
        return values


# Compiled, so that one slice leaves the device and not the whole window.
@jax.jit
def _slice(values: Array, index: Array) -> Array:
    return values[index]


def window_size(slice_bytes: int, budget_bytes: int, count: int) -> int:
    """Return how many slices fit: in use, being read, and the copies in between."""
    window = min(budget_bytes // (COPIES * slice_bytes), count)
    if window < 2:
        raise ValueError(
            f"slices of {slice_bytes:,} bytes do not fit a budget of {budget_bytes:,}: "
            f"two need {2 * COPIES * slice_bytes:,}"
        )
    return int(window)
