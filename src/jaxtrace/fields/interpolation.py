"""From values at nodes to a field: on a tensor grid, on elements, or from points alone.

A scheme is chosen once from the nodes; it makes the frozen field of any values there
and gives them back in the order of the nodes.
"""

import abc
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import dtypes
from jaxtyping import Array, Bool, Float, Int

from jaxtrace.fields.cells import KINDS, VTK_KINDS
from jaxtrace.fields.clock import Clock
from jaxtrace.fields.curved_grid import (
    CurvilinearGrid,
    pack_curvilinear,
    unpack_curvilinear,
)
from jaxtrace.fields.curvilinear import make_curvilinear_field
from jaxtrace.fields.grid import OUTSIDE as GRID_OUTSIDE
from jaxtrace.fields.grid import grid_table, make_grid_field
from jaxtrace.fields.mesh import OUTSIDE as MESH_OUTSIDE
from jaxtrace.fields.mesh import make_mesh_field
from jaxtrace.fields.topology import Elements, read_blocks, relative_volumes
from jaxtrace.fields.unstructured import make_scattered_field
from jaxtrace.sphere import close_longitudes
from jaxtrace.types import check_choice

ROUNDINGS = 8  # how many roundings two equal coordinates may be apart

# The volume of a kind of cell, of that of the parallelepiped of its coordinates.
_VOLUMES = {
    **{"triangle": 1 / 2, "quad": 1.0, "tetra": 1 / 6, "hexahedron": 1.0},
    **{"wedge": 1 / 2, "pyramid": 1 / 3},
}


@dataclass(frozen=True, eq=False)
class TensorGrid:
    """A grid and its nodes: `order[n]` is the point at node n, with z fastest.

    Without an order the points are the nodes, one after the other. With a radius the
    axes are longitude, latitude and z on a sphere.
    """

    axes: tuple[
        Float[np.ndarray, " nx"], Float[np.ndarray, " ny"], Float[np.ndarray, " nz"]
    ]
    order: Int[np.ndarray, " nodes"] | None = None
    radius: float | None = None
    land: Bool[np.ndarray, "nx ny nz"] | None = None
    shore: str = "beach"

    @property
    def shape(self) -> tuple[int, int, int]:
        """Return nodes along x, y and z."""
        x, y, z = (axis.size for axis in self.axes)
        return x, y, z

    @property
    def n_points(self) -> int:
        """Return how many nodes there are."""
        return math.prod(self.shape)

    @property
    def words(self) -> str:
        """Return the size of the grid, in words."""
        return f"grid of {' x '.join(map(str, self.shape))} nodes"

    @cached_property
    def sorted(self) -> bool:
        """Return whether points stand in the order of nodes already."""
        order = self.order
        return order is None or bool(np.all(order[1:] > order[:-1]))

    @property
    def ranks(self) -> Int[np.ndarray, " nodes"]:
        """Return the node of each point."""
        if self.order is None:
            return np.arange(self.n_points)
        ranks = np.empty_like(self.order)
        ranks[self.order] = np.arange(self.order.size, dtype=ranks.dtype)
        return ranks

    def points(self) -> Float[np.ndarray, "nodes 3"]:
        """Return the coordinates of all nodes, z fastest."""
        return np.stack(np.meshgrid(*self.axes, indexing="ij"), -1).reshape(-1, 3)


def find_tensor_grid(points: Float[np.ndarray, "points 3"]) -> TensorGrid | None:
    """Return the grid whose nodes these points are, each once; None if there is none.

    Coordinates may be off by rounding, be it that of single precision or of arithmetic
    with the largest coordinate, but not by more.
    """
    if points.shape[0] == 0 or not np.all(np.isfinite(points)):
        return None
    order = np.argsort(points, axis=0)
    ranked = np.take_along_axis(points, order, axis=0).astype(np.float64)
    for slack in _slacks(points):
        found = [_groups(ranked[:, c], slack[c]) for c in range(3)]
        if any(steps is None for steps in found):
            continue
        starts = [np.asarray(steps) for steps in found]
        lattice = _assemble(ranked, order, starts)
        if lattice is not None:
            return lattice
    return None


def _slacks(points: np.ndarray) -> list[Float[np.ndarray, " 3"]]:
    """Return how far equal coordinates may be apart, strictest first."""
    size = np.abs(points).max(0).astype(np.float64)
    own, single = np.finfo(points.dtype).eps, np.finfo(np.float32).eps
    sizes = [own * size, max(own, single) * size]
    sizes.append(np.full(3, max(own, single) * size.max()))
    return [ROUNDINGS * s for s in sizes]


def _groups(
    ranked: Float[np.ndarray, " points"], slack: float
) -> Bool[np.ndarray, " points"] | None:
    """Return where sorted coordinates step up; None if groups are not tight."""
    starts = np.ones(ranked.size, bool)
    starts[1:] = np.diff(ranked) > slack
    firsts = np.flatnonzero(starts)
    lasts = np.append(firsts[1:], ranked.size) - 1
    spread = ranked[lasts] - ranked[firsts]
    return None if np.any(spread > 2 * slack) else starts


