"""Velocity series in HDF5 with the coordinates that are stored beside them."""

from typing import Any

import numpy as np
from jaxtyping import Float

from jaxtrace.files.hdf5 import H5Series
from jaxtrace.files.hdf5_store import open_hdf5
from jaxtrace.files.patterns import PathSpec
from jaxtrace.files.series import in_range
from jaxtrace.files.slices import float_dtype
from jaxtrace.files.snapshot import Cells, Geometry, GridAxes, ascending
from jaxtrace.files.velocity import check_values, three_components

POSITION_NAMES = ("positions", "points", "coordinates")
AXIS_NAMES = (("x", "y", "z"), ("grid_x", "grid_y", "grid_z"))
CELL_NAMES = ("connectivity", "cell_offsets", "cell_types")


class H5Slices:
    """The slices of an HDF5 series as every other series has them.

    Nodes are an array (N, 3) named positions, points or coordinates, with cells in
    connectivity, cell_offsets and cell_types if there are any; a grid has the axes x,
    y and z, or grid_x, grid_y and grid_z.
    """

    def __init__(
        self,
        spec: PathSpec,
        dataset: str = "velocity",
        time_range: tuple[float, float] | None = None,
        dtype: str = "float32",
        allow_nan: bool = False,
    ) -> None:
        self.series = H5Series(spec, dataset)
        self._dtype, self._allow_nan = float_dtype(dtype), allow_nan
        chosen = in_range(self.series.times, time_range)
        if chosen.size == 0:
            times = self.series.times
            raise ValueError(
                f"no slices between {time_range}; times run from {times[0]:g} to "
                f"{times[-1]:g}"
            )
        self._chosen = chosen
        self.times: Float[np.ndarray, " steps"] = self.series.times[self._chosen]
        self.time_source = "the file, or the index of the step"
        file = self.series.files[0]
        self.labels = tuple(f"{file}, step {step}" for step in self._chosen)
        self._stored: tuple[np.ndarray, ...] = ()
        self._geometry: Geometry | None = None

    def __len__(self) -> int:
        return self._chosen.size

    @property
    def geometry(self) -> Geometry:
        """Where the velocities are."""
        if self._geometry is None:
            self._geometry = self._find_geometry()
        return self._geometry

    def describe(self) -> tuple[str, ...]:
        """Where the velocity and the times come from, in words."""
        return f"velocity: {self.series.dataset}", f"times: {self.time_source}"

    def read(self, index: int) -> np.ndarray:
        """The velocity at one instant: (N, 3), or (Nx, Ny, Nz, 3) on a grid."""
        geometry, raw = self.geometry, self.series.load_slice(int(self._chosen[index]))
        label = self.labels[index]
        check_values(raw, self.series.dataset, label, self._allow_nan)
        grid = isinstance(geometry, GridAxes)
        due = geometry.shape if grid else (geometry.n_points,)
        if raw.shape[:-1] != due:
            raise ValueError(
                f"{label}: velocities of shape {raw.shape} at coordinates of {due}"
            )
        values = three_components(raw, self._dtype)
        return ascending(self._stored, {"": values})[1][""] if grid else values

    def read_slice(self, index: int) -> tuple[Geometry, np.ndarray]:
        """The coordinates, which are the same for all, and one velocity."""
        return self.geometry, self.read(index)

    def _find_geometry(self) -> Geometry:
        file = self.series.files[0]
        gridded = self.series.load_slice(0).ndim == 4
        with open_hdf5(file) as root:
            found = _find_axes(root) if gridded else _find_points(root)
        if isinstance(found, Cells):
            return found
        if found is not None:
            self._stored = found
            return GridAxes(*ascending(found, {})[0])
        names = " or ".join(", ".join(names) for names in AXIS_NAMES)
        due = names if gridded else " or ".join(POSITION_NAMES)
        raise ValueError(f"{file}: no coordinates; store them beside the data as {due}")


def _find_axes(root: Any) -> tuple[np.ndarray, ...] | None:
    for names in AXIS_NAMES:
        if all(name in root for name in names[:2]):
            axes = [np.asarray(root[name][()], np.float64) for name in names[:2]]
            flat = names[2] not in root
            third = np.zeros(1) if flat else np.asarray(root[names[2]][()], np.float64)
            return *axes, np.atleast_1d(third)
    return None


def _find_points(root: Any) -> Cells | None:
    for name in POSITION_NAMES:
        if name in root:
            points = three_components(np.asarray(root[name][()]), np.float64)
            if all(part in root for part in CELL_NAMES):
                return Cells(points, *(root[part][()] for part in CELL_NAMES))
            none = np.zeros(0, np.int64)
            return Cells(points, none, np.zeros(1, np.int64), none)
    return None
