"""Velocity series from files: all slices in memory, or a reader of slices."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from jaxtrace.files.cells import grid_to_cells
from jaxtrace.files.patterns import PathSpec, pick_evenly
from jaxtrace.files.slices import SliceReader
from jaxtrace.files.snapshot import Cells, Geometry, GridAxes, storage_order
from jaxtrace.files.steps import open_steps
from jaxtrace.files.velocity import VelocityName


@dataclass(frozen=True, eq=False)
class MeshSeries:
    """Velocities on the nodes of a mesh, or of a mesh per slice where it changes."""

    times: Float[np.ndarray, " steps"]
    velocities: Float[np.ndarray, "steps nodes 3"] | tuple[np.ndarray, ...]
    geometry: Cells | tuple[Cells, ...]
    files: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def changes(self) -> bool:
        """Whether every slice has its own mesh."""
        return isinstance(self.geometry, tuple)


@dataclass(frozen=True, eq=False)
class GridSeries:
    """Velocities on the nodes of a tensor-product grid that stays the same."""

    times: Float[np.ndarray, " steps"]
    velocities: Float[np.ndarray, "steps nx ny nz 3"]
    geometry: GridAxes
    files: tuple[str, ...]
    notes: tuple[str, ...]


@runtime_checkable
class Slices(Protocol):
    """A series that is read slice by slice."""

    times: Float[np.ndarray, " steps"]
    labels: tuple[str, ...]

    def describe(self) -> tuple[str, ...]:
        """Where the data come from and what was done to them, in words."""
        ...

    def __len__(self) -> int: ...

    def read_slice(self, index: int) -> tuple[Any, np.ndarray]:
        """Geometry and velocity at one instant; an equal geometry is the same."""
        ...


def open_series(
    spec: PathSpec,
    velocity_name: VelocityName = None,
    max_time_steps: int | None = None,
    time_range: tuple[float, float] | None = None,
    dtype: str = "float32",
    *,
    skip_initial: int = 0,
    stable_mesh_only: bool = False,
    allow_nan: bool = False,
    merge_points: bool | None = None,
    time_source: str | None = None,
) -> SliceReader:
    """Find the slices of a series and their times; nothing else is read yet.

    Slices are chosen in this order: those inside `time_range` (both ends count),
    without the first `skip_initial`, only those of the commonest number of nodes if
    `stable_mesh_only` (this reads every mesh once), at most `max_time_steps` evenly
    spaced ones.
    """
    steps = open_steps(spec, time_source)
    options = (velocity_name, dtype, allow_nan, merge_points)
    chosen = in_range(steps.times, time_range)[_checked_skip(skip_initial) :]
    if chosen.size == 0:
        raise ValueError(
            f"no slices left of {steps.times.size} from t = {steps.times[0]:g} to "
            f"{steps.times[-1]:g} with time_range={time_range} and "
            f"skip_initial={skip_initial}"
        )
    dropped: tuple[str, ...] = ()
    if stable_mesh_only:
        reader = SliceReader(steps, chosen.tolist(), *options)
        sizes = np.array([reader.size(i) for i in range(len(reader))])
        commonest = Counter(sizes.tolist()).most_common(1)[0][0]
        dropped = tuple(steps.labels[i] for i in chosen[sizes != commonest])
        chosen = chosen[sizes == commonest]
    chosen = chosen[pick_evenly(chosen.size, max_time_steps)]
    return SliceReader(steps, chosen.tolist(), *options, dropped=dropped)


def read_series(
    spec: PathSpec,
    velocity_name: VelocityName = None,
    max_time_steps: int | None = None,
    time_range: tuple[float, float] | None = None,
    dtype: str = "float32",
    **options: Any,
) -> MeshSeries | GridSeries:
    """Read a series into memory, slice by slice; `options` are those of `open_series`.

    A mesh that changes between slices gives one mesh and one array per slice.
    """
    return load(
        open_series(spec, velocity_name, max_time_steps, time_range, dtype, **options)
    )


def load(reader: Slices) -> MeshSeries | GridSeries:
    """Read every slice of a reader."""
    geometries: list[Geometry] = []
    rows: list[np.ndarray] = []
    whole = np.zeros(0)
    for index in range(len(reader)):
        geometry, values = reader.read_slice(index)
        if index == 0:
            whole = np.empty((len(reader), *values.shape), values.dtype)
        geometries.append(geometry)
        if _constant(geometries):
            whole[index] = values
            values = whole[index]
        rows.append(values)
    first = geometries[0]
    if not _constant(geometries):
        return _changing(reader, geometries, rows)
    kind = GridSeries if isinstance(first, GridAxes) else MeshSeries
    return kind(reader.times, whole, first, reader.labels, reader.describe())  # pyright: ignore[reportArgumentType]


def _constant(geometries: Iterable[Geometry]) -> bool:
    return len({id(geometry) for geometry in geometries}) == 1


def _changing(
    reader: Slices, geometries: list[Geometry], rows: list[np.ndarray]
) -> MeshSeries:
    """A mesh per slice; a grid that changes is a mesh too."""
    meshes = {
        id(g): g if isinstance(g, Cells) else grid_to_cells(g) for g in geometries
    }
    return MeshSeries(
        reader.times,
        tuple(row if row.ndim == 2 else storage_order(row) for row in rows),
        tuple(meshes[id(geometry)] for geometry in geometries),
        reader.labels,
        reader.describe(),
    )


def in_range(times: np.ndarray, time_range: tuple[float, float] | None) -> np.ndarray:
    """Indices of the times inside the range, both ends included."""
    if time_range is None:
        return np.arange(times.size)
    low, high = time_range
    if not low <= high:
        raise ValueError(f"time_range must be (first, last), got {time_range}")
    return np.flatnonzero((times >= low) & (times <= high))


def _checked_skip(count: int) -> int:
    if count < 0:
        raise ValueError(f"skip_initial must not be negative, got {count}")
    return count
