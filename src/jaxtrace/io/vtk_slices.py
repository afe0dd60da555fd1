"""The velocity of files that VTK reads, slice by slice, on meshes prepared once."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from jaxtrace.fields.interpolation import TensorGrid
from jaxtrace.io.geometry import (
    Cells,
    Geometry,
    Snapshot,
    Weld,
    cell_dimensions,
    cells_to_nodes,
    find_coincident,
    grid_cells_to_nodes,
    keep_cells,
    same_geometry,
)
from jaxtrace.io.series import FileFormat, Slices, float_dtype
from jaxtrace.io.steps import KNOWN_EXTENSIONS, TIME_SOURCES, PathSpec, open_steps
from jaxtrace.io.velocity import (
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
        """Return values of the file on the nodes of the prepared mesh."""
        if on_cells:
            return cells_to_nodes(self.cells, values[self.kept])
        return values if self.weld is None else self.weld.mean(values)

    def notes(self) -> tuple[str, ...]:
        """Return what was changed, in words."""
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


def prepare_mesh(raw: Cells, assembled: bool) -> PreparedMesh:
    """Keep the cells of the highest dimension and join coincident nodes.

    Nodes are joined where copies are expected: in meshes put together from parts, and
    in those whose cells share no node at all.
    """
    dimension = cell_dimensions(raw.types)
    kept = dimension == dimension.max(initial=-1)
    cells = keep_cells(raw, kept)
    apart = cells.n_cells > 1 and np.bincount(cells.connectivity).max() == 1
    if assembled or apart:
        weld = find_coincident(cells.points)
        if weld.removed:
            return PreparedMesh(weld.join(cells), kept, weld)
    return PreparedMesh(cells, kept, None)


class VTKSlices(Slices):
    """The velocity of a series of steps; an unchanged mesh is prepared once.

    Opening finds the slices and their times; nothing else is read yet.
    """

    def __init__(
        self,
        spec: PathSpec,
        *,
        velocity_field_name: VelocityName = None,
        dtype: str = "float32",
        allow_nan: bool = False,
        time_source: str | None = None,
        time_scale: float | None = None,
    ) -> None:
        steps = open_steps(spec, time_source)
        self._steps, self._name = steps, velocity_field_name
        self._choice: tuple[str, ...] | None = None
        self._dtype = float_dtype(dtype)
        self._allow_nan = allow_nan
        self._raw: Cells | None = None
        self._mesh: PreparedMesh | None = None
        self._axes: TensorGrid | None = None
        self._on_cells = False
        self.components = 0  # of the array, once a slice is read
        self.times: Float[np.ndarray, " steps"] = steps.times * (
            1.0 if time_scale is None else time_scale
        )
        counted = steps.time_source in (TIME_SOURCES["name"], TIME_SOURCES["index"])
        self._unsure = counted and len(self.times) > 1 and time_scale is None
        self._held: tuple[str, ...] = ()
        self.time_source, self.labels = steps.time_source, steps.labels

    @property
    def velocity_name(self) -> str:
        """The arrays that the velocity is read from."""
        if self._choice is None:
            self.read_slice(0)
        return ", ".join(self._choice or ())

    def notes(self) -> tuple[str, ...]:
        """Return what was done to the data, in words."""
        unsure = ("if these times count steps, give the time of one: time_scale",)
        averaged = ("averaged from cells to nodes",) if self._on_cells else ()
        return (
            *(unsure if self._unsure else ()),
            *averaged,
            *(() if self._mesh is None else self._mesh.notes()),
        )

    def held(self) -> tuple[str, ...]:
        """Return the names of the arrays beside the velocity."""
        return tuple(n for n in self._held if n not in self.velocity_name.split(", "))

    def read_slice(self, index: int) -> tuple[Geometry, Velocities]:
        """Return geometry and velocity of a slice; an equal mesh is the same object."""
        # The first slice read settles the array; one without it is in error.
        name = self._choice or self._name
        names = wanted_names(name)
        snapshot = self._steps.read(index, names)
        if name is None and not set(names) & set(snapshot.available):
            snapshot = self._steps.read(index)  # every array, to guess among
        choice, on_cells, values = pick_velocity(snapshot, name)
        self._choice, self._on_cells, self._held = choice, on_cells, snapshot.available
        check_values(values, ", ".join(choice), snapshot.source, self._allow_nan)
        geometry, values = self._nodal(snapshot, values, on_cells)
        self.components = values.shape[-1]
        return geometry, three_components(values, self._dtype)

    def size(self, index: int) -> int:
        """Return the number of nodes in the file, without reading its arrays."""
        return self._steps.read(index, ()).geometry.n_points

    def _nodal(
        self, snapshot: Snapshot, values: np.ndarray, on_cells: bool
    ) -> tuple[Geometry, np.ndarray]:
        geometry = snapshot.geometry
        if isinstance(geometry, TensorGrid):
            if self._axes is None or not same_geometry(geometry, self._axes):
                self._axes = geometry
            if on_cells:
                values = grid_cells_to_nodes(values, geometry.shape)
            return self._axes, values
        mesh = self._prepared(geometry, snapshot)
        return mesh.cells, mesh.nodal(values, on_cells)

    def _prepared(self, raw: Cells, snapshot: Snapshot) -> PreparedMesh:
        fresh = self._raw is None or not same_geometry(raw, self._raw)
        if self._mesh is None or fresh:
            check_values(raw.points, "the coordinates", snapshot.source, False)
            self._mesh = prepare_mesh(raw, snapshot.assembled)
            self._raw = raw
        return self._mesh


FORMAT = FileFormat("vtk", KNOWN_EXTENSIONS, ("vtkmodules",), VTKSlices)