def _assemble(
    ranked: Float[np.ndarray, "points 3"],
    order: Int[np.ndarray, "points 3"],
    starts: list[Bool[np.ndarray, " points"]],
) -> TensorGrid | None:
    shape = [int(s.sum()) for s in starts]
    if math.prod(shape) != ranked.shape[0]:
        return None
    node = np.zeros(ranked.shape[0], np.int64)
    for c, first in enumerate(starts):
        place = np.empty_like(node)
        place[order[:, c]] = np.cumsum(first) - 1
        node = node * shape[c] + place
    places = np.full(node.size, -1, np.int64)
    places[node] = np.arange(node.size)
    if np.any(places < 0):
        return None
    # A coordinate stays one that was given, so that single precision stays single.
    x, y, z = (ranked[first, c] for c, first in enumerate(starts))
    return TensorGrid((x, y, z), places)


def fills(lattice: TensorGrid, blocks: Mapping[str, Int[np.ndarray, "_ _"]]) -> bool:
    """Return whether cells, as rows of points for each kind, cover the grid box by box.

    Cells whose kind is quadratic do not count: between nodes they say something else.
    """
    wide = [i for i, n in enumerate(lattice.shape) if n > 1]
    places = np.stack(np.unravel_index(lattice.ranks, lattice.shape), 1)[:, wide]
    volume = 0.0
    for name, cells in blocks.items():
        if name not in _VOLUMES or KINDS[name].dimension != len(wide):
            return False
        if np.any(np.ptp(places[cells], axis=1) > 1):
            return False
        share = relative_volumes(places.astype(np.float64), cells, KINDS[name])
        volume += _VOLUMES[name] * share.sum()
    # Less than the smallest cell, of which a box has six.
    return abs(volume - math.prod(lattice.shape[i] - 1 for i in wide)) < 0.1


CHOICES = ("auto", "elements", "nearest")
# The same policy has one name for grids and another for elements.
_BESIDE = {"clamp": "nearest_element", "nearest_element": "clamp"}
_PLURALS = {"tetra": "tetrahedra", "hexahedron": "hexahedra"}

Points = Float[np.ndarray, "nodes 3"]
Values = Float[Array | np.ndarray, "slices nodes 3"]


def make_elements(connectivity: Any, types: Any, offsets: Any) -> Elements | None:
    """Return cells from whatever arrays are given; None without any."""
    if connectivity is None:
        return None
    types, offsets = (None if a is None else np.asarray(a) for a in (types, offsets))
    return Elements(np.asarray(connectivity), types, offsets)


class Scheme(abc.ABC):
    """Nodes, and what is between and beyond them; its `name` says how."""

    name: Any
    outside: str

    @abc.abstractmethod
    def build(self, values: Values, clock: Clock) -> Any:
        """Return the frozen field of values at the nodes."""

    def replace(self, field: Any, values: Values) -> Any:
        """Return the field with other values."""
        stored = jnp.asarray(self.pack(values))
        return eqx.tree_at(lambda f: f.values, field, stored)

    def pack(self, values: Values) -> Any:
        """Return values in the order of the nodes as the field stores them."""
        return values.astype(dtypes.canonicalize_dtype(values.dtype))

    def unpack(self, stored: Array) -> Float[Array, "slices nodes 3"]:
        """Return the values as the field stores them, in the order of the nodes."""
        return stored


@dataclass(frozen=True, eq=False)
class OnGrid(Scheme):
    """Trilinear between the nodes of a grid."""

    lattice: TensorGrid
    outside: str
    name = "trilinear"

    def build(self, values: Values, clock: Clock) -> Any:
        """Return a grid field."""
        grid = self.lattice
        return make_grid_field(
            self._ordered(values),
            grid.axes,
            clock,
            outside=self.outside,
            radius=grid.radius,
            land=grid.land,
            shore=grid.shore,
        )

    def _ordered(self, values: Values) -> Any:
        """Return values in the order of the grid."""
        if not self.lattice.sorted:
            values = values[:, self.lattice.order]
        return values.reshape(values.shape[0], *self.lattice.shape, 3)

    @cached_property
    def _closed(self) -> list[int]:
        """Return the node counts with the layers that close a period."""
        shape = self.lattice.shape
        closed = [n + (self.outside == "periodic" and n > 1) for n in shape]
        if self.lattice.radius is not None:
            closed[0] = close_longitudes(self.lattice.axes[0]).nodes.size
        return closed

    def pack(self, values: Values) -> Any:
        """Return components first, nodes in the order of the grid."""
        return grid_table(self._ordered(values), self._closed)

    def unpack(self, stored: Array) -> Float[Array, "slices nodes 3"]:
        """Return components last, without the layers that close a period."""
        shape = self.lattice.shape
        whole = stored.reshape(-1, 3, *self._closed)
        table = whole[:, :, : shape[0], : shape[1], : shape[2]]
        table = table.reshape(*table.shape[:2], -1)
        if not self.lattice.sorted:
            table = table[:, :, self.lattice.ranks]
        return jnp.swapaxes(table, 1, 2)


