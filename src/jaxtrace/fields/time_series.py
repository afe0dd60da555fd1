"""The documented field: velocities at nodes and instants, in arrays to assign."""

import copy
import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxrig import compile_once
from jaxtrace.fields.clock import Moment, Numbers, make_clock
from jaxtrace.fields.nodal import blend_slices
from jaxtrace.fields.record import NodalRecord
from jaxtrace.fields.schemes import make_elements

ROUNDINGS = 16 * np.finfo(np.float64).eps  # of a duration over a period


class TimeSeriesField(NodalRecord):
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
    `connectivity`, or VTK's flat list with `cell_types` and `cell_offsets`.
    """

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
    ) -> None:
        self._source_info = dict(_source_info or {})
        self._repeats = 1
        if connectivity is None:  # what `open_dataset` gives names its cells
            connectivity, cell_types, cell_offsets = (
                self._source_info.get(name)
                for name in ("connectivity", "cell_types", "cell_offsets")
            )
        super().__init__(
            data,
            times,
            positions,
            (interpolation, extrapolation),
            make_elements(connectivity, cell_types, cell_offsets),
            spatial_interpolation,
            outside,
        )

    @property
    def connectivity(self) -> Any:
        """The nodes of the cells as they were given; None without cells."""
        return None if self.elements is None else self.elements.connectivity

    @property
    def t_min(self) -> float:
        """The first instant."""
        return float(self._clock.times[0])

    @property
    def t_max(self) -> float:
        """The last instant; of a field made periodic, the end of its last period."""
        first, last = float(self._clock.times[0]), float(self._clock.times[-1])
        return first + self._repeats * (last - first)

    def get_time_bounds(self) -> tuple[float, float]:
        """The first and the last instant."""
        return self.t_min, self.t_max

    def validate_time(self, t: float) -> bool:
        """Whether an instant lies within the record."""
        return self.t_min <= float(t) <= self.t_max

    def validate_data(self) -> bool:
        """True, or ValueError naming the first slice and node without a number."""
        bad = np.argwhere(~np.isfinite(np.asarray(self.data)).all(-1))
        if bad.size:
            slice_, node = (int(i) for i in bad[0])
            raise ValueError(
                f"{len(bad)} velocities are not finite, the first at data[{slice_}, "
                f"{node}]: repair them, or leave these nodes out"
            )
        self._require_fit()
        return True

    def __call__(self, a: Any, b: Any) -> Array:
        """Velocities at a time and positions, given in either order."""
        return self.evaluate(a, b)

    def evaluate(self, a: Any, b: Any) -> Array:
        """Velocities at a time and positions, given in either order."""
        positions, t = (b, a) if _is_time(a, b) else (a, b)
        return self.sample_at_positions(positions, _number(t))

    def sample_at_time(self, t: float) -> Float[Array, "nodes 3"]:
        """Velocities at all nodes and a time."""
        self._require_fit()
        return self._at_nodes(self._clock.moment(float(t)))

    def get_time_derivative(
        self, t: float, dt: float | None = None
    ) -> Float[Array, "nodes 3"]:
        """How fast velocities at all nodes change: the slope of the interpolant.

        It is exact, so the step `dt` of a difference quotient is not needed and does
        not matter. Where two intervals meet it is the slope of the later one.
        """
        del dt
        self._require_fit()
        return self._at_nodes(self._clock.slope(float(t)))

    def to_jax(self) -> "TimeSeriesField":
        """Itself: its arrays are JAX arrays on the device already."""
        return self

    def create_time_periodic_field(
        self,
        n_periods: int = 5,
        time_slice: tuple[float, float] | None = None,
        transition_smoothing: float = 0.0,
        target_duration: float | None = None,
    ) -> "TimeSeriesField":
        """A field that repeats this record, or the slices between two instants of it.

        Times restart at 0, and the period is the time from the first slice to the last.
        Time wraps around: nothing is stored twice, and the field goes on repeating
        after its `n_periods`, or as many as `target_duration` needs. Where the last
        slice differs from the first, a share `transition_smoothing` of all slices in
        [0, 1] blends each period's beginning with the mirrored end of the one before.
        """
        clock, times = self._clock, np.asarray(self._clock.times)
        first, last = _chosen(times, time_slice)
        kept = times[first:last] - times[first]
        period = float(kept[-1])
        count = _periods(n_periods, target_duration, period)
        values = self.frozen.values  # type: ignore[attr-defined]
        if last - first < len(times):
            values = values[first:last]
        smoothed = _smoothed(values, transition_smoothing)
        rules = clock.interpolation, "periodic"
        new = copy.copy(self)
        new._field = eqx.tree_at(
            lambda f: (f.values, f.clock),
            self._field,
            (smoothed, make_clock(kept, *rules)),
        )
        new._waiting, new._repeats = {}, count
        new._source_info = self._source_info | {
            "periodic_field": True,
            "original_period": period,
            "n_periods": count,
            "time_slice": time_slice,
            "transition_smoothing": transition_smoothing,
            "total_duration": count * period,
        }
        return new

    def _at_nodes(self, moment: Moment) -> Float[Array, "nodes 3"]:
        return self._scheme.unpack(_weighted(self._field.values, moment))[0]


@compile_once(max_traces=None)
def _weighted(values: Array, moment: Moment) -> Array:
    return blend_slices(values, moment)[0]


def _is_time(a: Any, b: Any) -> bool:
    """Whether the first of two arguments is the time, and the second the positions."""
    one, other = np.shape(a), np.shape(b)
    if len(one) != len(other):
        return len(one) < len(other)
    columns = [len(shape) == 1 and shape[0] in (2, 3) for shape in (one, other)]
    if columns[0] == columns[1]:
        raise ValueError(
            f"shapes {one} and {other}: give a time and positions (N, 3) or (N, 2)"
        )
    return columns[1]


def _number(t: Any) -> Numbers:
    if isinstance(t, float | int):
        return float(t)
    return t if hasattr(t, "dtype") else np.asarray(t, np.float64)


def _chosen(
    times: Float[np.ndarray, " slices"], time_slice: tuple[float, float] | None
) -> tuple[int, int]:
    """The slices between two instants, ends included, as a range of indices."""
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
    """The first slices drawn towards the mirrored last ones, fully so at the start."""
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


TimeDependentVelocityField = TimeSeriesField
TimeVaryingField = TimeSeriesField
