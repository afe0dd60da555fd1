"""Velocities at nodes and instants whose arrays users may assign one at a time.

There is one copy of the truth, the frozen field; what is assigned goes into it at once,
or waits until arrays that belong together fit.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxrig.memory import tree_bytes
from jaxtrace.fields.base import AbstractField, Sampled
from jaxtrace.fields.blocks import check_points
from jaxtrace.fields.clock import Clock, make_clock
from jaxtrace.fields.schemes import Elements, Points, Scheme, Values, choose_scheme

MIB = 2**20


class NodalRecord(Sampled):
    """Arrays data (T, N, 3), times (T,) and positions (N, 3), and the field they make.

    Each may be assigned, and is checked then. While one has been assigned that does not
    fit the others - as between a new `data` with more slices and its new `times` - the
    field waits for the rest: using it is an error that names the shapes. An array equal
    to the one that is there changes nothing.
    """

    _scheme: Scheme
    _points: Points
    _field: Any

    def __init__(
        self,
        data: Any,
        times: Any,
        positions: Any,
        rules: tuple[str, str],
        elements: Elements | None = None,
        spatial_interpolation: str = "auto",
        outside: str | None = None,
    ) -> None:
        self.elements = elements
        self._choice, self._outside = spatial_interpolation, outside
        self._waiting: dict[str, Any] = {
            "data": check_data(data),
            "times": make_clock(np.asarray(times, np.float64), *rules),
            "positions": check_points(positions),
        }
        self._require_fit()
        self._settle()

    @property
    def frozen(self) -> AbstractField:
        """The field as the pytree that compiled code takes."""
        self._require_fit()
        return self._field

    @property
    def data(self) -> Float[Array, "slices nodes 3"]:
        """Velocities, slice by slice in the order of the nodes."""
        if "data" in self._waiting:
            return jnp.asarray(self._waiting["data"])
        return self._scheme.unpack(self._field.values)

    @data.setter
    def data(self, value: Any) -> None:
        self._assign("data", check_data(value))

    @property
    def times(self) -> Float[Array, " slices"]:
        """The instants of the slices."""
        return jnp.asarray(self._clock.times)

    @times.setter
    def times(self, value: Any) -> None:
        if not _same(value, self.times):
            self._reset_clock(times=np.asarray(value, np.float64))

    @property
    def positions(self) -> Float[Array, "nodes 3"]:
        """Where the nodes are."""
        return jnp.asarray(self._nodes)

    @positions.setter
    def positions(self, value: Any) -> None:
        if not _same(value, self.positions):
            self._assign("positions", check_points(value))

    # Names that scripts for separate copies on host and device assign as well.
    _data_dev = data
    _times_dev = times
    _pos_dev = positions

    @property
    def interpolation(self) -> str:
        """The rule between slices: "linear", "nearest" or "cubic"."""
        return self._clock.interpolation

    @interpolation.setter
    def interpolation(self, rule: str) -> None:
        self._reset_clock(interpolation=rule)

    @property
    def extrapolation(self) -> str:
        """The rule before the first slice and after the last."""
        return self._clock.extrapolation

    @extrapolation.setter
    def extrapolation(self, rule: str) -> None:
        self._reset_clock(extrapolation=rule)

    @property
    def T(self) -> int:
        """How many slices there are."""
        return self._data_shape[0]

    @property
    def N(self) -> int:
        """How many nodes there are."""
        return self._nodes.shape[0]

    @property
    def interpolation_scheme(self) -> str:
        """How velocities between nodes are made: "trilinear", "tetrahedra", ..."""
        return self._scheme.name

    def memory_usage_mb(self) -> float:
        """Memory that the field takes, look-up tables and nodes included, in MiB."""
        return (tree_bytes(self.frozen) + self._points.nbytes) / MIB

    @property
    def _clock(self) -> Clock:
        given = self._waiting.get("times")
        return self._field.clock if given is None else given

    @property
    def _nodes(self) -> Points:
        given = self._waiting.get("positions")
        return self._points if given is None else given

    @property
    def _data_shape(self) -> tuple[int, int]:
        if "data" in self._waiting:
            return self._waiting["data"].shape[:2]
        return self._field.values.shape[0], self._points.shape[0]

    def _reset_clock(self, **changes: Any) -> None:
        clock = self._clock
        now = {
            "times": np.asarray(clock.times),
            "interpolation": clock.interpolation,
            "extrapolation": clock.extrapolation,
        }
        self._assign("times", make_clock(**(now | changes)))

    def _assign(self, name: str, value: Any) -> None:
        before, settled = self._waiting, False
        self._waiting = {**before, name: value}
        if self._fits():
            try:
                self._settle()
                settled = True
            finally:
                if not settled:
                    self._waiting = before

    def _settle(self) -> None:
        """Make the field of what was assigned, reusing as much as can be."""
        waiting, scheme = self._waiting, None
        clock, points = self._clock, self._nodes
        if "positions" in waiting:
            given = waiting.get("data")
            data = self.data if given is None else given
            scheme = choose_scheme(points, self.elements, self._choice, self._outside)
            field = scheme.build(data, clock)
        else:
            field = eqx.tree_at(lambda f: f.clock, self._field, clock)
            if "data" in waiting:
                field = self._scheme.replace(field, waiting["data"])
        self._field, self._points, self._waiting = field, points, {}
        self._scheme = scheme or self._scheme

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


def check_data(data: Any) -> Values:
    """Velocities as (T, N, 3) in floating point, where they are."""
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
    """Whether an assigned array is the one that is shown."""
    given = np.asarray(value)
    return given.shape == there.shape and np.array_equal(given, np.asarray(there))
