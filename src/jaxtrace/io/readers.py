"""Series of VTK files read step by step: on meshes with a cache, and on grids."""

from typing import Any

import numpy as np
from jaxtyping import Float

from jaxrig.storage import ByteCache
from jaxtrace.config import memory_budget_bytes
from jaxtrace.files.cells import grid_to_cells
from jaxtrace.files.patterns import PathSpec
from jaxtrace.files.series import open_series
from jaxtrace.files.snapshot import Cells, GridAxes, storage_order
from jaxtrace.files.velocity import VelocityName
from jaxtrace.io.sources import node_arrays, noted, source_name

Step = tuple[Cells, Float[np.ndarray, "nodes 3"]]


class VTKUnstructuredTimeSeriesReader:
    """The steps of a series on a mesh, with those read last kept in memory.

    At most `max_time_steps` are read, evenly spaced. `cache_size_limit` is how many
    steps are kept; None keeps what fits the configured memory limit. A grid is read as
    the mesh of its boxes.
    """

    def __init__(
        self,
        file_pattern: PathSpec,
        max_time_steps: int | None = None,
        velocity_field_name: VelocityName = None,
        cache_size_limit: int | None = None,
        **options: Any,
    ) -> None:
        self.file_pattern = source_name(file_pattern)
        self._slices = open_series(
            file_pattern, velocity_field_name, max_time_steps, **options
        )
        self._cache = ByteCache(memory_budget_bytes(), cache_size_limit)
        self._grid: tuple[GridAxes, Cells] | None = None
        self._meshes: dict[int, Cells] = {}

    def __len__(self) -> int:
        return len(self._slices)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.load_single_timestep(index)

    @property
    def times(self) -> Float[np.ndarray, " steps"]:
        """The instants of the steps."""
        return self._slices.times

    @property
    def velocity_field_name(self) -> str:
        """The array that the velocity is read from."""
        return noted(self._slices, "velocity")

    def load_single_timestep(self, index: int) -> dict[str, Any]:
        """One step: `velocity_data` (N, 3), `positions`, `time` and the cells."""
        number = self._number(index)
        mesh, values = self._step(number)
        facts = {"time": float(self.times[number]), "file": self._slices.labels[number]}
        return {"velocity_data": values, **node_arrays(mesh), **facts}

    def load_time_series(
        self, start: int | None = None, end: int | None = None
    ) -> dict[str, Any]:
        """The steps from `start` up to `end`, which is left out, by name of array."""
        numbers = range(len(self))[start:end]
        if not numbers:
            raise ValueError(f"no steps from {start} to {end} of {len(self)}")
        steps = [self._step(number) for number in numbers]
        for number, (mesh, _) in zip(numbers, steps, strict=True):
            if not mesh.same_as(steps[0][0]):
                raise ValueError(
                    f"{self._slices.labels[number]}: the mesh of {mesh.n_points} nodes "
                    f"is not that of {steps[0][0].n_points} nodes before; "
                    "load_optimized_dataset reads meshes that change"
                )
        return {
            "velocity_data": np.stack([values for _, values in steps]),
            **node_arrays(steps[0][0]),
            "times": self.times[numbers.start : numbers.stop],
            "source": "vtk",
            "file_pattern": self.file_pattern,
            "velocity_field_name": self.velocity_field_name,
            "time_source": self._slices.time_source,
        }

    def get_bounds(self) -> tuple[float, ...]:
        """The lowest and then the highest x, y and z of the first mesh."""
        points = self._step(0)[0].points
        return tuple(float(v) for v in (*points.min(0), *points.max(0)))

    def get_grid_info(self) -> dict[str, Any]:
        """Nodes, cells, VTK's codes of their kinds, and bounds of the first mesh."""
        mesh = self._step(0)[0]
        kinds, counts = np.unique(mesh.types, return_counts=True)
        return {
            "n_points": mesh.n_points,
            "n_cells": mesh.n_cells,
            "cell_types": dict(zip(kinds.tolist(), counts.tolist(), strict=True)),
            "bounds": self.get_bounds(),
        }

    def get_time_range(self) -> tuple[float, float]:
        """The first and the last instant."""
        return float(self.times[0]), float(self.times[-1])

    def validate_files(self, max_files: int = 5) -> dict[str, Any]:
        """Whether the first files can be read, with the error of each that cannot."""
        errors: dict[str, str] = {}
        checked = self._slices.labels[:max_files]
        for index, label in enumerate(checked):
            try:
                self._slices.read_slice(index)
            except (ValueError, OSError) as error:
                errors[label] = str(error)
        return {"valid": not errors, "checked": list(checked), "errors": errors}

    def get_velocity_statistics(self, index: int = 0) -> dict[str, Any]:
        """Mean, deviation and range of the speed, and of each component, of a step."""
        values = self._step(self._number(index))[1].astype(np.float64)
        speed = np.linalg.norm(values, axis=1)
        figures: dict[str, Any] = {
            name: {
                "mean": float(part.mean()),
                "std": float(part.std()),
                "min": float(part.min()),
                "max": float(part.max()),
            }
            for name, part in zip("uvw", values.T, strict=True)
        }
        return figures | {
            "mean_speed": float(speed.mean()),
            "std_speed": float(speed.std()),
            "min_speed": float(speed.min()),
            "max_speed": float(speed.max()),
        }

    def preload_timesteps(self, indices: Any = None) -> None:
        """Read steps into the cache: all of them, or some."""
        for index in range(len(self)) if indices is None else indices:
            self._step(self._number(index))

    def clear_cache(self) -> None:
        """Forget the steps that were read."""
        self._cache.clear()
        self._meshes.clear()

    def _number(self, index: int) -> int:
        if not -len(self) <= index < len(self):
            raise IndexError(f"step {index} of a series of {len(self)}")
        return index % len(self)

    def _step(self, number: int) -> Step:
        values = self._cache.get(str(number), lambda: self._read(number))
        return self._meshes[number], values

    def _read(self, number: int) -> np.ndarray:
        geometry, values = self._slices.read_slice(number)
        if isinstance(geometry, Cells):
            self._meshes[number] = geometry
            return values
        if self._grid is None or self._grid[0] is not geometry:
            self._grid = geometry, grid_to_cells(geometry)
        self._meshes[number] = self._grid[1]
        return storage_order(values)


