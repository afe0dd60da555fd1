"""Velocities on meshes of tetrahedra, hexahedra, prisms, pyramids or plane cells."""

import os
from collections.abc import Callable
from typing import Any, Literal, cast, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from jaxtrace.fields import mesh_cache
from jaxtrace.fields.base import Corner, RecordField
from jaxtrace.fields.box_tree import rows, select
from jaxtrace.fields.clock import Clock, Instant, make_clock
from jaxtrace.fields.locate import (
    Crossing,
    Locator,
    Place,
    close_seams,
    find,
    first_exit,
    hinted_wall,
    locate,
    make_locator,
    no_hint,
)
from jaxtrace.fields.mesh_boundary import closest_point
from jaxtrace.fields.mesh_cache import PreparedMesh
from jaxtrace.fields.reference_coordinates import clamp, open_records, refine, weights
from jaxtrace.fields.topology import (
    Elements,
    Mesh,
    check_points,
    coincident,
    make_mesh,
)
from jaxtrace.types import check_choice


def blend(
    values: Float[Array | np.ndarray, "slices points c"],
    nodes: Int[Array, "n nodes"],
    later: list[Array],
    instant: Instant,
) -> Float[Array, "n c"]:
    """Return values by the weights of nodes (of all but the first) and of slices."""
    total = None
    for k in range(instant.weights.shape[-1]):
        weight = jnp.asarray(instant.weights)[..., k].astype(values.dtype)
        part = _slice(values, nodes, later, jnp.asarray(instant.slices)[..., k])
        part = part * (weight[:, None] if weight.ndim else weight)
        total = part if total is None else total + part
    assert total is not None
    return total


def _slice(values: Any, nodes: Array, later: list[Array], index: Array) -> Array:
    """Return values of one slice, or of each particle's own."""
    slices, points, components = values.shape
    flat = jnp.asarray(values).reshape(-1, components)
    if slices > 1:
        first = index * points
        nodes = nodes + (first[:, None] if first.ndim else first)
    corners = rows(flat, nodes)
    origin = corners[:, 0]
    total = origin
    for i, share in enumerate(later):
        # Differences from the first node keep a constant field exactly constant.
        total = total + share[:, None] * (corners[:, i + 1] - origin)
    return total


def check_values(values: Any, points: int, dtype: Any) -> Float[np.ndarray, "t n 3"]:
    """Return values as (T, N, 3) in the dtype asked for, else JAX's default."""
    values = np.asarray(values)
    if values.ndim == 2:
        values = values[None]
    if values.ndim != 3 or values.shape[2] not in (2, 3):
        raise ValueError(
            f"values of shape {values.shape}: give (N, 3), or (T, N, 3) with times"
        )
    if values.shape[1] != points:
        raise ValueError(f"values of {values.shape[1]} nodes for {points} points")
    kept = np.dtype(values.dtype if dtype is None else dtype)
    if not np.issubdtype(kept, np.floating):
        kept = np.dtype(np.float32)
    known = np.dtype(jax.dtypes.canonicalize_dtype(kept))
    if dtype is not None and known != kept:
        raise ValueError(f"dtype {kept}: set jax_enable_x64 for numbers this wide")
    if values.shape[0] * points >= 2**31:
        raise ValueError(
            f"{values.shape[0]} slices of {points} nodes exceed 32-bit indices: "
            "load fewer slices"
        )
    missing = ((0, 0), (0, 0), (0, 3 - values.shape[2]))
    return np.pad(values.astype(known), missing)


Outside = Literal["nearest_element", "zero", "nan", "extrapolate"]
OUTSIDE = get_args(Outside)

# Reads values at cells, by the weights of all their nodes but the first.
Reader = Callable[[Array, list[Array]], Array]


