"""Velocities on tensor-product grids: uniform or rectilinear axes, steady or not.

Each component is a table of its own, so that a look-up is a handful of loads from flat
arrays that the compiler fuses into one loop over particles.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import dtypes
from jaxtyping import Array, Bool, Float, Int, UInt8, UInt32

from jaxtrace.fields.base import CellHint, Corner, Field, RecordField
from jaxtrace.fields.clock import Clock, Instant, make_clock
from jaxtrace.fields.coast import land_cells, slide_corners
from jaxtrace.sphere import (
    Sphere,
    chosen_radius,
    close_longitudes,
    make_sphere,
    reach_poles,
)
from jaxtrace.types import check_choice

OUTSIDE = ("clamp", "zero", "nan", "periodic", "extrapolate")
SHORES = ("beach", "slide", "reflect", "previous", "absorb", "free")
SHORE_ALIASES = {"stop": "beach", "unbeach": "slide"}

# Up to so many nodes per particle slices are blended whole: on two cores the two ways
# cross between three and five. A GPU has the bandwidth to blend many more: 7,500
# particles by 1,500 frames take 45 ms instead of 48 on an H200.
NODES_PER_PARTICLE = 4
NODES_PER_PARTICLE_ON_GPU = 64
LARGEST_INDEX = 2**31 - 1


class Axis(eqx.Module):
    """The coordinates of a grid along one direction.

    An axis with one node is constant; `period` is nothing where it does not repeat.
    `ends` are where the axis is known: its outer nodes, or on a sphere beyond them.
    """

    nodes: Float[Array | np.ndarray, " nodes"]
    per_node: Float[Array | np.ndarray, ""]  # one over the spacing of even nodes
    period: Float[Array | np.ndarray, ""]
    ends: Float[Array | np.ndarray, " 2"]
    even: bool = eqx.field(static=True)

    def place(
        self, x: Float[Array, " n"], outside: str
    ) -> tuple[Int[Array, " n"], Float[Array, " n"]]:
        """Return the interval of each coordinate and the fraction into it."""
        count = self.nodes.shape[0]
        if count == 1:
            return jnp.zeros(x.shape, np.int32), jnp.zeros_like(x)
        nodes = jnp.asarray(self.nodes, x.dtype)
        if outside == "periodic":
            x = nodes[0] + jnp.mod(x - nodes[0], jnp.asarray(self.period, x.dtype))
        elif outside != "extrapolate":
            x = jnp.clip(x, nodes[0], nodes[-1])
        if self.even:
            # An even axis is indexed by arithmetic: no search, no dependent load.
            along = (x - nodes[0]) * jnp.asarray(self.per_node, x.dtype)
            # Rounded and clipped as a float: every component's loop needs the
            # fraction, and a conversion to integers costs a CPU branches on NaN.
            low = jnp.clip(jnp.floor(along), 0, count - 2)
            return low.astype(np.int32), along - low
        # Unrolled bisection fuses into the loop over particles; a while loop does not.
        found = jnp.searchsorted(nodes, x, side="right", method="scan_unrolled")
        index = jnp.clip(found.astype(np.int32) - 1, 0, count - 2)
        low = nodes.at[index].get(mode="promise_in_bounds")
        high = nodes.at[index + 1].get(mode="promise_in_bounds")
        return index, (x - low) / (high - low)

    def holds(self, x: Float[Array, " n"]) -> Bool[Array, " n"]:
        """Return whether coordinates lie on the axis, ends included."""
        if self.nodes.shape[0] == 1:
            return jnp.ones(x.shape, bool)
        low, high = jnp.asarray(self.ends, x.dtype)
        return (x >= low) & (x <= high)


class TableField(RecordField):
    """A field whose values (slices, components, places) are looked up one by one."""

    @property
    def blend_up_to(self) -> int:  # type: ignore[override]
        """Return how many places per particle it pays to blend beforehand."""
        gpu = jax.default_backend() == "gpu"
        return NODES_PER_PARTICLE_ON_GPU if gpu else NODES_PER_PARTICLE

    # Typed as Any, as in a record: what is declared here would come first of all.
    def _load(
        self: Any,
        component: int,
        places: Sequence[UInt32[Array, " n"]],
        instant: Instant,
    ) -> list[Float[Array, " n"]]:
        """Return values at places, at one instant for all or for each particle.

        Slices and weights are chosen once for all places: XLA would find them to be the
        same, but tracing them 48 times took longer than the rest of a step.
        """
        dtype = self.values.dtype
        if self.values.shape[0] == 1 and self.clock.extrapolation == "constant":
            table = self.values[0, component]
            return [table.at[i].get(mode="promise_in_bounds") for i in places]
        blended = [jnp.zeros((), dtype)] * len(places)
        for s in range(instant.slices.shape[-1]):
            weight = instant.weights[..., s].astype(dtype)
            chosen = instant.slices[..., s]
            if instant.time.ndim:
                table = self.values[:, component].reshape(-1)
                first = chosen.astype(np.uint32) * self.values.shape[2]
                rows = [first + i for i in places]
            else:
                table, rows = self.values[chosen, component], places
            found = (table.at[i].get(mode="promise_in_bounds") for i in rows)
            blended = [b + weight * x for b, x in zip(blended, found, strict=True)]
        return blended


class GridField(TableField):
    """Velocities at the nodes of a grid, trilinear between them.

    On a sphere the axes are longitude, latitude and z; rows are held to the poles.
    """

    values: Float[Array, "slices 3 nodes"]
    axes: tuple[Axis, Axis, Axis]
    clock: Clock
    outside: str = eqx.field(static=True, default="clamp")
    sphere: Sphere | None = None  # type: ignore[override]
    land: Bool[Array | np.ndarray, " nodes"] | None = None  # cells, by lowest corner
    shore: str = eqx.field(static=True, default="beach")  # type: ignore[override]
    walls: UInt8[Array | np.ndarray, " nodes"] | None = None  # faces that are land
    slip: float = eqx.field(static=True, default=0.0)

    slips = True

    @property
    def shape(self) -> tuple[int, int, int]:
        """Return the node counts; periodic axes hold their first node twice."""
        x, y, z = (axis.nodes.shape[0] for axis in self.axes)
        return x, y, z

    def bounds(self) -> tuple[Corner, Corner]:
        """Return the corners of the grid; along a repeating axis, one period."""
        pairs = [(float(axis.nodes[0]), float(axis.nodes[-1])) for axis in self.axes]
        if self.sphere is not None:
            pairs[1] = float(self.axes[1].ends[0]), float(self.axes[1].ends[1])
        low, high = np.array(pairs, np.float64).T
        return low, high

    def velocity(
        self, positions: Float[Array, "n 3"], instant: Instant, cell_hint: CellHint
    ) -> tuple[Float[Array, "n 3"], CellHint]:
        """Return trilinear in space, blended in time."""
        columns = self._columns(positions)
        (i, x), (j, y), (k, z) = (axis.place(x, self.outside) for axis, x in columns)
        x, y, z = (share.astype(self.values.dtype) for share in (x, y, z))
        _, ny, nz = self.shape
        # Unsigned: JAX would test each of 48 signed indices for being negative.
        base = ((i * ny + j) * nz + k).astype(np.uint32)
        strides = (ny * nz, nz, 1)
        steps = [0 if n == 1 else s for n, s in zip(self.shape, strides, strict=True)]
        offsets = [sum(p) for p in itertools.product(*((0, s) for s in steps))]
        parts = []
        for c in range(3):
            corners = self._load(c, [base + o for o in offsets], instant)
            if self.walls is not None:
                faces = jnp.asarray(self.walls).at[base].get(mode="promise_in_bounds")
                corners = slide_corners(corners, c, faces, self.slip, self.shape)
            parts.append(trilinear(corners, x, y, z))
        found = jnp.stack(parts, 1).astype(positions.dtype)
        if self.outside in ("zero", "nan"):
            fill = jnp.asarray(0.0 if self.outside == "zero" else np.nan, found.dtype)
            found = jnp.where(self.inside(positions, ())[:, None], found, fill)
        return found, cell_hint

    def inside(
        self, positions: Float[Array, "n 3"], cell_hint: CellHint
    ) -> Bool[Array, " n"]:
        """Return what lies within the grid, faces included; all of it if it repeats."""
        del cell_hint
        if self.outside == "periodic":
            return jnp.ones(positions.shape[0], bool)
        held = [axis.holds(x) for axis, x in self._columns(positions)]
        return held[0] & held[1] & held[2]

    def order(
        self, positions: Float[Array, "n 3"], cell_hint: CellHint
    ) -> Int[Array, " n"] | None:
        """Return the number of each position's cell."""
        del cell_hint
        columns = self._columns(positions)
        i, j, k = (axis.place(x, self.outside)[0] for axis, x in columns)
        return (i * self.shape[1] + j) * self.shape[2] + k

    def on_land(
        self, positions: Float[Array, "n 3"], cell_hint: CellHint | None = None
    ) -> Bool[Array, " n"] | None:
        """Return which positions are in cells all of whose corners are land."""
        del cell_hint
        if self.land is None:
            return None
        return jnp.asarray(self.land).at[self.order(positions, ())].get(mode="clip")

    def _columns(
        self, positions: Float[Array, "n 3"]
    ) -> Iterator[tuple[Axis, Float[Array, " n"]]]:
        """Return each axis and the coordinates along it."""
        x, y, z = (positions[:, c] for c in range(3))
        x = x if self.sphere is None else self.sphere.wrap(x)
        return zip(self.axes, (x, y, z), strict=True)


