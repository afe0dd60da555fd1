"""Series made smaller as they are read: fewer nodes, and a limit on each slice."""

from typing import Any

import numpy as np
from jaxtyping import Bool

from jaxtrace.files.cells import grid_to_cells, keep_cells
from jaxtrace.files.series import GridSeries, MeshSeries, Slices
from jaxtrace.files.snapshot import Cells, Geometry, GridAxes, storage_order

MIB = 2**20


class ThinSlices:
    """Slices with every `factor`-th node, none of which may be larger than a limit.

    A grid keeps its last nodes too, so that it does not shrink; a mesh loses its cells.
    """

    def __init__(self, slices: Slices, limit_mb: float, factor: int | None) -> None:
        self._slices, self._limit, self._factor = slices, limit_mb, factor or 1
        self._made: tuple[Any, Any] = (None, None)
        self.times, self.labels = slices.times, slices.labels

    def __len__(self) -> int:
        return len(self._slices)

    def describe(self) -> tuple[str, ...]:
        """What was done to the data, in words."""
        notes = self._slices.describe()
        if self._factor == 1:
            return notes
        cells = "" if isinstance(self._made[0], GridAxes) else ", without cells"
        return (*notes, f"every {self._factor}th node{cells}")

    def read(self, index: int) -> np.ndarray:
        """The velocity at one instant."""
        return self.read_slice(index)[1]

    def read_slice(self, index: int) -> tuple[Geometry, np.ndarray]:
        """Geometry and velocity at one instant; an equal geometry is the same."""
        geometry, values = self._slices.read_slice(index)
        if self._factor > 1:
            if self._made[0] is not geometry:
                self._made = geometry, thin_geometry(geometry, self._factor)
            geometry, values = (
                self._made[1],
                thin_values(geometry, values, self._factor),
            )
        size = values.nbytes / MIB
        if size > self._limit:
            raise ValueError(
                f"{self.labels[index]}: a slice of {size:.4g} MB is above "
                f"max_memory_per_timestep_mb={self._limit:g}; raise it, or give "
                'subsample_factor=2 or dtype="float32"'
            )
        return geometry, values


class FixedSlices:
    """Slices that must all lie on the mesh or grid of the first one."""

    def __init__(self, slices: Slices) -> None:
        self._slices, self.times = slices, slices.times
        self._first, _ = slices.read_slice(0)

    def read_slice(self, index: int) -> tuple[Geometry, np.ndarray]:
        """The common geometry, and the velocity at one instant."""
        geometry, values = self._slices.read_slice(index)
        if geometry is not self._first and not geometry.same_as(self._first):
            raise ValueError(
                f"{self._slices.labels[index]}: its mesh differs from the first one, "
                "and the series does not fit in memory with a mesh for each slice; "
                "give use_stable_mesh_only=True or fewer slices (max_time_steps), or "
                "raise jt.configure(memory_limit_gb=...)"
            )
        return self._first, values

    def read(self, index: int) -> np.ndarray:
        """The velocity at one instant."""
        return self.read_slice(index)[1]


def every(count: int, factor: int) -> np.ndarray:
    """Each so-many-th index along an axis, and the last."""
    picked = np.arange(0, count, factor)
    return picked if picked[-1] == count - 1 else np.append(picked, count - 1)


def thin_geometry(geometry: Geometry, factor: int) -> Geometry:
    """The nodes that are kept."""
    if isinstance(geometry, GridAxes):
        axes = (geometry.x, geometry.y, geometry.z)
        return GridAxes(*(axis[every(axis.size, factor)] for axis in axes))
    none = np.zeros(0, np.int64)
    return Cells(geometry.points[::factor], none, np.zeros(1, np.int64), none)


def thin_values(geometry: Geometry, values: np.ndarray, factor: int) -> np.ndarray:
    """The values at the nodes that are kept."""
    if not isinstance(geometry, GridAxes):
        return values[::factor]
    x, y, z = (every(count, factor) for count in geometry.shape)
    return values[np.ix_(x, y, z)]


def discard_still_nodes(series: MeshSeries | GridSeries) -> MeshSeries:
    """The series without the nodes at which nothing ever moves, and their cells."""
    notes = (*series.notes, "nodes without motion left out")
    if isinstance(series.geometry, tuple):
        kept = [np.any(v != 0, axis=-1) for v in series.velocities]
        meshes = tuple(map(drop_nodes, series.geometry, kept))
        rows = tuple(v[k] for v, k in zip(series.velocities, kept, strict=True))
        return MeshSeries(series.times, rows, meshes, series.files, notes)
    cells, values = series.geometry, np.asarray(series.velocities)
    if isinstance(cells, GridAxes):
        cells = grid_to_cells(cells)
        values = np.stack([storage_order(row) for row in values])
    keep = np.any(values != 0, axis=(0, 2))
    mesh = drop_nodes(cells, keep)
    return MeshSeries(series.times, values[:, keep], mesh, series.files, notes)


def drop_nodes(cells: Cells, keep: Bool[np.ndarray, " nodes"]) -> Cells:
    """The mesh of the marked nodes and of the cells that have no others."""
    if not keep.any():
        raise ValueError(
            "the velocity is zero everywhere: leave out discard_boundary_layers"
        )
    if cells.n_cells:
        touched = np.add.reduceat(~keep[cells.connectivity], cells.offsets[:-1]) > 0
        cells = keep_cells(cells, ~touched)
    rank = np.cumsum(keep) - 1
    return Cells(
        cells.points[keep], rank[cells.connectivity], cells.offsets, cells.types
    )