def interpolate(
    locator: Locator,
    outside: Outside,
    x: Float[Array, "n dim"],
    place: Place,
    read: Reader,
) -> Float[Array, "n c"]:
    """Return what shape functions say at places; outside, what the rule says."""

    def answer(x: Array) -> Array:
        return _shaped(locator, outside, x, place, read)

    if outside in ("zero", "nan"):
        fill = 0.0 if outside == "zero" else np.nan
        return jnp.where((place.cell_hint >= 0)[:, None], answer(x), fill)
    near = _nearest(locator, x, place)
    if outside == "nearest_element":
        return answer(near)
    near = lax.stop_gradient(near)
    value, change = jax.jvp(answer, (near,), (x - near,))
    return value + change


def _nearest(locator: Locator, x: Array, place: Place) -> Array:
    """Return places outside moved to the closest point of the mesh."""
    outside = place.cell_hint < 0
    wall = hinted_wall(locator, place.cell_hint)
    return lax.cond(
        jnp.any(outside),
        lambda x: select(outside, closest_point(locator.walls, x, wall), x),
        lambda x: x,
        x,
    )


def _shaped(
    locator: Locator, outside: Outside, x: Array, place: Place, read: Reader
) -> Array:
    records = locator.records
    local = open_records(records, x, place.cell)
    guess = [place.coordinates[:, i] for i in range(place.coordinates.shape[1])]
    p = refine(records, local, guess)
    if records.warped and outside == "nearest_element":
        p = select(place.cell_hint < 0, clamp(records, local, p), p)
    return read(place.cell, weights(records, local, p))


Positions = Float[Array, "n 3"]
CellHint = Int[Array, " n"]


class MeshField(RecordField):
    """Velocities at the nodes of a mesh, interpolated by its cells' shape functions."""

    values: Float[Array | np.ndarray, "*batch slices points 3"]
    nodes: Int[Array | np.ndarray, "*batch cells nodes"]
    locator: Locator
    scale: Float[Array | np.ndarray, "*batch"]  # a power of two: lengths of order one
    corners: Float[Array | np.ndarray, "*batch 2 3"]
    clock: Clock
    axes: tuple[int, ...] = eqx.field(static=True)
    outside: Outside = eqx.field(static=True)
    searches = True
    blend_up_to = 8

    def start(self, positions: Positions) -> CellHint:
        """Return that no cell is known yet: particles are looked for everywhere."""
        return no_hint(positions.shape[:1])

    def find(self, positions: Positions, instant: Instant) -> CellHint:
        """Return the cells of particles, without the rest of a look-up."""
        del instant
        return find(self.locator, self.scaled(positions))

    def velocity(
        self, positions: Positions, instant: Instant, cell_hint: CellHint
    ) -> tuple[Positions, CellHint]:
        """Return velocities in the positions' dtype, and the cells found."""
        x = self.scaled(positions)
        place = locate(self.locator, x, cell_hint)

        def read(cell: Array, later: list[Array]) -> Array:
            return blend(self.values, rows(self.nodes, cell), later, instant)

        velocities = interpolate(self.locator, self.outside, x, place, read)
        return velocities.astype(positions.dtype), place.cell_hint

    def inside(self, positions: Positions, cell_hint: CellHint) -> Bool[Array, " n"]:
        """Return whether a cell holds the particle."""
        del positions
        return cell_hint >= 0

    def order(self, positions: Positions, cell_hint: CellHint) -> CellHint | None:
        """Return the cells: those close in number are close in memory."""
        del positions
        return jnp.maximum(cell_hint, 0)

    def bounds(self) -> tuple[Corner, Corner]:
        """Return the corners of the box around all nodes."""
        corners = np.asarray(self.corners, np.float64)
        return corners[0], corners[1]

    def first_exit(
        self,
        start: Positions,
        end: Positions,
        cell_hint: CellHint,
        part: CellHint | None = None,
    ) -> Crossing:
        """Return where straight paths first leave the mesh or a part of it."""
        scale = jnp.asarray(self.scale).astype(start.dtype)
        scaled = self.scaled(start), self.scaled(end)
        found = first_exit(self.locator, *scaled, cell_hint, part)
        if len(self.axes) == 3:
            return eqx.tree_at(lambda c: c.point, found, found.point / scale)
        # Along the third axis paths run on undisturbed.
        axes = np.asarray(self.axes)
        straight = start + found.fraction[:, None] * (end - start)
        point = straight.at[:, axes].set(found.point / scale)
        normal = jnp.zeros_like(point).at[:, axes].set(found.normal)
        both = (point, normal)
        return eqx.tree_at(lambda c: (c.point, c.normal), found, both)

    def scaled(self, positions: Positions) -> Float[Array, "n dim"]:
        """Return positions in the mesh's own unit of length, along the axes it has."""
        x = positions * jnp.asarray(self.scale).astype(positions.dtype)
        return x if len(self.axes) == 3 else x[:, np.asarray(self.axes)]