def trilinear(q: Sequence[Array], x: Array, y: Array, z: Array) -> Array:
    """Interpolate between eight corners, the last axis fastest."""
    # a + x (b - a), not (1 - x) a + x b: a constant field stays constant to the bit.
    edges = [a + x * (b - a) for a, b in zip(q[:4], q[4:], strict=True)]
    faces = [a + y * (b - a) for a, b in zip(edges[:2], edges[2:], strict=True)]
    return faces[0] + z * (faces[1] - faces[0])


def make_grid_field(
    values: Any,
    axes: Sequence[Any],
    times: Any = None,
    *,
    outside: str = "clamp",
    dtype: Any = None,
    radius: float | None = None,
    land: Bool[np.ndarray, "nx ny nz"] | None = None,
    shore: str = "beach",
) -> GridField:
    """Make a field of velocities ([T,] Nx, Ny, Nz, 2 or 3) and times, or a clock.

    With a radius the axes are longitude, latitude and z on a sphere; `land` marks nodes
    there, and `shore` says what becomes of particles in cells of nothing else.
    """
    check_choice("land", shore, SHORES)
    check_choice("outside", outside, OUTSIDE)
    made = [make_axis(a, name, outside) for a, name in zip(axes, "xyz", strict=True)]
    sphere = None
    if radius is not None:
        made, sphere = _wrap_round(made, outside, radius)
    values = np.asarray(values) if not hasattr(values, "devices") else values
    if times is None:
        values = values[None]
    shape = tuple(np.asarray(a).size for a in axes)
    if values.ndim == 4 and shape[2] == 1:
        values = values[:, :, :, None]
    if values.ndim != 5 or values.shape[1:4] != shape or values.shape[4] not in (2, 3):
        raise ValueError(
            f"velocities of shape {tuple(values.shape)} do not fit axes of "
            f"{shape} nodes: give ([slices,] {shape[0]}, {shape[1]}, {shape[2]}, 3)"
        )
    clock = make_clock(times, slices=values.shape[0])
    table = grid_table(values, [a.nodes.shape[0] for a in made], dtype)
    if table.shape[0] * table.shape[2] > LARGEST_INDEX:
        raise ValueError(
            f"{table.shape[0]} slices of {table.shape[2]} nodes exceed 32-bit "
            "indices: stream the slices, or load fewer"
        )
    cells = None
    if land is not None:
        sizes = [axis.nodes.size for axis in made]
        cells = jnp.asarray(land_cells(land, sizes).ravel())
    x, y, z = made
    table = jnp.asarray(table, dtype)
    return GridField(table, (x, y, z), clock, outside, sphere, cells, shore)