class VTKStructuredSeries:
    """The steps of a series on one grid, as arrays indexed [ix, iy, iz, component]."""

    def __init__(
        self,
        spec: PathSpec,
        max_time_steps: int | None = None,
        velocity_field_name: VelocityName = None,
        **options: Any,
    ) -> None:
        self._slices = open_series(spec, velocity_field_name, max_time_steps, **options)
        first = self._slices.geometry
        if not isinstance(first, GridAxes):
            raise ValueError(
                f"{self._slices.labels[0]}: a mesh and no grid with straight axes; "
                "read it with VTKUnstructuredTimeSeriesReader"
            )
        self.axes: GridAxes = first

    def __len__(self) -> int:
        return len(self._slices)

    def load_slice(self, index: int) -> Float[np.ndarray, "nx ny nz 3"]:
        """The velocity of one step."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"step {index} of a series of {len(self)}")
        number = index % len(self)
        geometry, values = self._slices.read_slice(number)
        if not (isinstance(geometry, GridAxes) and geometry.same_as(self.axes)):
            raise ValueError(
                f"{self._slices.labels[number]}: its grid differs from the first one; "
                "load_optimized_dataset reads series that change"
            )
        return values

    def load_full_series(self) -> Float[np.ndarray, "steps nx ny nz 3"]:
        """The velocities of all steps."""
        return np.stack([self.load_slice(index) for index in range(len(self))])

    def get_times(self) -> Float[np.ndarray, " steps"]:
        """The instants of the steps."""
        return self._slices.times