def make_mesh_field(
    points: Any,
    connectivity: Any,
    values: Any,
    *,
    offsets: Any = None,
    types: Any = None,
    kind: str | None = None,
    times: Any = None,
    outside: str = "nearest_element",
    dtype: Any = None,
    cache: str | os.PathLike[str] | None = None,
) -> MeshField:
    """Return a field of nodal values (N, 3) or (T, N, 3) on a mesh.

    Cells are rows (M, k) of nodes of one `kind`, or VTK's flat connectivity with
    `offsets` and `types`. Nodes at one place are one; `times` may be a clock. A large
    mesh is kept in the folder `cache`, if one is given, and read from there the next
    time.
    """
    check_choice("outside", outside, OUTSIDE)
    points = check_points(points)
    values = check_values(values, len(points), dtype)
    kept = values.dtype
    # Geometry is worked out in float64 from coordinates that are exact in the dtype of
    # the field, so that host and device agree on which side of a face a node lies.
    points = points.astype(kept).astype(np.float64)
    given = (connectivity, types, offsets)
    cells: Any = tuple(None if part is None else np.asarray(part) for part in given)
    elements = Elements(*cells, kind=kind)

    def prepare() -> PreparedMesh:
        return prepare_mesh(make_mesh(points, elements, coincident(points)), kept)

    if cache is None or cells[0].size < mesh_cache.SMALLEST:
        mesh = prepare()
    else:
        mesh = mesh_cache.prepared_mesh(cache, (points, *cells, kind, kept), prepare)
    return place_values(mesh, values, make_clock(times, slices=len(values)), outside)


def place_values(
    mesh: PreparedMesh, values: Float[np.ndarray, "t n 3"], clock: Clock, outside: str
) -> MeshField:
    """Return the field of values on a prepared mesh, on the device."""
    on_device = (values, mesh.nodes, mesh.locator, mesh.scale)
    # Not `jnp.asarray`, which compiles a program for each shape.
    table, nodes, locator, scale = jax.device_put(on_device)
    rule = cast(Outside, outside)
    return MeshField(table, nodes, locator, scale, mesh.corners, clock, mesh.axes, rule)


def prepare_mesh(
    mesh: Mesh, dtype: np.dtype, part: Int[np.ndarray, " cells"] | None = None
) -> PreparedMesh:
    """Return all of a field that does not depend on its values.

    Where `part` tells cells of different parts apart, each part is searched by itself.
    """
    used = np.zeros(len(mesh.points), bool)
    used[mesh.nodes] = True
    points = mesh.points[used]
    corners = np.stack([points.min(0), points.max(0)])
    # A power of two, hence exact, that makes the box of order one long.
    scale = float(2.0 ** -np.round(np.log2(np.ptp(corners, axis=0).max())))
    locator = make_locator(mesh, (mesh.points * scale)[:, mesh.axes], dtype, part)
    locator = close_seams(locator, mesh, part)
    return PreparedMesh(
        mesh.nodes, locator, np.asarray(scale, dtype), corners.astype(dtype), mesh.axes
    )