def _wrap_round(
    axes: list[Axis], outside: str, radius: float
) -> tuple[list[Axis], Sphere]:
    """Return axes on a sphere: longitudes closed, rows and levels held to ends."""
    if outside == "periodic":
        raise ValueError(
            "outside='periodic' is for flat grids: on a sphere longitudes close by "
            "themselves; leave it out"
        )
    x, y = (np.asarray(axis.nodes) for axis in axes[:2])
    round_ = close_longitudes(x)
    lon = make_axis(round_.nodes, "longitude", outside)
    if round_.closed:
        lon = eqx.tree_at(lambda a: a.ends, lon, np.array([-np.inf, np.inf]))
    lat = eqx.tree_at(lambda a: a.ends, axes[1], np.array(reach_poles(y)))
    up, top = hold_levels(axes[2])
    return [lon, lat, up], make_sphere(radius, round_.west, top)


def hold_levels(axis: Axis) -> tuple[Axis, float]:
    """Return a vertical axis with the ends of its levels, and the height of its top.

    A level holds halfway to the next one, also beyond the first and the last; an axis
    of depths ends at the surface, where particles stay.
    """
    z = np.asarray(axis.nodes)
    if z.size == 1:
        return axis, 0.0 if z[0] < 0 else np.inf
    low, high = z[0] - (z[1] - z[0]) / 2, z[-1] + (z[-1] - z[-2]) / 2
    top = np.inf
    if z[-1] <= 0:
        top = max(min(high, 0.0), z[-1])
        high = np.inf
    return eqx.tree_at(lambda a: a.ends, axis, np.array([low, high])), top


