"""Mesh surgery in bulk: join coincident nodes, keep the highest cells, average."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Integer, Num

from jaxtrace.files.snapshot import Cells, GridAxes

#: Dimension of the VTK cell codes that are read as they are; others are split.
DIMENSIONS = {
    1: 0, 2: 0, 3: 1, 4: 1, 21: 1,
    5: 2, 8: 2, 9: 2, 22: 2,
    10: 3, 11: 3, 12: 3, 13: 3, 14: 3, 24: 3,
}  # fmt: skip


def cell_dimensions(types: Integer[np.ndarray, " cells"]) -> np.ndarray:
    """Dimension 0 to 3 of every cell."""
    table = np.full(256, -1, np.int8)
    table[list(DIMENSIONS)] = list(DIMENSIONS.values())
    return table[types]


def keep_cells(cells: Cells, keep: Bool[np.ndarray, " cells"]) -> Cells:
    """The mesh with only the marked cells; nodes stay."""
    if keep.all():
        return cells
    sizes = np.diff(cells.offsets)
    return Cells(
        cells.points,
        cells.connectivity[np.repeat(keep, sizes)],
        np.concatenate([[0], np.cumsum(sizes[keep])]),
        cells.types[keep],
    )


def highest_cells(cells: Cells) -> Bool[np.ndarray, " cells"]:
    """Mark the cells of the highest dimension: volumes, not the faces around them."""
    dimension = cell_dimensions(cells.types)
    return dimension == dimension.max(initial=-1)


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
        """The mesh in which coincident nodes are one."""
        return Cells(
            cells.points[self.first],
            self.label[cells.connectivity],
            cells.offsets,
            cells.types,
        )

    def mean(self, values: Num[np.ndarray, "nodes C"]) -> Num[np.ndarray, "kept C"]:
        """One value per joined node: the mean, exact where the copies agree."""
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
    """Mean of the values sent to each target; zero where nothing is sent."""
    count = np.maximum(np.bincount(target, minlength=n_targets), 1)
    sums = [np.bincount(target, column, n_targets) for column in values.T]
    return np.stack(sums, axis=-1) / count[:, None]


def cells_to_nodes(
    cells: Cells, values: Num[np.ndarray, "cells C"]
) -> Float[np.ndarray, "nodes C"]:
    """Plain mean over the cells around each node; zero for a node without cells."""
    sizes = np.diff(cells.offsets)
    return gather(cells.connectivity, np.repeat(values, sizes, axis=0), cells.n_points)


def grid_cells_to_nodes(
    values: Num[np.ndarray, "cx cy cz C"], shape: tuple[int, int, int]
) -> Float[np.ndarray, "nx ny nz C"]:
    """Plain mean over the cells around each grid node."""
    for axis, nodes in enumerate(shape):
        if nodes > 1:
            low, high = np.take(values, [0], axis), np.take(values, [-1], axis)
            left = np.concatenate([low, values], axis, dtype=np.float64)
            values = (left + np.concatenate([values, high], axis)) / 2
    return values.astype(np.float64)


def structured_cells(
    points: Float[np.ndarray, "nodes 3"], shape: tuple[int, int, int]
) -> Cells:
    """The hexahedra, quads or lines of a curvilinear grid, x fastest."""
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


def grid_to_cells(axes: GridAxes) -> Cells:
    """A tensor-product grid as a mesh of hexahedra, quads or lines."""
    return structured_cells(axes.points(), axes.shape)
