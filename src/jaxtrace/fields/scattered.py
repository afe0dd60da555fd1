"""Velocities at scattered points: linear on a Delaunay mesh, or those of the nearest.

Linear interpolation is exact for linear fields within the hull of the points.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int
from scipy.spatial import Delaunay, QhullError

from jaxtrace.fields.base import Corner, RecordField
from jaxtrace.fields.box_tree import (
    Tree,
    build_tree,
    descend,
    distances,
    rows,
    select,
    traverse,
)
from jaxtrace.fields.cells import KINDS
from jaxtrace.fields.clock import Clock, Instant
from jaxtrace.fields.mesh import (
    MeshField,
    blend,
    blend_field,
    check_clock,
    check_values,
    make_mesh_field,
)
from jaxtrace.fields.mesh_boundary import dot
from jaxtrace.fields.topology import check_points, relative_volumes
from jaxtrace.types import check_choice

SLIVER = 64  # roundings of its longest edge's cube that a cell's volume must exceed

Positions = Float[Array, "n 3"]
CellHint = Int[Array, " n"]


class NearestField(RecordField):
    """The velocity of the nearest point, exactly; particles remember that point."""

    values: Float[Array | np.ndarray, "*batch slices points 3"]
    points: Float[Array | np.ndarray, "*batch points 3"]
    tree: Tree
    clock: Clock

    def start(self, positions: Positions) -> CellHint:
        """Return a point that is near, to begin with."""
        return descend(self.tree, lax.stop_gradient(positions))

    def at_instant(
        self, instant: Instant, particles: int
    ) -> tuple["NearestField", Instant]:
        """Blend the slices once, if there are few points per particle."""
        return blend_field(self, instant, particles)

    def velocity(
        self, positions: Positions, instant: Instant, cell_hint: CellHint
    ) -> tuple[Positions, CellHint]:
        """Return velocities of the nearest points, and which points these are."""
        near = self._nearest(lax.stop_gradient(positions), cell_hint)
        found = blend(self.values, near[:, None], [], instant)
        return found.astype(positions.dtype), near

    def bounds(self) -> tuple[Corner, Corner]:
        """Return the corners of the box around all points."""
        points = np.asarray(self.points, np.float64)
        return points.min(0), points.max(0)

    def _nearest(self, x: Positions, guess: CellHint) -> CellHint:
        def touches(lanes: tuple[Any, ...], boxes: Array) -> Array:
            return distances(x, boxes) < lanes[1]

        def visit(lanes: tuple[Any, ...], item: Array, here: Array) -> tuple[Any, ...]:
            offset = x - rows(self.points, item).astype(x.dtype)
            length = dot(offset, offset)
            better = here & (length < lanes[1])
            return select(better, (item, length), lanes), jnp.zeros_like(here)

        known = jnp.all(jnp.isfinite(x), -1)
        lanes = (guess, jnp.full(x.shape[0], np.inf, x.dtype))
        first = jnp.where(known, guess, -1)
        return traverse(self.tree, lanes, known, touches, visit, first)[0]


def make_scattered_field(
    points: Any,
    values: Any,
    *,
    times: Any = None,
    spatial_interpolation: str = "linear",
    interpolation: str = "linear",
    extrapolation: str = "constant",
    outside: str = "nearest_element",
    dtype: Any = None,
) -> MeshField | NearestField:
    """Return a field of values (N, 3) or (T, N, 3) at points that form no grid or mesh.

    Points in a plane of constant x, y or z make a field of that plane.
    """
    check_choice("spatial_interpolation", spatial_interpolation, ("linear", "nearest"))
    points = check_points(points)
    values = check_values(values, len(points), dtype)
    if spatial_interpolation == "nearest":
        kept = points.astype(values.dtype)
        tree = build_tree(kept, kept)
        clock = check_clock(times, len(values), interpolation, extrapolation)
        values, kept, tree = jax.device_put((values, kept, tree))
        return NearestField(values, kept, tree, clock)
    return make_mesh_field(
        points,
        triangulate(points, values.dtype),
        values,
        times=times,
        interpolation=interpolation,
        extrapolation=extrapolation,
        outside=outside,
    )


def triangulate(
    points: Float[np.ndarray, "points 3"], dtype: Any
) -> Int[np.ndarray, "cells corners"]:
    """Return Delaunay cells of points: triangles in a plane, or tetrahedra."""
    extent = np.ptp(points, axis=0)
    varying = np.flatnonzero(extent > 1e-6 * extent.max())
    if len(varying) < 2:
        raise ValueError(
            f"points that extend {extent} along x, y and z lie on a line: linear "
            'interpolation needs an area; use spatial_interpolation="nearest"'
        )
    # Qhull's tolerance grows with the largest coordinate: far from the origin it would
    # merge points that are apart.
    plane = (points - points.mean(0))[:, varying] / extent.max()
    try:
        cells = Delaunay(plane).simplices.astype(np.int64)
    except QhullError as error:
        raise ValueError(
            f"{len(points)} points span no area or volume to interpolate in: give "
            'points that do, or use spatial_interpolation="nearest"'
        ) from error
    kind = KINDS["triangle" if len(varying) == 2 else "tetra"]
    thick = relative_volumes(plane, cells, kind) > SLIVER * np.finfo(dtype).eps
    return cells[thick]
