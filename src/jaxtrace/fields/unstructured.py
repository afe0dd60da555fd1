"""Fields on meshes and at scattered points as users make them: nodes, and values.

Between points without elements it is linear on a Delaunay mesh, which is exact for
linear fields within their hull, or the value of the nearest.
"""

import os
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int
from scipy.spatial import Delaunay, QhullError

from jaxtrace.fields import box_tree
from jaxtrace.fields.base import AbstractField, Corner, Field, RecordField
from jaxtrace.fields.box_tree import Tree, rows, select
from jaxtrace.fields.cells import KINDS
from jaxtrace.fields.clock import Clock, Instant, make_clock, steady_clock
from jaxtrace.fields.mesh import MeshField, blend, check_values, make_mesh_field
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
    blend_up_to = 8

    def start(self, positions: Positions) -> CellHint:
        """Return a point that is near, to begin with."""
        return box_tree.descend(self.tree, lax.stop_gradient(positions))

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
            return box_tree.distances(x, boxes) < lanes[1]

        def visit(lanes: tuple[Any, ...], item: Array, here: Array) -> tuple[Any, ...]:
            offset = x - rows(self.points, item).astype(x.dtype)
            length = dot(offset, offset)
            better = here & (length < lanes[1])
            return select(better, (item, length), lanes), jnp.zeros_like(here)

        known = jnp.all(jnp.isfinite(x), -1)
        lanes = (guess, jnp.full(x.shape[0], np.inf, x.dtype))
        first = jnp.where(known, guess, -1)
        return box_tree.traverse(self.tree, lanes, known, touches, visit, first)[0]


def make_scattered_field(
    points: Any,
    values: Any,
    *,
    times: Any = None,
    spatial_interpolation: str = "linear",
    outside: str = "nearest_element",
    dtype: Any = None,
) -> MeshField | NearestField:
    """Return a field of values (N, 3) or (T, N, 3) at points that form no grid or mesh.

    Points in a plane of constant x, y or z make a field of that plane; `times` may be a
    clock.
    """
    check_choice("spatial_interpolation", spatial_interpolation, ("linear", "nearest"))
    points = check_points(points)
    values = check_values(values, len(points), dtype)
    if spatial_interpolation == "nearest":
        kept = points.astype(values.dtype)
        clock = make_clock(times, slices=len(values))
        tree = box_tree.build_tree(kept, kept)
        values, kept, tree = jax.device_put((values, kept, tree))
        return NearestField(values, kept, tree, clock)
    cells = triangulate(points, values.dtype)
    return make_mesh_field(points, cells, values, times=times, outside=outside)


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


@dataclass(frozen=True, eq=False)
class UnstructuredMesh:
    """Nodes (N, 2 or 3) and elements (M, k) of one type, linear or of order 2.

    `etype` is "triangle", "quad", "tetra", "hexahedron", "wedge" or "pyramid". Elements
    of several types are VTK's flat list of nodes with `cell_types` and `cell_offsets`
    in place of `etype`. Without elements it is a cloud of points.
    """

    nodes: Any
    elements: Any = None
    etype: str | None = None
    order: int = 1
    cell_types: Any = None
    cell_offsets: Any = None

    @property
    def kind(self) -> str | None:
        """Return the type and order of all elements; None if they differ."""
        if self.elements is None or self.etype is None:
            return None
        prefix = {1: "", 2: "quadratic_"}.get(self.order, f"order-{self.order} ")
        return f"{prefix}{self.etype}"


class UnstructuredField(Field):
    """Velocities on a mesh, by the shape functions of its elements.

    With `values` (N, 3), or (T, N, 3) and `times`, it is a field that trackers take;
    without, `sample(positions, nodal_values)` interpolates whatever is given. Positions
    beyond the mesh get what `outside` says: the closest point of it
    ("nearest_element"), "zero", "nan" or "extrapolate".

    A mesh without elements is interpolated on Delaunay's simplices of its nodes, or by
    the nearest node if `spatial_interpolation` is "nearest". A large mesh of elements
    is kept in the folder `cache`, and read from there the next time.
    """

    def __init__(
        self,
        mesh: UnstructuredMesh,
        values: Any = None,
        times: Any = None,
        *,
        spatial_interpolation: str = "linear",
        outside: str = "nearest_element",
        interpolation: str = "linear",
        extrapolation: str = "constant",
        dtype: Any = None,
        cache: str | os.PathLike[str] | None = None,
    ) -> None:
        self.mesh = mesh
        self.has_values = values is not None
        if values is None:
            values, times = np.zeros((len(mesh.nodes), 3)), None
        if times is not None:
            times = make_clock(times, interpolation, extrapolation)
        rules: dict[str, Any] = {"times": times, "outside": outside, "dtype": dtype}
        if mesh.elements is None:
            rules["spatial_interpolation"] = spatial_interpolation
            self._frozen = make_scattered_field(mesh.nodes, values, **rules)
            return
        self._frozen = make_mesh_field(
            mesh.nodes,
            mesh.elements,
            values,
            kind=mesh.kind,
            types=mesh.cell_types,
            offsets=mesh.cell_offsets,
            cache=cache,
            **rules,
        )

    @property
    def frozen(self) -> AbstractField:
        """Return the field as the pytree that compiled code takes."""
        if not self.has_values:
            raise ValueError(
                "this field has no values: make it with values=(N, 3), or sample it "
                "with nodal values"
            )
        return self._frozen

    def contains(self, positions: Any, t: Any = 0.0) -> Bool[Array, " n"]:
        """Return whether an element holds each position, with values or without."""
        return self._frozen.contains(positions, t)

    def sample(self, positions: Any, nodal_values: Any = None) -> Array:
        """Interpolate the given nodal values, or the field at time 0."""
        if nodal_values is None:
            return self.sample_at_positions(positions, 0.0)
        field, count = self._frozen, self._frozen.values.shape[-2]
        if not isinstance(nodal_values, jax.Array):
            nodal_values = check_values(nodal_values, count, None)[0]
        if nodal_values.shape != (count, 3):
            shape = nodal_values.shape
            raise ValueError(f"nodal values of shape {shape}: give ({count}, 3)")
        values = jnp.asarray(nodal_values).astype(field.values.dtype)[None]
        parts = (values, steady_clock())
        fitted = eqx.tree_at(lambda f: (f.values, f.clock), field, parts)
        return fitted.sample_at_positions(positions, 0.0)
