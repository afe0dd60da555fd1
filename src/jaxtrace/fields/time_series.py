"""`TimeSeriesField`: velocities at nodes and instants, in arrays that users may assign.

There is one copy of the truth, the frozen field; what is assigned goes into it at once,
or waits until arrays that belong together fit.
"""

import contextlib
import copy
import math
import os
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxrig import compile_once
from jaxrig.memory import MIB, tree_bytes
from jaxtrace.fields.base import AbstractField, Field
from jaxtrace.fields.clock import Instant, blend_slices, make_clock
from jaxtrace.fields.curved_grid import CurvilinearGrid
from jaxtrace.fields.interpolation import (
    Points,
    Scheme,
    TensorGrid,
    Values,
    choose_scheme,
    make_elements,
)
from jaxtrace.fields.topology import check_points

Nodes = Points | TensorGrid | CurvilinearGrid
Listed = (TensorGrid, CurvilinearGrid)  # nodes that are known without a list of them


ROUNDINGS = 16 * np.finfo(np.float64).eps  # of a duration over a period


class TimeSeriesField(Field):
    """Velocities `data` (T, N, 3) at `positions` (N, 3) and instants `times` (T,).

    Between nodes the best is done that they allow, chosen once and told by
    `interpolation_scheme`: trilinear if they form a grid (in any order, evenly spaced
    or not; where there are cells, if these fill it), the shape functions of cells if
    there is connectivity, else linear on Delaunay's simplices.
    `spatial_interpolation="nearest"` asks for the nearest node, "elements" for cells.

    Between slices `interpolation` is "linear", "nearest" or "cubic"; before the first
    and after the last `extrapolation` is "constant", "linear", "periodic", "zero" or
    "nan". Beyond the nodes `outside` is "clamp" (the closest point that is known),
    "zero", "nan" or "extrapolate"; "periodic" on a grid. Cells are rows (M, k) in
    `connectivity`, or VTK's flat list with `cell_types` and `cell_offsets`. A large
    mesh is kept in the folder `cache`, and read from there the next time.

    `data`, `times` and `positions` may be assigned, and are checked then. While one has
    been assigned that does not fit the others - as between a new `data` with more
    slices and its new `times` - the field waits for the rest: using it is an error that
    names the shapes. An array equal to the one that is there changes nothing.
    """

    _field: Any  # the frozen field, and the scheme and the nodes that it was made by
    _scheme: Scheme
    _placed: Nodes | None = None

    def __init__(
        self,
        data: Any,
        times: Any,
        positions: Any,
        interpolation: str = "linear",
        extrapolation: str = "constant",
        _source_info: dict[str, Any] | None = None,
        *,
        connectivity: Any = None,
        cell_types: Any = None,
        cell_offsets: Any = None,
        spatial_interpolation: str = "auto",
        outside: str | None = None,
        cache: str | os.PathLike[str] | None = None,
    ) -> None:
        self._source_info = dict(_source_info or {})
        self._repeats = 1
        cells = (connectivity, cell_types, cell_offsets)
        if connectivity is None:  # what `open_dataset` gives names its cells
            names = ("connectivity", "cell_types", "cell_offsets")
            cells = tuple(self._source_info.get(name) for name in names)
        self.elements = make_elements(*cells)
        self._rules = (spatial_interpolation, outside, cache)
        if not isinstance(positions, Listed):
            positions = check_points(positions)
        # None once the field has them. A fourth component are heights of levels.
        folds = isinstance(positions, CurvilinearGrid) and positions.moving
        self._data: Values | None = data if folds else check_data(data)
        self._clock = make_clock(times, interpolation, extrapolation)
        self._nodes: Nodes = positions
        self._require_fit()
        self._settle()

    @property
    def frozen(self) -> AbstractField:
        """Return the field as the pytree that compiled code takes."""
        self._require_fit()
        return self._field

    @property
    def data(self) -> Float[Array, "slices nodes 3"]:
        """Return velocities, slice by slice in the order of the nodes."""
        if self._data is not None:
            return jnp.asarray(self._data)
        return self._scheme.unpack(self._field.values)

    @data.setter
    def data(self, value: Any) -> None:
        self._assign(_data=check_data(value))

    @property
    def times(self) -> Float[Array, " slices"]:
        """Return the instants of the slices."""
        return jnp.asarray(self._clock.times)

    @times.setter
    def times(self, value: Any) -> None:
        if not _same(value, self.times):
            self._reset_clock(times=np.asarray(value, np.float64))

    @property
    def positions(self) -> Float[Array, "nodes 3"]:
        """Return where the nodes are."""
        nodes = self._nodes
        return jnp.asarray(nodes.points() if isinstance(nodes, Listed) else nodes)

    @positions.setter
    def positions(self, value: Any) -> None:
        if not _same(value, self.positions):
            self._assign(_nodes=check_points(value))

    # Names that scripts for separate copies on host and device assign as well.
    _data_dev = data
    _times_dev = times
    _pos_dev = positions

    @property
    def interpolation(self) -> str:
        """Return the rule between slices: "linear", "nearest" or "cubic"."""
        return self._clock.interpolation

    @interpolation.setter
    def interpolation(self, rule: str) -> None:
        self._reset_clock(interpolation=rule)

    @property
    def extrapolation(self) -> str:
        """Return the rule before the first slice and after the last."""
        return self._clock.extrapolation

    @extrapolation.setter
    def extrapolation(self, rule: str) -> None:
        self._reset_clock(extrapolation=rule)

    @property
    def T(self) -> int:
        """Return how many slices there are."""
        return self._data_shape[0]

    @property
    def N(self) -> int:
        """Return how many nodes there are."""
        return _count(self._nodes)

    @property
    def interpolation_scheme(self) -> str:
        """Return the interpolation in space: "trilinear", "tetrahedra", ..."""
        return self._scheme.name

    def __repr__(self) -> str:
        times = f"t={self.t_min:.6g} to {self.t_max:.6g}"
        named = f"{type(self).__name__}(T={self.T}, N={self.N}, {times}"
        return f"{named}, interpolation_scheme={self.interpolation_scheme!r})"

    def memory_usage_mb(self) -> float:
        """Return the field's memory in MiB, look-up tables included."""
        nodes = self._placed
        if isinstance(nodes, Listed):
            nodes = nodes.axes if isinstance(nodes, TensorGrid) else ()
        return tree_bytes((self.frozen, nodes)) / MIB

    @property
    def connectivity(self) -> Any:
        """Return the nodes of the cells as they were given; None without cells."""
        return None if self.elements is None else self.elements.connectivity

    @property
    def t_min(self) -> float:
        """Return the first instant."""
        return float(self._clock.times[0])

    @property
    def t_max(self) -> float:
        """Return the last instant, or the end of the last period."""
        first, last = float(self._clock.times[0]), float(self._clock.times[-1])
        return first + self._repeats * (last - first)

    def get_time_bounds(self) -> tuple[float, float]:
        """Return the first and the last instant."""
        return self.t_min, self.t_max

    def sample_at_time(self, t: float) -> Float[Array, "nodes 3"]:
        """Return velocities at all nodes and a time."""
        self._require_fit()
        return self._at_nodes(self._clock.instant(float(t)))

    def get_time_derivative(self, t: float) -> Float[Array, "nodes 3"]:
        """Return the exact time derivative of the interpolant at all nodes.

        Where two intervals meet it is the slope of the later one.
        """
        self._require_fit()
        return self._at_nodes(self._clock.slope(float(t)))

    def create_time_periodic_field(
        self,
        n_periods: int = 5,
        time_slice: tuple[float, float] | None = None,
        transition_smoothing: float = 0.0,
        target_duration: float | None = None,
    ) -> "TimeSeriesField":
        """Return a field that repeats this record, or a time slice of it.

        Times restart at 0, and the period is the time from the first slice to the last.
        Time wraps around: nothing is stored twice, and the field goes on repeating
        after its `n_periods`, or as many as `target_duration` needs. Where the last
        slice differs from the first, a share `transition_smoothing` of all slices in
        [0, 1] blends each period's beginning with the mirrored end of the one before.
        """
        times = np.asarray(self._clock.times)
        first, last = _chosen(times, time_slice)
        kept = times[first:last] - times[first]
        period = float(kept[-1])
        count = _periods(n_periods, target_duration, period)
        values = self.frozen.values  # type: ignore[attr-defined]
        if last - first < len(times):
            values = values[first:last]
        smoothed = _smoothed(values, transition_smoothing)
        new = copy.copy(self)
        new._clock = make_clock(kept, self.interpolation, "periodic")
        both = (smoothed, new._clock)
        new._field = eqx.tree_at(lambda f: (f.values, f.clock), self._field, both)
        new._repeats = count
        new._source_info = self._source_info | {
            "periodic_field": True,
            "original_period": period,
            "n_periods": count,
            "time_slice": time_slice,
            "transition_smoothing": transition_smoothing,
            "total_duration": count * period,
        }
        return new

    def _at_nodes(self, instant: Instant) -> Float[Array, "nodes 3"]:
        return self._scheme.unpack(_weighted(self._field.values, instant))[0]

    @property
    def _data_shape(self) -> tuple[int, int]:
        if self._data is not None:
            return self._data.shape[0], self._data.shape[1]
        assert self._placed is not None
        return self._field.values.shape[0], _count(self._placed)

    def _reset_clock(self, **changes: Any) -> None:
        rules = ("times", "interpolation", "extrapolation")
        now = {name: getattr(self._clock, name) for name in rules}
        self._assign(_clock=make_clock(**(now | changes)))

    def _assign(self, **given: Any) -> None:
        """Take arrays over; those that no field can be made of leave nothing behind."""
        with contextlib.ExitStack() as undo:
            undo.callback(vars(self).update, dict(vars(self)))
            vars(self).update(given)
            self._settle()
            undo.pop_all()

    def _settle(self) -> None:
        """Make the field of what was assigned, once it fits, reusing what can be."""
        if not self._fits():
            return
        data = self._data
        if self._nodes is not self._placed:
            data = self.data if data is None else data
            self._scheme = choose_scheme(self._nodes, self.elements, *self._rules)
            self._field = self._scheme.build(data, self._clock)
        else:
            field = eqx.tree_at(lambda f: f.clock, self._field, self._clock)
            self._field = field if data is None else self._scheme.replace(field, data)
        self._data, self._placed = None, self._nodes

    def _fits(self) -> bool:
        return self._data_shape == (self._clock.times.shape[0], self.N)

    def _require_fit(self) -> None:
        if not self._fits():
            slices, nodes = self._data_shape
            raise ValueError(
                f"data of shape ({slices}, {nodes}, 3), times of shape "
                f"({self._clock.times.shape[0]},) and positions of shape ({self.N}, 3) "
                "do not fit: give data one slice per time and one row per position"
            )


