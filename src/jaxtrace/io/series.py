"""Velocity series of any format: slices read one at a time, selected, or whole.

The reader of a format opens a `Slices`; all that follows is the same for every format.
"""

import importlib.util
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Integer

from jaxtrace.fields.curved_grid import CurvilinearGrid
from jaxtrace.fields.interpolation import TensorGrid
from jaxtrace.io.geometry import (
    Cells,
    Geometry,
    grid_to_cells,
    keep_cells,
    storage_order,
)

MIB = 2**20


class Slices(ABC):
    """A velocity series that is read slice by slice."""

    times: Float[np.ndarray, " steps"]
    time_source: str
    labels: tuple[str, ...]
    time_units: str | None = None  # as CF writes them, where times are dates
    calendar: str | None = None

    @property
    @abstractmethod
    def velocity_name(self) -> str:
        """The arrays that the velocity is read from."""

    @abstractmethod
    def read_slice(self, index: int) -> tuple[Geometry, np.ndarray]:
        """Return geometry and velocity of a slice; an equal geometry is the same.

        The velocity is (N, 3) on a mesh, (Nx, Ny, Nz, 3) on a grid.
        """

    def read(self, index: int) -> np.ndarray:
        """Return the velocity of a slice."""
        return self.read_slice(index)[1]

    def size(self, index: int) -> int:
        """Return the number of nodes of a slice."""
        return self.read_slice(index)[0].n_points

    def notes(self) -> tuple[str, ...]:
        """Return what was done to the data, in words."""
        return ()

    def held(self) -> tuple[str, ...]:
        """Return the names of what can be sampled: variables beside the velocity."""
        return ()

    def describe(self) -> tuple[str, ...]:
        """Return where velocity and times come from, and what was done to the data."""
        facts = f"velocity: {self.velocity_name}", f"times: {self.time_source}"
        return (*facts, *self.notes())

    def __len__(self) -> int:
        return len(self.times)


@dataclass(frozen=True)
class FileFormat:
    """A family of file formats: extensions, packages needed, and how to open one.

    `open(spec, **options)` returns slices; its keyword arguments are the options that
    users may give.
    """

    name: str
    extensions: tuple[str, ...]
    packages: tuple[str, ...]
    open: Callable[..., Slices]

    def missing(self) -> list[str]:
        """Return the packages that are not installed."""
        return [name for name in self.packages if not importlib.util.find_spec(name)]


class SlicesOf(Slices):
    """Another view of slices, which are read as they are unless a view says else."""

    def __init__(self, slices: Slices) -> None:
        self.slices, self.times, self.labels = slices, slices.times, slices.labels
        self.time_source = slices.time_source
        self.time_units, self.calendar = slices.time_units, slices.calendar

    @property
    def velocity_name(self) -> str:
        """The arrays that the velocity is read from."""
        return self.slices.velocity_name

    def held(self) -> tuple[str, ...]:
        """Return the names of what can be sampled."""
        return self.slices.held()

    def read_slice(self, index: int) -> tuple[Geometry, np.ndarray]:
        """Return geometry and velocity of a slice."""
        return self.slices.read_slice(index)


class PickedSlices(SlicesOf):
    """Some slices of a series, in its order."""

    def __init__(
        self,
        slices: Slices,
        picked: Integer[np.ndarray, " picked"],
        dropped: Sequence[str] = (),
    ) -> None:
        super().__init__(slices)
        self._picked, self._dropped = picked, dropped
        self.times = slices.times[picked]
        self.labels = tuple(slices.labels[i] for i in picked)

    def notes(self) -> tuple[str, ...]:
        """Return what was done to the data, in words."""
        left = (f"left out, another mesh size: {file}" for file in self._dropped)
        some = len(self) + len(self._dropped) < len(self.slices)
        used = (f"{len(self)} of {len(self.slices)} slices are used",) if some else ()
        return (*self.slices.notes(), *used, *left)

    def read_slice(self, index: int) -> tuple[Geometry, np.ndarray]:
        """Return geometry and velocity of a slice."""
        return self.slices.read_slice(int(self._picked[index]))


def select(
    slices: Slices,
    *,
    max_time_steps: int | None = None,
    time_range: tuple[float, float] | None = None,
    skip_initial_timesteps: int = 0,
    use_stable_mesh_only: bool = False,
) -> Slices:
    """Return some slices, chosen in this order.

    Those inside `time_range` (both ends count), without the first
    `skip_initial_timesteps`, only those of the commonest number of nodes if
    `use_stable_mesh_only` (this reads every mesh once), at most `max_time_steps` evenly
    spaced ones.
    """
    times, skip = slices.times, skip_initial_timesteps
    if skip < 0:
        raise ValueError(f"skip_initial_timesteps must not be negative, got {skip}")
    picked = np.arange(times.size)
    if time_range is not None:
        low, high = time_range
        if not low <= high:
            raise ValueError(f"time_range must be (first, last), got {time_range}")
        picked = np.flatnonzero((times >= low) & (times <= high))
    picked = picked[skip:]
    if picked.size == 0:
        raise ValueError(
            f"no slices left of {times.size} from t = {times[0]:g} to {times[-1]:g} "
            f"with time_range={time_range} and skip_initial_timesteps={skip}"
        )
    dropped: list[str] = []
    if use_stable_mesh_only:
        sizes = np.array([slices.size(int(i)) for i in picked])
        commonest = Counter(sizes.tolist()).most_common(1)[0][0]
        dropped = [slices.labels[i] for i in picked[sizes != commonest]]
        picked = picked[sizes == commonest]
    picked = picked[pick_evenly(picked.size, max_time_steps)]
    return PickedSlices(slices, picked, dropped)


