"""Exact search for neighbors within a radius, among particles sorted by cell."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from jaxtrace.density.grids import as_points, working_dtype

# Cells are this much wider than the reach, so that no rounding of a distance on the
# device can find a neighbor two cells away.
_MARGIN = 2.0**-14
# Cells per axis, so that the key of a cell fits 64 bits.
_MOST_CELLS = {2: 2**30, 3: 2**20}
_CANDIDATE_BYTES = 96  # of one candidate pair while it is looked at on the host


class CellGrid:
    """Particles sorted by cell; all within `reach` of a point lie in few ranges.

    Cells are at least `reach` wide, so that neighbors lie in the cells around that of
    the point; along the last axis those are adjacent in the sorted order, which leaves
    3 ranges in 2-D and 9 in 3-D. Only occupied cells take space.
    """

    def __init__(self, positions: Float[np.ndarray, "particles dims"], reach: float):
        dims = positions.shape[1]
        self._origin = positions.min(axis=0)
        extent = positions.max(axis=0) - self._origin
        cell = np.maximum(reach * (1 + _MARGIN), extent / _MOST_CELLS[dims])
        self._cell = np.where(cell > 0, cell, 1.0)
        self._shape = np.floor(extent / self._cell).astype(np.int64) + 1
        self._strides = np.append(np.cumprod(self._shape[:0:-1])[::-1], 1)
        keys = self._cells(positions) @ self._strides
        self.order = np.argsort(keys, kind="stable")
        self._keys = keys[self.order]

    def _cells(self, points: Float[np.ndarray, "points dims"]) -> np.ndarray:
        """Cell indices; points beside the grid are two cells out, NaN as well."""
        scaled = np.floor((points - self._origin) / self._cell)
        beside = np.where(np.isnan(scaled), -2.0, scaled)
        return np.clip(beside, -2, self._shape + 1).astype(np.int64)

    @property
    def largest_cell(self) -> int:
        """The number of particles in the fullest cell."""
        return int(np.unique(self._keys, return_counts=True)[1].max())

    def ranges(
        self, points: Float[np.ndarray, "points dims"]
    ) -> tuple[Int[np.ndarray, "points rows"], Int[np.ndarray, "points rows"]]:
        """Starts and lengths of the ranges of `order` that hold every neighbor."""
        cells = self._cells(points)
        first = np.maximum(cells[:, -1] - 1, 0)
        last = np.minimum(cells[:, -1] + 1, self._shape[-1] - 1)
        starts, counts = [], []
        for offset in itertools.product((-1, 0, 1), repeat=points.shape[1] - 1):
            row = cells[:, :-1] + np.array(offset)
            exists = ((row >= 0) & (row < self._shape[:-1])).all(axis=1)
            base = row @ self._strides[:-1]
            start = np.searchsorted(self._keys, base + first, side="left")
            stop = np.searchsorted(self._keys, base + last, side="right")
            starts.append(start)
            counts.append(np.where(exists & (first <= last), stop - start, 0))
        return (
            np.stack(starts, axis=1).astype(np.int32),
            np.stack(counts, axis=1).astype(np.int32),
        )


class HashGridNeighbors:
    """Fixed-radius neighbor search, exact for every radius.

    `cell_size` is the width of the cells; a larger radius sorts the particles anew.
    Nothing is capped: `per_cell_cap`, if given, only raises when a cell holds more.
    Particles with a NaN are nobody's neighbors.
    """

    def __init__(
        self, positions: Any, cell_size: float, per_cell_cap: int | None = None
    ):
        if not cell_size > 0:
            raise ValueError(f"cell_size is {cell_size}: it must be positive")
        given = as_points(positions, "positions")
        self._dtype = working_dtype(given)
        self._kept = np.flatnonzero(np.isfinite(given).all(axis=1))
        if len(self._kept) == 0:
            raise ValueError(f"none of the {len(given)} positions is finite")
        self._positions = given[self._kept].astype(np.float64)
        self.cell_size = float(cell_size)
        self._grid = CellGrid(self._positions, self.cell_size)
        check_cell_cap(self._grid.largest_cell, per_cell_cap)

    def query_many(
        self,
        queries: Any,
        radius: float,
        max_neighbors: int | None = None,
        *,
        memory_limit_gb: float = 1.0,
    ) -> tuple[Int[np.ndarray, "queries most"], Float[np.ndarray, "queries most"]]:
        """Indices and distances of all particles within `radius`, nearest first.

        Rows are filled up with -1 and inf. There are as many columns as the fullest row
        needs, or `max_neighbors`; more neighbors than that raise.
        """
        points = self._check(queries, radius)
        within = radius <= self.cell_size
        grid = self._grid if within else CellGrid(self._positions, radius)
        starts, counts = grid.ranges(points)
        found = [
            self._search(points[rows], starts[rows], counts[rows], grid, radius)
            for rows in _blocks(counts.sum(axis=1), memory_limit_gb * 1e9)
        ]
        most = max((int(own.max(initial=0)) for _, _, own in found), default=0)
        if max_neighbors is not None and most > max_neighbors:
            raise ValueError(
                f"a point has {most} neighbors within {radius}, max_neighbors is "
                f"{max_neighbors}: raise it to {most} or leave it out"
            )
        columns = most if max_neighbors is None else max_neighbors
        return self._table(found, len(points), columns)

    def _check(self, queries: Any, radius: float) -> np.ndarray:
        points = as_points(queries, "queries").astype(np.float64)
        if points.shape[1] != self._positions.shape[1]:
            raise ValueError(
                f"queries have {points.shape[1]} columns, positions "
                f"{self._positions.shape[1]}: they must agree"
            )
        if not radius >= 0:
            raise ValueError(f"radius is {radius}: it must not be negative")
        return points

    def _search(
        self,
        points: np.ndarray,
        starts: np.ndarray,
        counts: np.ndarray,
        grid: CellGrid,
        radius: float,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Particles, distances and numbers of neighbors of a block, row after row."""
        lengths = counts.ravel()
        ends = np.cumsum(lengths)
        within = np.arange(lengths.sum()) - np.repeat(ends - lengths, lengths)
        candidates = grid.order[np.repeat(starts.ravel(), lengths) + within]
        rows = np.repeat(np.arange(len(points)), counts.sum(axis=1))
        distances = np.linalg.norm(points[rows] - self._positions[candidates], axis=1)
        near = distances <= radius
        rows, candidates, distances = rows[near], candidates[near], distances[near]
        by_distance = np.lexsort((candidates, distances, rows))
        own = np.bincount(rows, minlength=len(points))
        return self._kept[candidates[by_distance]], distances[by_distance], own

    def _table(
        self,
        found: list[tuple[np.ndarray, np.ndarray, np.ndarray]],
        rows: int,
        columns: int,
    ) -> tuple[np.ndarray, np.ndarray]:
        indices = np.full((rows, columns), -1, np.int32)
        distances = np.full((rows, columns), np.inf, self._dtype)
        done = 0
        for particles, lengths, own in found:
            taken = np.arange(columns)[None] < own[:, None]
            indices[done : done + len(own)][taken] = particles
            distances[done : done + len(own)][taken] = lengths
            done += len(own)
        return indices, distances


def check_cell_cap(largest: int, per_cell_cap: int | None) -> None:
    """Raise if a cell holds more particles than the user's own limit."""
    if per_cell_cap is not None and largest > per_cell_cap:
        raise ValueError(
            f"a cell holds {largest} particles, per_cell_cap is {per_cell_cap}: raise "
            f"it to {largest} or leave it out, nothing needs a cap"
        )


def _blocks(candidates: np.ndarray, limit_bytes: float) -> Iterator[slice]:
    """Consecutive queries whose candidates fit the limit together; at least one."""
    ends = np.cumsum(candidates, dtype=np.int64)
    room = int(limit_bytes / _CANDIDATE_BYTES)
    start = 0
    while start < len(candidates):
        before = ends[start - 1] if start else 0
        stop = max(int(np.searchsorted(ends, before + room, side="right")), start + 1)
        yield slice(start, stop)
        start = stop