def grid_table(
    values: Any, shape: Sequence[int], dtype: Any = None
) -> Float[Array | np.ndarray, "t 3 nodes"]:
    """Return components first, nodes flat, periodic axes closed by a layer."""
    if dtype is None:
        known = np.issubdtype(values.dtype, np.floating)
        dtype = dtypes.canonicalize_dtype(values.dtype if known else np.float32)
    xp: Any = jnp if hasattr(values, "devices") else np
    for axis, size in enumerate(shape, start=1):
        if size == values.shape[axis] + 1:
            first = xp.take(values, xp.asarray([0]), axis)
            values = xp.concatenate([values, first], axis)
    if values.shape[4] == 2:
        values = xp.concatenate([values, xp.zeros_like(values[..., :1])], 4)
    flat = xp.moveaxis(values, 4, 1).reshape(values.shape[0], 3, -1)
    return flat.astype(dtype, copy=False)


def make_axis(nodes: Any, name: str, outside: str) -> Axis:
    """Return a checked axis; a periodic one is closed by its first spacing."""
    nodes = np.atleast_1d(np.asarray(nodes, np.float64))
    if nodes.ndim != 1 or nodes.size == 0 or not np.all(np.isfinite(nodes)):
        raise ValueError(f"the {name} axis needs one finite coordinate per node")
    steps = np.diff(nodes)
    if np.any(steps <= 0):
        at = int(np.argmax(steps <= 0))
        raise ValueError(
            f"the {name} axis must increase: {nodes[at]} is followed by {nodes[at + 1]}"
        )
    single = np.array_equal(nodes, nodes.astype(np.float32))
    if outside == "periodic" and nodes.size > 1:
        nodes = np.append(nodes, nodes[-1] + steps[0])
    width = nodes[-1] - nodes[0]
    spacing = width / max(nodes.size - 1, 1)
    # Axes kept in single precision are even to its rounding of their coordinates,
    # others to what rounding leaves of spacings that were summed up.
    eps = 8 * np.finfo(np.float32).eps if single else nodes.size * np.finfo(float).eps
    slack = min(eps * np.abs(nodes).max(), 1e-3 * spacing)
    exact = nodes[0] + spacing * np.arange(nodes.size)
    even = bool(np.all(np.abs(nodes - exact) <= slack))
    per_node = np.asarray(1 / spacing if spacing else 0.0)
    return Axis(nodes, per_node, np.asarray(width), nodes[[0, -1]], even)


class StructuredGridSampler(Field):
    """Velocities on a grid with straight axes, uniform or not, steady or in time.

    `velocity_data` is (Nx, Ny, Nz, 3), or (T, Nx, Ny, Nz, 3) with `times`; with one
    node along z, that axis may be left out. Two components are three with w = 0.
    `bounds_handling` says what is answered beyond the grid: "clamp" (the value at the
    nearest point of its surface), "zero", "nan", "extrapolate", or "periodic" (the
    first node follows one spacing after the last).
    With geometry="sphere" the axes are longitude and latitude in degrees and z in
    meters, velocities are in meters per second east, north and up, and `radius` is that
    of the sphere: a grid that goes round closes, rows are held to the poles, and
    particles that leave are absorbed. Beyond its times a sphere is an error unless
    `extrapolation` is given, and other grids stay as they are at the ends.
    """

    def __init__(
        self,
        velocity_data: Any,
        grid_x: Any,
        grid_y: Any,
        grid_z: Any = 0.0,
        bounds_handling: str = "clamp",
        *,
        times: Any = None,
        interpolation: str = "linear",
        extrapolation: str | None = None,
        dtype: Any = None,
        geometry: str = "flat",
        radius: float | None = None,
    ) -> None:
        given = (grid_x, grid_y, grid_z)
        axes = [np.atleast_1d(np.asarray(axis, np.float64)) for axis in given]
        self.grid_x, self.grid_y, self.grid_z = axes
        if times is not None:
            usual = "constant" if geometry == "flat" else "error"
            times = make_clock(times, interpolation, extrapolation or usual)
        self._frozen = make_grid_field(
            velocity_data,
            axes,
            times,
            outside=bounds_handling,
            dtype=dtype,
            radius=chosen_radius(geometry, radius),
        )

    @property
    def frozen(self) -> GridField:
        """Return the field as the pytree that compiled code takes."""
        return self._frozen

    @property
    def times(self) -> Float[np.ndarray, " slices"] | None:
        """Return the instants of the slices; None if the field is steady."""
        times = np.asarray(self._frozen.clock.times)
        return times if len(times) > 1 else None

    @property
    def interpolation_scheme(self) -> str:
        """Return how velocities between nodes are made."""
        return "trilinear"