@dataclass(frozen=True, eq=False)
class OnCurvilinear(Scheme):
    """Bilinear in the cells of a curvilinear grid, or by the transports of faces."""

    grid: CurvilinearGrid
    outside: str = "clamp"

    @property
    def name(self) -> str:
        """Return what is interpolated in a cell."""
        if self.grid.triangles is not None:
            return "linear in triangles"
        return "transports of faces" if self.grid.faces else "bilinear in cells"

    def build(self, values: Values, clock: Clock) -> Any:
        """Return a curvilinear field."""
        given = np.asarray(values).reshape(-1, *self.grid.shape, 3)
        return make_curvilinear_field(self.grid, given, clock)

    def pack(self, values: Values) -> np.ndarray:
        """Return vectors in space, or transports."""
        dtype = dtypes.canonicalize_dtype(values.dtype)
        return pack_curvilinear(self.grid, values, dtype)

    def unpack(self, stored: Array) -> Float[Array, "slices nodes 3"]:
        """Return velocities east, north and up, or through faces."""
        return unpack_curvilinear(self.grid, stored)


@dataclass(frozen=True, eq=False)
class OnElements(Scheme):
    """The shape functions of cells."""

    points: Points
    elements: Elements
    outside: str
    cache: str | os.PathLike[str] | None = None  # the folder of prepared meshes

    @property
    def name(self) -> str:
        """Return the kinds of cells, those of lower dimension left out."""
        codes = np.unique(self.elements.flatten(self.points)[2]).tolist()
        found = [VTK_KINDS[code][0] for code in codes if code in VTK_KINDS]
        most = max(kind.dimension for kind in found)
        kinds = dict.fromkeys(k.name for k in found if k.dimension == most)
        plural = (_PLURALS.get(kind, f"{kind}s") for kind in kinds)
        return " + ".join(plural).replace("_", " ")

    def build(self, values: Values, clock: Clock) -> Any:
        """Return a mesh field."""
        elements = self.elements
        return make_mesh_field(
            self.points,
            elements.connectivity,
            values,
            offsets=elements.offsets,
            types=elements.types,
            times=clock,
            outside=self.outside,
            cache=self.cache,
        )


@dataclass(frozen=True, eq=False)
class AmongPoints(Scheme):
    """Points without cells: Delaunay's simplices between them, or the nearest."""

    points: Points
    method: str
    outside: str

    @property
    def name(self) -> str:
        """Return Delaunay's simplices between points, or the nearest point."""
        return "delaunay" if self.method == "linear" else self.method

    def build(self, values: Values, clock: Clock) -> Any:
        """Return a scattered field."""
        return make_scattered_field(
            self.points,
            values,
            spatial_interpolation=self.method,
            times=clock,
            outside=self.outside,
        )


def choose_scheme(
    points: Points | TensorGrid | CurvilinearGrid,
    elements: Elements | None,
    choice: str,
    outside: str | None,
    cache: str | os.PathLike[str] | None = None,
) -> Scheme:
    """Return the best scheme that nodes and cells allow, or the one asked for.

    By itself a grid comes first (where there are cells, if they fill it), then cells,
    then Delaunay's simplices of the points.
    """
    check_choice("spatial_interpolation", choice, CHOICES)
    if isinstance(points, CurvilinearGrid):
        if choice != "auto" or outside not in (None, "clamp"):
            raise ValueError(
                f"spatial_interpolation={choice!r} with outside={outside!r} is not for "
                "curvilinear grids: leave both out"
            )
        return OnCurvilinear(points)
    if isinstance(points, TensorGrid):
        if choice == "auto" and elements is None:
            return OnGrid(points, outside_policy(outside, GRID_OUTSIDE))
        points = points.points()
    if choice == "elements" and elements is None:
        raise ValueError("interpolation by elements needs their connectivity")
    if choice == "nearest":
        return AmongPoints(points, "nearest", outside_policy(outside, MESH_OUTSIDE[:1]))
    lattice = find_tensor_grid(points) if choice == "auto" else None
    if lattice and elements is not None:
        blocks = {name: b.nodes for name, b in read_blocks(points, elements)[0].items()}
        lattice = lattice if fills(lattice, blocks) else None
    if lattice:
        return OnGrid(lattice, outside_policy(outside, GRID_OUTSIDE))
    if elements is not None:
        policy = outside_policy(outside, MESH_OUTSIDE)
        return OnElements(points, elements, policy, cache)
    return AmongPoints(points, "linear", outside_policy(outside, MESH_OUTSIDE))


def outside_policy(outside: str | None, allowed: tuple[str, ...]) -> str:
    """Return the policy by the name that the scheme has for it."""
    if outside is None:
        return allowed[0]
    name = outside if outside in allowed else _BESIDE.get(outside, outside)
    if name not in allowed:
        raise ValueError(
            f"outside {outside!r}: for these nodes choose one of {', '.join(allowed)}"
        )
    return name
