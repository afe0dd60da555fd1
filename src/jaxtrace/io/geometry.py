"""Snapshots: meshes and grids with their arrays, and operations on whole meshes.

Nodes that coincide are joined, cells of lower dimension dropped, parts put together,
and cell values averaged to nodes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Integer, Num, Shaped

from jaxtrace.fields.curved_grid import CurvilinearGrid
from jaxtrace.fields.interpolation import TensorGrid

Nodal = Shaped[np.ndarray, "nodes components"]
Gridded = Shaped[np.ndarray, "nx ny nz components"]


@dataclass(frozen=True, eq=False)
class Cells:
    """A mesh: nodes, and cells as slices of one flat connectivity list.

    Cell `c` has the VTK code `types[c]` and the nodes
    `connectivity[offsets[c]:offsets[c + 1]]`; a mesh without cells is a point cloud.
    """

    points: Float[np.ndarray, "nodes 3"]
    connectivity: Integer[np.ndarray, " entries"]
    offsets: Integer[np.ndarray, " cells_and_one"]
    types: Integer[np.ndarray, " cells"]

    @property
    def n_points(self) -> int:
        """Number of nodes."""
        return self.points.shape[0]

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return self.types.shape[0]

    @property
    def words(self) -> str:
        """Return the size of the mesh, in words."""
        return f"mesh of {self.n_points:,} nodes and {self.n_cells:,} cells"

    @property
    def has_elements(self) -> bool:
        """Whether some cell is more than a vertex."""
        return bool((cell_dimensions(self.types) > 0).any())


Geometry = Cells | TensorGrid | CurvilinearGrid


def same_geometry(one: Geometry, other: Geometry) -> bool:
    """Return whether two meshes or two grids are equal, bit for bit."""
    if one is other or type(one) is not type(other):
        return one is other
    return all(
        _equal(getattr(one, f.name), getattr(other, f.name)) for f in fields(one)
    )


def corners(geometry: Geometry) -> tuple[np.ndarray, np.ndarray]:
    """Return the lowest and the highest corner of the box around all nodes."""
    if isinstance(geometry, CurvilinearGrid):
        return geometry.bounds()
    if isinstance(geometry, TensorGrid):
        first, last = ([axis[end] for axis in geometry.axes] for end in (0, -1))
        return np.array(first), np.array(last)
    points = np.asarray(geometry.points, np.float64)
    return points.min(axis=0), points.max(axis=0)


def _equal(one: Any, other: Any) -> bool:
    if is_dataclass(one):
        return same_geometry(one, other)  # type: ignore[arg-type]
    if isinstance(one, tuple) and isinstance(other, tuple):  # axes, of any lengths
        return len(one) == len(other) and all(map(_equal, one, other))
    return np.array_equal(one, other)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """One instant: geometry with named arrays on its nodes and on its cells.

    Arrays are (N, C) on a mesh and (Nx, Ny, Nz, C) on a grid.
    """

    geometry: Cells | TensorGrid
    arrays: dict[str, np.ndarray]
    cell_arrays: dict[str, np.ndarray]
    source: str
    #: Put together from several parts, whose shared nodes are stored once per part.
    assembled: bool = False
    #: Every array the file holds, also those that were not asked for.
    available: tuple[str, ...] = ()
    field_data: dict[str, np.ndarray] = field(default_factory=dict)


def grid_order(
    values: Shaped[np.ndarray, "nodes components"], shape: tuple[int, int, int]
) -> Gridded:
    """Return values stored x fastest as an array indexed [ix, iy, iz, component]."""
    nx, ny, nz = shape
    return values.reshape(nz, ny, nx, values.shape[-1]).transpose(2, 1, 0, 3)


def storage_order(values: Gridded) -> Nodal:
    """Return values indexed [ix, iy, iz, component] as rows, x fastest."""
    return values.transpose(2, 1, 0, 3).reshape(-1, values.shape[-1])


Axes = tuple[np.ndarray, np.ndarray, np.ndarray]


def ascending(
    axes: Sequence[np.ndarray], arrays: dict[str, np.ndarray]
) -> tuple[Axes, dict[str, np.ndarray]]:
    """Flip the axes that run downwards, and with them the leading array axes."""
    for index, axis in enumerate(axes):
        steps = np.diff(axis)
        if steps.size and not (np.all(steps > 0) or np.all(steps < 0)):
            raise ValueError(
                f"axis {'xyz'[index]} must run strictly up or down, "
                f"it has {axis.size} values from {axis[0]} to {axis[-1]}"
            )
    down = tuple(i for i, a in enumerate(axes) if a.size > 1 and a[1] < a[0])
    x, y, z = (a[::-1] if i in down else a for i, a in enumerate(axes))
    return (x, y, z), {name: np.flip(values, down) for name, values in arrays.items()}


#: Dimension of the VTK cell codes that are read as they are; others are split.
DIMENSIONS = {
    1: 0, 2: 0, 3: 1, 4: 1, 21: 1,
    5: 2, 8: 2, 9: 2, 22: 2,
    10: 3, 11: 3, 12: 3, 13: 3, 14: 3, 24: 3,
}  # fmt: skip


def cell_dimensions(types: Integer[np.ndarray, " cells"]) -> np.ndarray:
    """Return dimension 0 to 3 of every cell."""
    table = np.full(256, -1, np.int8)
    table[list(DIMENSIONS)] = list(DIMENSIONS.values())
    return table[types]


def keep_cells(cells: Cells, keep: Bool[np.ndarray, " cells"]) -> Cells:
    """Return the mesh with only the marked cells; nodes stay."""
    if keep.all():
        return cells
    sizes = np.diff(cells.offsets)
    return Cells(
        cells.points,
        cells.connectivity[np.repeat(keep, sizes)],
        np.concatenate([[0], np.cumsum(sizes[keep])]),
        cells.types[keep],
    )


@dataclass(frozen=True, eq=False)
class Weld:
    """Which nodes of a mesh are one: a `label` per node, one `first` per label."""

    label: Integer[np.ndarray, " nodes"]
    first: Integer[np.ndarray, " kept"]

    @property
    def removed(self) -> int:
        """Number of nodes that another one stands for."""
        return self.label.size - self.first.size

    def join(self, cells: Cells) -> Cells:
        """Return the mesh in which coincident nodes are one."""
        return Cells(
            cells.points[self.first],
            self.label[cells.connectivity],
            cells.offsets,
            cells.types,
        )

    def mean(self, values: Num[np.ndarray, "nodes C"]) -> Num[np.ndarray, "kept C"]:
        """Return one value per joined node: the mean, exact where the copies agree."""
        kept = values[self.first]
        excess = values - kept[self.label]
        if not excess.any():
            return kept
        return kept + (gather(self.label, excess, kept.shape[0])).astype(kept.dtype)


def find_coincident(points: Float[np.ndarray, "nodes 3"]) -> Weld:
    """Find the nodes with exactly equal coordinates; no tolerance, so no scale."""
    order = np.lexsort(points.T[::-1])
    ordered = points[order]
    fresh = np.ones(len(order), bool)
    fresh[1:] = np.any(ordered[1:] != ordered[:-1], axis=1)
    first = order[fresh]
    rank = np.empty(first.size, np.int64)
    rank[np.argsort(first)] = np.arange(first.size)
    label = np.empty(len(order), np.int64)
    label[order] = rank[np.cumsum(fresh) - 1]
    return Weld(label, np.sort(first))


def gather(
    target: Integer[np.ndarray, " entries"],
    values: Num[np.ndarray, "entries C"],
    n_targets: int,
) -> Float[np.ndarray, "targets C"]:
    """Return the mean of the values sent to each target; zero where nothing is sent."""
    count = np.maximum(np.bincount(target, minlength=n_targets), 1)
    sums = [np.bincount(target, column, n_targets) for column in values.T]
    return np.stack(sums, axis=-1) / count[:, None]


def cells_to_nodes(
    cells: Cells, values: Num[np.ndarray, "cells C"]
) -> Float[np.ndarray, "nodes C"]:
    """Return the mean over the cells around each node; zero for one without cells."""
    sizes = np.diff(cells.offsets)
    return gather(cells.connectivity, np.repeat(values, sizes, axis=0), cells.n_points)


def grid_cells_to_nodes(
    values: Num[np.ndarray, "cx cy cz C"], shape: tuple[int, int, int]
) -> Float[np.ndarray, "nx ny nz C"]:
    """Return the plain mean over the cells around each grid node."""
    for axis, nodes in enumerate(shape):
        if nodes > 1:
            low, high = np.take(values, [0], axis), np.take(values, [-1], axis)
            left = np.concatenate([low, values], axis, dtype=np.float64)
            values = (left + np.concatenate([values, high], axis)) / 2
    return values.astype(np.float64)


def structured_cells(
    points: Float[np.ndarray, "nodes 3"], shape: tuple[int, int, int]
) -> Cells:
    """Return the hexahedra, quads or lines of a curvilinear grid, x fastest."""
    ids = np.arange(points.shape[0]).reshape(shape[::-1])
    axes = [axis for axis in (2, 1, 0) if ids.shape[axis] > 1]
    corners = [ids]
    for axis in axes:
        near, far = np.arange(ids.shape[axis] - 1), np.arange(1, ids.shape[axis])
        low = [np.take(c, near, axis) for c in corners]
        high = [np.take(c, far, axis) for c in corners]
        # The far side of a quad runs backwards, so that corners go round.
        corners = low + (high[::-1] if len(low) == 2 else high)
    connectivity = np.stack([c.ravel() for c in corners], axis=-1)
    n_cells, size = connectivity.shape
    code = {1: 1, 2: 3, 4: 9, 8: 12}[size]
    return Cells(
        points,
        connectivity.ravel(),
        np.arange(n_cells + 1) * size,
        np.full(n_cells, code, np.uint8),
    )


def grid_to_cells(grid: TensorGrid) -> Cells:
    """Return a tensor-product grid as a mesh of hexahedra, quads or lines."""
    return structured_cells(grid_points(grid.axes), grid.shape)


def grid_points(axes: Sequence[np.ndarray]) -> Float[np.ndarray, "nodes 3"]:
    """Return the nodes of three axes as VTK stores them, x fastest."""
    z, y, x = np.meshgrid(*axes[::-1], indexing="ij")
    return np.stack([x.ravel(), y.ravel(), z.ravel()], axis=-1)
