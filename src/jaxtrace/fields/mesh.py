"""Velocities on meshes of tetrahedra, hexahedra, prisms, pyramids or plane cells."""

from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jaxtrace.fields.base import AbstractField, Corner
from jaxtrace.fields.blocks import check_points
from jaxtrace.fields.clock import Clock, Moment, Numbers
from jaxtrace.fields.crossing import Crossing, trace
from jaxtrace.fields.locate import Locator, know_nothing, locate, make_locator
from jaxtrace.fields.nodal import blend, blend_field, check_clock, check_values
from jaxtrace.fields.seams import close_seams
from jaxtrace.fields.search import rows
from jaxtrace.fields.shapes import Outside, check_outside, interpolate
from jaxtrace.fields.topology import Mesh, coincident, make_mesh
from jaxtrace.fields.walls import Patches, boundary_patches

Positions = Float[Array, "n 3"]
Remembered = Int[Array, " n"]


class MeshField(AbstractField):
    """Velocities at the nodes of a mesh, interpolated by its cells' shape functions."""

    values: Float[Array | np.ndarray, "*batch slices points 3"]
    nodes: Int[Array | np.ndarray, "*batch cells nodes"]
    locator: Locator
    scale: Float[Array | np.ndarray, "*batch"]  # a power of two: lengths of order one
    corners: Float[Array | np.ndarray, "*batch 2 3"]
    clock: Clock
    axes: tuple[int, ...] = eqx.field(static=True)
    outside: Outside = eqx.field(static=True)

    def moment(self, time: Numbers) -> Moment:
        """An instant as slices of the record and their weights."""
        return self.clock.moment(time)

    def start(self, positions: Positions) -> Remembered:
        """No cell is known yet: particles are looked for everywhere."""
        return know_nothing(positions.shape[:1])

    def still(self, moment: Moment, particles: int) -> tuple["MeshField", Moment]:
        """The field with its slices blended, if there are few nodes for the work."""
        return blend_field(self, moment, particles)

    def velocity(
        self, positions: Positions, moment: Moment, memory: Remembered
    ) -> tuple[Positions, Remembered]:
        """Velocities in the dtype of the positions, and the cells they came from."""
        x = self.scaled(positions)
        place = locate(self.locator, x, memory)

        def read(cell: Array, later: list[Array]) -> Array:
            return blend(self.values, rows(self.nodes, cell), later, moment)

        velocities = interpolate(self.locator, self.outside, x, place, read)
        return velocities.astype(positions.dtype), place.memory

    def inside(self, positions: Positions, memory: Remembered) -> Bool[Array, " n"]:
        """Whether a cell holds the particle."""
        del positions
        return memory >= 0

    def order(self, positions: Positions, memory: Remembered) -> Remembered | None:
        """The cell of each particle; cells with close numbers lie close in memory."""
        del positions
        return jnp.maximum(memory, 0)

    def bounds(self) -> tuple[Corner, Corner]:
        """The corners of the box around all nodes."""
        corners = np.asarray(self.corners, np.float64)
        return corners[0], corners[1]

    def time_bounds(self) -> tuple[float, float]:
        """The first and the last instant of the record."""
        return self.clock.bounds()

    def trace(
        self,
        start: Positions,
        end: Positions,
        memory: Remembered,
        part: Remembered | None = None,
    ) -> Crossing:
        """Where straight paths first leave the mesh (or part of it), if they do."""
        scale = jnp.asarray(self.scale).astype(start.dtype)
        scaled = self.scaled(start), self.scaled(end)
        found = trace(self.locator, *scaled, memory, part)
        if len(self.axes) == 3:
            return eqx.tree_at(lambda c: c.point, found, found.point / scale)
        # Along the third axis paths run on undisturbed.
        axes = np.asarray(self.axes)
        straight = start + found.fraction[:, None] * (end - start)
        point = straight.at[:, axes].set(found.point / scale)
        normal = jnp.zeros_like(point).at[:, axes].set(found.normal)
        both = (point, normal)
        return eqx.tree_at(lambda c: (c.point, c.normal), found, both)

    @property
    def boundary_faces(self) -> Patches:
        """The boundary of the mesh, in triangles or edges, as arrays on the host."""
        level = np.asarray(self.corners[0], np.float64)
        walls = self.locator.walls
        return boundary_patches(walls, float(self.scale), self.axes, level)

    def scaled(self, positions: Positions) -> Float[Array, "n dim"]:
        """Positions in the mesh's own unit of length, along the axes it has."""
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
    interpolation: str = "linear",
    extrapolation: str = "constant",
    outside: str = "nearest_element",
    thin_walls: bool = False,
    dtype: Any = None,
) -> MeshField:
    """A field of nodal values (N, 3) or (T, N, 3) on a mesh.

    Cells are rows (M, k) of nodes of one `kind`, or VTK's flat connectivity with
    `offsets` and `types`. Nodes at one place are one, unless `thin_walls` says that
    those which differ in value bound the mesh.
    """
    check_outside(outside)
    points = check_points(points)
    values = check_values(values, len(points), dtype)
    kept = values.dtype
    points = points.astype(kept).astype(np.float64)
    same = coincident(points, values if thin_walls else None)
    mesh = make_mesh(points, connectivity, offsets, types, kind, same)
    corners = box_around(mesh)
    scale = unit_scale(corners)
    locator = make_locator(mesh, (points * scale)[:, mesh.axes], kept)
    locator = close_seams(locator, mesh)
    device = jax.tree.map(jnp.asarray, (values, mesh.nodes, locator))
    return MeshField(
        device[0],
        device[1],
        device[2],
        jnp.asarray(scale, kept),
        corners.astype(kept),
        check_clock(times, len(values), interpolation, extrapolation),
        mesh.axes,
        cast(Outside, outside),
    )


def box_around(mesh: Mesh) -> Float[np.ndarray, "2 3"]:
    """The corners of the box around the nodes that cells use."""
    used = mesh.points[np.unique(mesh.nodes)]
    return np.stack([used.min(0), used.max(0)])


def unit_scale(corners: Float[np.ndarray, "2 3"]) -> float:
    """The power of two that makes a box about as long as one: it rounds nothing."""
    return float(2.0 ** -np.round(np.log2(np.ptp(corners, axis=0).max())))