def _count(nodes: Nodes) -> int:
    return nodes.n_points if isinstance(nodes, Listed) else len(nodes)


def check_data(data: Any) -> Values:
    """Return velocities as (T, N, 3) in floating point, where they are."""
    given = data if isinstance(data, jax.Array) else np.asarray(data)
    if given.ndim != 3 or given.shape[2] not in (2, 3):
        raise ValueError(f"data of shape {given.shape}: give (T, N, 3) or (T, N, 2)")
    if not np.issubdtype(given.dtype, np.floating):
        given = given.astype(jnp.result_type(float))
    if given.shape[2] == 3:
        return given
    xp: Any = jnp if isinstance(given, jax.Array) else np
    return xp.pad(given, ((0, 0), (0, 0), (0, 1)))


def _same(value: Any, there: Array) -> bool:
    """Return whether an assigned array is the one that is shown."""
    given = np.asarray(value)
    return given.shape == there.shape and np.array_equal(given, np.asarray(there))


# No budget: every shape of record is a program of its own.
@compile_once(max_traces=None)
def _weighted(values: Array, instant: Instant) -> Array:
    return blend_slices(values, instant)[0]


def _chosen(
    times: Float[np.ndarray, " slices"], time_slice: tuple[float, float] | None
) -> tuple[int, int]:
    """Return the slices between two instants, ends included, as a range of indices."""
    start, end = time_slice or (times[0], times[-1])
    first = int(np.searchsorted(times, start, side="left"))
    last = int(np.searchsorted(times, end, side="right"))
    if last - first < 2 or times[last - 1] == times[first]:
        raise ValueError(
            f"a period from t = {start} to {end} holds no two slices of the record "
            f"from {times[0]} to {times[-1]}: choose a longer time_slice (first, last)"
        )
    return first, last


def _periods(count: int, duration: float | None, period: float) -> int:
    if duration is not None:
        if not (duration > 0 and math.isfinite(duration)):
            raise ValueError(f"target_duration {duration}: give a time above 0")
        return max(1, math.ceil(duration / period * (1 - ROUNDINGS)))
    if count < 1:
        raise ValueError(f"n_periods {count}: repeat the record once or more")
    return count


def _smoothed(values: Array, share: float) -> Array:
    """Blend the first slices with the mirrored last ones, fully at the start."""
    if not 0 <= share <= 1:
        raise ValueError(f"transition_smoothing {share}: give a share from 0 to 1")
    slices = values.shape[0]
    count = min(round(share * slices), slices - 1)
    if count == 0:
        return values
    own = jnp.arange(count, dtype=values.dtype) / count
    own = own.reshape(-1, *[1] * (values.ndim - 1))
    blended = own * values[:count] + (1 - own) * values[::-1][:count]
    return values.at[:count].set(blended)
