"""`open_dataset`: a series in files as a mapping of arrays that loads when asked."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxtrace.files.hdf5 import H5Series
from jaxtrace.files.patterns import PathSpec
from jaxtrace.files.series import GridSeries, MeshSeries, Slices, load
from jaxtrace.io.readers import VTKStructuredSeries, VTKUnstructuredTimeSeriesReader
from jaxtrace.io.sources import (
    PickedSlices,
    format_of,
    node_arrays,
    noted,
    open_slices,
    source_name,
)

_FACTS = ("times", "source", "file_pattern", "time_source")
_DATA = ("velocity_data", "positions", "connectivity", "cell_types", "cell_offsets")
KEYS = (*_DATA, *_FACTS, "velocity_field_name", "notes")


class Dataset(Mapping[str, Any]):
    """A velocity series: `velocity_data` (T, N, 3), `positions` (N, 3), `times` (T,).

    Cells are VTK's flat `connectivity` with `cell_offsets` and `cell_types`, None where
    there are none. A mesh that changes gives a tuple with one array per slice. Times
    are known at once; the rest is read at the first use and kept.
    """

    def __init__(self, slices: Slices, source: str, pattern: str) -> None:
        self.slices = slices
        self._known: dict[str, Any] = {
            "times": slices.times,
            "source": source,
            "file_pattern": pattern,
        }

    def __getitem__(self, key: str) -> Any:
        if key not in KEYS:
            raise KeyError(f"{key!r}: there are {', '.join(KEYS)}")
        if key not in self._known:
            self._known = self.load_time_series()
        return self._known[key]

    def __iter__(self) -> Iterator[str]:
        return iter(KEYS)

    def __len__(self) -> int:
        return len(KEYS)

    def __repr__(self) -> str:
        times = self.times
        span = f"{len(times)} slices from t = {times[0]:g} to {times[-1]:g}"
        return f"Dataset({self._known['file_pattern']}: {span})"

    @property
    def times(self) -> Float[np.ndarray, " steps"]:
        """The instants of the slices."""
        return self.slices.times

    @property
    def n_timesteps(self) -> int:
        """How many slices there are."""
        return len(self.slices)

    def load_slice(self, index: int) -> np.ndarray:
        """The velocity of one slice: (N, 3), or (Nx, Ny, Nz, 3) on a grid."""
        return self.slices.read_slice(range(len(self.slices))[index])[1]

    def load_time_series(
        self, start: int | None = None, end: int | None = None
    ) -> dict[str, Any]:
        """All arrays of the slices from `start` up to `end`, which is left out."""
        picked = np.arange(len(self.slices))[start:end]
        if not picked.size:
            raise ValueError(
                f"no slices from {start} to {end} of a series of {len(self.slices)}"
            )
        if picked.size == len(self.slices):
            if "velocity_data" in self._known:
                return dict(self._known)
            return self._loaded(self.slices)
        return self._loaded(PickedSlices(self.slices, picked))

    def _loaded(self, slices: Slices) -> dict[str, Any]:
        facts = {name: self._known[name] for name in ("source", "file_pattern")}
        return read_arrays(slices) | facts


def read_arrays(slices: Slices) -> dict[str, Any]:
    """Every slice of a series as arrays by their names."""
    return series_arrays(load(slices)) | {
        "velocity_field_name": noted(slices, "velocity"),
        "time_source": noted(slices, "times"),
    }


def series_arrays(series: MeshSeries | GridSeries) -> dict[str, Any]:
    """A loaded series as arrays by their names."""
    facts = {"times": series.times, "notes": series.notes}
    geometry = series.geometry
    if isinstance(geometry, tuple):
        each = [node_arrays(mesh) for mesh in geometry]
        tuples = {name: tuple(arrays[name] for arrays in each) for name in each[0]}
        return {"velocity_data": tuple(series.velocities), **tuples, **facts}
    values = np.asarray(series.velocities)
    rows = values.reshape(values.shape[0], -1, 3)
    return {"velocity_data": rows, **node_arrays(geometry), **facts}


def open_dataset(
    path_spec: Any, format_type: str | None = None, **options: Any
) -> Dataset:
    """Open a file, glob, list, folder, collection or case as one velocity series.

    `options` are those of `jaxtrace.io.sources.open_slices`. FileNotFoundError says
    what was looked for, ValueError which extensions are known, ImportError what has to
    be installed.
    """
    name = format_of(path_spec, format_type)
    slices = open_slices(path_spec, name, **options)
    return Dataset(slices, name, source_name(path_spec))


def open_vtk_dataset(path_spec: PathSpec, **options: Any) -> Dataset:
    """Open files that VTK reads as one velocity series."""
    return open_dataset(path_spec, "vtk", **options)


open_vtk_series = open_vtk_dataset


def open_vtk_time_series(
    file_pattern: PathSpec, **options: Any
) -> VTKUnstructuredTimeSeriesReader:
    """Open a series on an unstructured mesh, to be read step by step."""
    return VTKUnstructuredTimeSeriesReader(file_pattern, **options)


def open_vtk_structured_series(spec: PathSpec, **options: Any) -> VTKStructuredSeries:
    """Open a series on a grid, to be read step by step."""
    return VTKStructuredSeries(spec, **options)


def open_hdf5_series(spec: PathSpec, dataset: str = "velocity") -> H5Series:
    """Open a series in HDF5, to be read step by step."""
    return H5Series(spec, dataset)
