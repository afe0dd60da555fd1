"""Velocity slices of a series, read one at a time on a mesh prepared once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from jaxtrace.files.cells import (
    Weld,
    cells_to_nodes,
    find_coincident,
    grid_cells_to_nodes,
    highest_cells,
    keep_cells,
)
from jaxtrace.files.snapshot import Cells, Geometry, GridAxes, Snapshot
from jaxtrace.files.steps import Steps
from jaxtrace.files.velocity import (
    VelocityName,
    check_values,
    pick_velocity,
    three_components,
    wanted_names,
)

Velocities = Float[np.ndarray, "nodes 3"] | Float[np.ndarray, "nx ny nz 3"]


@dataclass(frozen=True, eq=False)
class PreparedMesh:
    """A mesh fit for interpolation, and how arrays of the file come to it."""

    cells: Cells
    kept: Bool[np.ndarray, " cells"]
    weld: Weld | None

    def nodal(self, values: np.ndarray, on_cells: bool) -> np.ndarray:
        """Values of the file on the nodes of the prepared mesh."""
        if on_cells:
            return cells_to_nodes(self.cells, values[self.kept])
        return values if self.weld is None else self.weld.mean(values)

    def notes(self) -> tuple[str, ...]:
        """What was changed, in words."""
        dropped = self.kept.size - int(self.kept.sum())
        joined = 0 if self.weld is None else self.weld.removed
        alone = np.ones(self.cells.n_points, bool)
        alone[self.cells.connectivity] = False
        counts = {
            "cells of lower dimension left out": dropped,
            "coincident nodes joined": joined,
            "nodes belong to no cell": int(alone.sum()) if self.cells.n_cells else 0,
        }
        return tuple(f"{count:,} {what}" for what, count in counts.items() if count)


def prepare_mesh(raw: Cells, assembled: bool, merge: bool | None) -> PreparedMesh:
    """Keep the cells of the highest dimension and join coincident nodes.

    With `merge` None nodes are joined where copies are expected: in meshes put
    together from parts, and in those whose cells share no node at all.
    """
    kept = highest_cells(raw)
    cells = keep_cells(raw, kept)
    if merge or (merge is None and (assembled or _disconnected(cells))):
        weld = find_coincident(cells.points)
        if weld.removed:
            return PreparedMesh(weld.join(cells), kept, weld)
    return PreparedMesh(cells, kept, None)


def _disconnected(cells: Cells) -> bool:
    return cells.n_cells > 1 and bool(np.bincount(cells.connectivity).max() == 1)


class SliceReader:
    """The velocity of a series, one slice per call, for fields larger than memory.

    `times` are known from the start; `geometry` is that of the first slice. On a mesh
    that changes, `read_slice` gives each slice with its own geometry.
    """

    def __init__(
        self,
        steps: Steps,
        indices: Sequence[int],
        velocity_name: VelocityName = None,
        dtype: str = "float32",
        allow_nan: bool = False,
        merge_points: bool | None = None,
        dropped: tuple[str, ...] = (),
    ) -> None:
        self._steps, self._indices = steps, list(indices)
        self._name = velocity_name
        self._choice: tuple[str, ...] | None = None
        self._dtype = float_dtype(dtype)
        self._allow_nan, self._merge = allow_nan, merge_points
        self._raw: Cells | None = None
        self._mesh: PreparedMesh | None = None
        self._axes: GridAxes | None = None
        self._first: Geometry | None = None
        self._on_cells = False
        self._dropped = dropped
        self.times: Float[np.ndarray, " steps"] = steps.times[self._indices]
        self.time_source = steps.time_source
        self.labels = tuple(steps.labels[i] for i in self._indices)

    def __len__(self) -> int:
        return len(self._indices)

    @property
    def geometry(self) -> Geometry:
        """The mesh or grid of the first slice."""
        if self._first is None:
            self._first, _ = self.read_slice(0)
        return self._first

    def describe(self) -> tuple[str, ...]:
        """Where the velocity comes from and what was done to the data, in words."""
        if self._choice is None:
            self._first, _ = self.read_slice(0)
        name = ", ".join(self._choice or ())
        averaged = ", averaged from cells to nodes" if self._on_cells else ""
        mesh = () if self._mesh is None else self._mesh.notes()
        left = tuple(f"left out, another mesh size: {file}" for file in self._dropped)
        lines = f"velocity: {name}{averaged}", f"times: {self.time_source}"
        return (*lines, *mesh, *left)

    def read(self, index: int) -> Velocities:
        """The velocity at one instant: (N, 3), or (Nx, Ny, Nz, 3) on a grid."""
        return self.read_slice(index)[1]

    def read_slice(self, index: int) -> tuple[Geometry, Velocities]:
        """Geometry and velocity at one instant; an equal mesh is the same object."""
        # The first slice read settles the array; one without it is in error.
        name = self._choice or self._name
        snapshot = self._steps.read(self._indices[index], wanted_names(name))
        choice, on_cells, values = pick_velocity(snapshot, name)
        self._choice, self._on_cells = choice, on_cells
        check_values(values, ", ".join(choice), snapshot.source, self._allow_nan)
        geometry, values = self._nodal(snapshot, values, on_cells)
        return geometry, three_components(values, self._dtype)

    def size(self, index: int) -> int:
        """Number of nodes in the file at one instant, without reading its arrays."""
        return self._steps.read(self._indices[index], ()).geometry.n_points

    def _nodal(
        self, snapshot: Snapshot, values: np.ndarray, on_cells: bool
    ) -> tuple[Geometry, np.ndarray]:
        geometry = snapshot.geometry
        if isinstance(geometry, GridAxes):
            if self._axes is None or not geometry.same_as(self._axes):
                self._axes = geometry
            if on_cells:
                values = grid_cells_to_nodes(values, geometry.shape)
            return self._axes, values
        mesh = self._prepared(geometry, snapshot)
        return mesh.cells, mesh.nodal(values, on_cells)

    def _prepared(self, raw: Cells, snapshot: Snapshot) -> PreparedMesh:
        if self._mesh is None or self._raw is None or not raw.same_as(self._raw):
            check_values(raw.points, "the coordinates", snapshot.source, False)
            self._mesh = prepare_mesh(raw, snapshot.assembled, self._merge)
            self._raw = raw
        return self._mesh


def float_dtype(dtype: Any) -> np.dtype:
    """The dtype of results; ValueError unless it is float32 or float64."""
    kind = np.dtype(dtype)
    if kind not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {dtype!r}")
    return kind