def pick_evenly(n: int, most: int | None) -> Integer[np.ndarray, " picked"]:
    """Return at most `most` of `n` indices, evenly spaced, with the first and last."""
    if most is not None and most < 1:
        raise ValueError(f"max_time_steps must be at least 1, got {most}")
    if most is None or most >= n:
        return np.arange(n)
    if most == 1:
        return np.zeros(1, np.int64)
    gaps = most - 1
    return (2 * np.arange(most) * (n - 1) + gaps) // (2 * gaps)


def check_slice(values: np.ndarray, label: str, limit_mb: float) -> int:
    """Return the bytes of a slice; ValueError if that is above a limit."""
    if not limit_mb > 0:
        raise ValueError(f"max_memory_per_timestep_mb={limit_mb} must be above 0")
    size = values.nbytes / MIB
    if size > limit_mb:
        raise ValueError(
            f"{label}: a slice of {size:.4g} MB is above "
            f"max_memory_per_timestep_mb={limit_mb:g}; raise it, or give "
            'dtype="float32"'
        )
    return values.nbytes


@dataclass(frozen=True, eq=False)
class Series:
    """Velocities of all slices: on a grid, on a mesh, or with a mesh for each slice."""

    times: Float[np.ndarray, " steps"]
    velocities: np.ndarray | tuple[np.ndarray, ...]
    geometry: Geometry | tuple[Cells, ...]
    notes: tuple[str, ...]


def load(slices: Slices, limit_mb: float = math.inf) -> Series:
    """Read every slice, none of which may be too large; a mesh that changes is kept
    for each.
    """
    geometries: list[Geometry] = []
    rows: list[np.ndarray] = []
    whole = np.zeros(0)
    for index in range(len(slices)):
        geometry, values = slices.read_slice(index)
        check_slice(values, slices.labels[index], limit_mb)
        if index == 0:
            whole = np.empty((len(slices), *values.shape), values.dtype)
        geometries.append(geometry)
        if geometry is geometries[0]:
            whole[index] = values
            values = whole[index]
        rows.append(values)
    kept: Geometry | tuple[Cells, ...] = geometries[0]
    velocities: np.ndarray | tuple[np.ndarray, ...] = whole
    if len({id(geometry) for geometry in geometries}) > 1:
        # A grid that changes is a mesh too.
        meshes = {
            id(g): grid_to_cells(g) if isinstance(g, TensorGrid) else g
            for g in geometries
            if not isinstance(g, CurvilinearGrid)
        }
        kept = tuple(meshes[id(geometry)] for geometry in geometries)
        velocities = tuple(r if r.ndim == 2 else storage_order(r) for r in rows)
    return Series(slices.times, velocities, kept, slices.describe())


def float_dtype(dtype: Any) -> np.dtype:
    """Return the dtype of results; ValueError unless it is float32 or float64."""
    kind = np.dtype(dtype)
    if kind.type not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {dtype!r}")
    return kind


def discard_still_nodes(series: Series) -> Series:
    """Return the series without nodes at rest in every slice, and their cells."""
    notes = (*series.notes, "nodes without motion left out")
    if isinstance(series.geometry, tuple):
        kept = [np.any(v != 0, axis=-1) for v in series.velocities]
        meshes = tuple(map(_drop_nodes, series.geometry, kept))
        rows = tuple(v[k] for v, k in zip(series.velocities, kept, strict=True))
        return Series(series.times, rows, meshes, notes)
    cells, values = series.geometry, np.asarray(series.velocities)
    if isinstance(cells, CurvilinearGrid):
        raise ValueError(
            "nodes of a curvilinear grid stay: leave out discard_boundary_layers"
        )
    if isinstance(cells, TensorGrid):
        cells = grid_to_cells(cells)
        values = np.stack([storage_order(row) for row in values])
    keep = np.any(values != 0, axis=(0, 2))
    mesh = _drop_nodes(cells, keep)
    return Series(series.times, values[:, keep], mesh, notes)


def _drop_nodes(cells: Cells, keep: Bool[np.ndarray, " nodes"]) -> Cells:
    """Return the mesh of the marked nodes and of the cells that have no others."""
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
