"""From values at nodes to a field: on a tensor grid, on elements, or from points alone.

A scheme is chosen once from the nodes; it makes the frozen field of any values there
and gives them back in the order of the nodes.
"""

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
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
    if not len(points) or not np.all(np.isfinite(points)):
        return None
    order = np.argsort(points, axis=0)
    ranked = np.take_along_axis(points, order, axis=0).astype(np.float64)
    size = np.abs(points).max(0).astype(np.float64)
    own = np.finfo(points.dtype).eps
    single = max(own, np.finfo(np.float32).eps)
    # How far equal coordinates may be apart, strictest first.
    for room in (own * size, single * size, np.full(3, single * size.max())):
        found = _read_axes(ranked, order, ROUNDINGS * room)
        if found is not None:
            return found
    return None


def _read_axes(
    ranked: Float[np.ndarray, "points 3"],
    order: Int[np.ndarray, "points 3"],
    slack: Float[np.ndarray, " 3"],
) -> TensorGrid | None:
    """Return the grid of sorted coordinates that are equal within some slack."""
    starts = np.ones(ranked.shape, bool)
    starts[1:] = np.diff(ranked, axis=0) > slack
    first = np.maximum.accumulate(np.where(starts, ranked, -np.inf), axis=0)
    shape = [int(n) for n in starts.sum(0)]
    if math.prod(shape) != len(ranked) or np.any(ranked - first > 2 * slack):
        return None
    places = np.empty(ranked.shape, np.int64)
    np.put_along_axis(places, order, np.cumsum(starts, axis=0) - 1, axis=0)
    node = np.ravel_multi_index(tuple(places.T), shape)
    points = np.full(node.size, -1, np.int64)
    points[node] = np.arange(node.size)
    if np.any(points < 0):
        return None
    # A coordinate stays one that was given, so that single precision stays single.
    x, y, z = (ranked[starts[:, c], c] for c in range(3))
    return TensorGrid((x, y, z), points)


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


def _stored(values: Values) -> Any:
    return values.astype(dtypes.canonicalize_dtype(values.dtype))


@dataclass(frozen=True, eq=False)
class Scheme:
    """How nodes are interpolated, by name, and what is beyond them.

    `build` makes the frozen field of values (slices, nodes, 3) and a clock, `pack` lays
    values out as the field stores them, and `unpack` gives them back.
    """

    name: str
    outside: str
    build: Callable[[Values, Clock], Any]
    pack: Callable[[Values], Any] = _stored
    unpack: Callable[[Array], Float[Array, "slices nodes 3"]] = lambda stored: stored
    chosen_by: tuple[Any, ...] = ()  # the arguments of `choose_scheme`

    def __reduce__(self) -> tuple[Any, ...]:
        # Functions within functions cannot be pickled: the scheme is chosen again.
        return choose_scheme, self.chosen_by

    def replace(self, field: Any, values: Values) -> Any:
        """Return the field with other values."""
        stored = jnp.asarray(self.pack(values))
        return eqx.tree_at(lambda f: f.values, field, stored)


def _on_grid(grid: TensorGrid, outside: str | None) -> Scheme:
    """Return what is trilinear between the nodes of a grid."""
    outside, shape = outside_policy(outside, GRID_OUTSIDE), grid.shape
    # With the layers that close a period.
    closed = [n + (outside == "periodic" and n > 1) for n in shape]
    if grid.radius is not None:
        closed[0] = close_longitudes(grid.axes[0]).nodes.size

    def ordered(values: Values) -> Any:
        values = values if grid.sorted else values[:, grid.order]
        return values.reshape(values.shape[0], *shape, 3)

    def build(values: Values, clock: Clock) -> Any:
        return make_grid_field(
            ordered(values),
            grid.axes,
            clock,
            outside=outside,
            radius=grid.radius,
            land=grid.land,
            shore=grid.shore,
        )

    def unpack(stored: Array) -> Array:
        whole = stored.reshape(-1, 3, *closed)[:, :, : shape[0], : shape[1], : shape[2]]
        table = whole.reshape(*whole.shape[:2], -1)
        table = table if grid.sorted else table[:, :, grid.ranks]
        return jnp.swapaxes(table, 1, 2)

    pack = lambda values: grid_table(ordered(values), closed)
    return Scheme("trilinear", outside, build, pack, unpack)


def _on_curvilinear(grid: CurvilinearGrid) -> Scheme:
    """Return what is bilinear in cells, or follows the transports of faces."""
    name = "transports of faces" if grid.faces else "bilinear in cells"
    name = name if grid.triangles is None else "linear in triangles"
    return Scheme(
        name,
        "clamp",
        lambda values, clock: make_curvilinear_field(
            grid, np.asarray(values).reshape(-1, *grid.shape, values.shape[-1]), clock
        ),
        lambda values: pack_curvilinear(
            grid, values, dtypes.canonicalize_dtype(values.dtype)
        ),
        partial(unpack_curvilinear, grid),
    )


def _on_elements(
    points: Points, elements: Elements, outside: str | None, cache: Any
) -> Scheme:
    """Return the shape functions of cells, named by those of the highest dimension."""
    codes = np.unique(elements.flatten(points)[2]).tolist()
    found = [VTK_KINDS[code][0] for code in codes if code in VTK_KINDS]
    most = max((kind.dimension for kind in found), default=0)
    kinds = dict.fromkeys(k.name for k in found if k.dimension == most)
    names = " + ".join(_PLURALS.get(kind, f"{kind}s") for kind in kinds)
    outside = outside_policy(outside, MESH_OUTSIDE)
    build = lambda values, clock: make_mesh_field(
        points,
        elements.connectivity,
        values,
        offsets=elements.offsets,
        types=elements.types,
        times=clock,
        outside=outside,
        cache=cache,
    )
    return Scheme(names.replace("_", " "), outside, build)


def _among_points(points: Points, method: str, outside: str) -> Scheme:
    """Return Delaunay's simplices between points without cells, or the nearest one."""
    build = lambda values, clock: make_scattered_field(
        points, values, spatial_interpolation=method, times=clock, outside=outside
    )
    name = "delaunay" if method == "linear" else method
    return Scheme(name, outside, build)


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
    given = points, elements, choice, outside, cache
    return replace(_choose(*given), chosen_by=given)


def _choose(
    points: Any, elements: Elements | None, choice: str, outside: str | None, cache: Any
) -> Scheme:
    check_choice("spatial_interpolation", choice, CHOICES)
    if isinstance(points, CurvilinearGrid):
        if choice != "auto" or outside not in (None, "clamp"):
            raise ValueError(
                f"spatial_interpolation={choice!r} with outside={outside!r} is not for "
                "curvilinear grids: leave both out"
            )
        return _on_curvilinear(points)
    if isinstance(points, TensorGrid):
        if choice == "auto" and elements is None:
            return _on_grid(points, outside)
        points = points.points()
    if choice == "elements" and elements is None:
        raise ValueError("interpolation by elements needs their connectivity")
    if choice == "nearest":
        policy = outside_policy(outside, MESH_OUTSIDE[:1])
        return _among_points(points, "nearest", policy)
    lattice = find_tensor_grid(points) if choice == "auto" else None
    if lattice and elements is not None:
        blocks = {name: b.nodes for name, b in read_blocks(points, elements)[0].items()}
        lattice = lattice if fills(lattice, blocks) else None
    if lattice:
        return _on_grid(lattice, outside)
    if elements is not None:
        return _on_elements(points, elements, outside, cache)
    return _among_points(points, "linear", outside_policy(outside, MESH_OUTSIDE))


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
