"""Velocity series in HDF5: one dataset, one group of steps, or one file per step."""

import contextlib
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxrig.machine import import_extra
from jaxtrace.fields.interpolation import TensorGrid
from jaxtrace.io.geometry import Cells, Geometry, ascending
from jaxtrace.io.series import FileFormat, Slices, float_dtype
from jaxtrace.io.steps import PathSpec, find_files
from jaxtrace.io.velocity import check_values, three_components

EXTENSIONS = (".h5", ".hdf5")
POSITION_NAMES = ("positions", "points", "coordinates")
AXIS_NAMES = (("x", "y", "z"), ("grid_x", "grid_y", "grid_z"))
CELL_NAMES = ("connectivity", "cell_offsets", "cell_types")
_STEP = re.compile(r"(?:t|step_?)?(\d+)")
_TIME_NAMES = ("times", "time")


class H5Slices(Slices):
    """Slices of a series stored in HDF5, with the coordinates stored beside them.

    The velocity is one array (T, Nx, Ny, Nz, C) - or (T, N, C) on nodes - or a group
    with an array per step named t0000, step_0 or 0; with several files, the array of
    each. Nodes are an array (N, 3) named positions, points or coordinates,
    with cells in connectivity, cell_offsets and cell_types if there are any; a grid has
    the axes x, y and z, or grid_x, grid_y and grid_z. Nothing is kept open.
    """

    def __init__(
        self,
        spec: PathSpec,
        *,
        velocity_field_name: str = "velocity",
        dtype: str = "float32",
        allow_nan: bool = False,
    ) -> None:
        self.dataset = velocity_field_name
        self._dtype, self._allow_nan = float_dtype(dtype), allow_nan
        self.files: tuple[Path, ...] = tuple(find_files(spec, EXTENSIONS))
        self._slices = self._find_slices()
        self.times: Float[np.ndarray, " steps"] = self._find_times()
        self.time_source = "the file, or the index of the step"
        self.labels = tuple(
            f"{file}, step {step}" for step, (file, *_) in enumerate(self._slices)
        )
        self._stored: tuple[np.ndarray, ...] = ()
        self._geometry: Geometry | None = None

    def __len__(self) -> int:
        return len(self._slices)

    @property
    def velocity_name(self) -> str:
        """The dataset that the velocity is read from."""
        return self.dataset

    def read_slice(self, index: int) -> tuple[Geometry, np.ndarray]:
        """Return the coordinates, which are the same for all, and one velocity."""
        if self._geometry is None:
            self._geometry = self._find_geometry()
        geometry, raw, label = self._geometry, self._load(index), self.labels[index]
        check_values(raw, self.dataset, label, self._allow_nan)
        grid = isinstance(geometry, TensorGrid)
        due = geometry.shape if grid else (geometry.n_points,)
        if raw.shape[:-1] != due:
            raise ValueError(
                f"{label}: velocities of shape {raw.shape} at coordinates of {due}"
            )
        values = three_components(raw, self._dtype)
        if grid:
            values = ascending(self._stored, {"": values})[1][""]
        return geometry, values

    def _load(self, index: int) -> np.ndarray:
        file, name, row = self._slices[index]
        with open_hdf5(file) as root:
            return root[name][()] if row is None else root[name][row]

    def _find_slices(self) -> list[tuple[Path, str, int | None]]:
        """Return file, array and row of every step."""
        found = [self._slices_in(file) for file in self.files]
        for file, steps in zip(self.files, found, strict=True):
            if len(found) > 1 and len(steps) > 1:
                raise ValueError(
                    f"{file}: {self.dataset!r} holds {len(steps)} steps; files of a "
                    "series hold one step each"
                )
        return [step for steps in found for step in steps]

    def _slices_in(self, file: Path) -> list[tuple[Path, str, int | None]]:
        with open_hdf5(file) as root:
            node = root.get(self.dataset)
            if node is None or not hasattr(node, "shape"):
                steps = _step_names(root if node is None else node)
                # The array of a step may itself be in a group that holds it.
                nested = f"/{self.dataset}"
                names = [n if hasattr(root[n], "shape") else n + nested for n in steps]
                if not names or not all(name in root for name in names):
                    raise ValueError(
                        f"{file}: no dataset or group of steps {self.dataset!r}; the "
                        f"file holds {', '.join(root) or 'nothing'}: give one as "
                        "velocity_field_name="
                    )
                return [(file, name, None) for name in names]
            if node.ndim in (3, 5):
                return [(file, self.dataset, row) for row in range(node.shape[0])]
            if node.ndim in (2, 4):
                return [(file, self.dataset, None)]
            raise ValueError(
                f"{file}: {self.dataset!r} must be (T, Nx, Ny, Nz, C) or (T, N, C), or "
                f"one step of them, it is {node.shape}"
            )

    def _find_times(self) -> np.ndarray:
        """Return times stored beside the data, else the index of the step."""
        found: list[float] = []
        for file in self.files:
            with open_hdf5(file) as root:
                found += _stored_times(root)
        stated = len(found) == len(self)
        return np.array(found) if stated else np.arange(len(self)) * 1.0

    def _find_geometry(self) -> Geometry:
        file = self.files[0]
        gridded = self._load(0).ndim == 4
        with open_hdf5(file) as root:
            found = _find_axes(root) if gridded else _find_points(root)
        if isinstance(found, Cells):
            return found
        if found is not None:
            self._stored = found
            return TensorGrid(ascending(found, {})[0])
        names = " or ".join(", ".join(names) for names in AXIS_NAMES)
        due = names if gridded else " or ".join(POSITION_NAMES)
        raise ValueError(f"{file}: no coordinates; store them beside the data as {due}")


def _stored_times(root: Any) -> list[float]:
    for name in _TIME_NAMES:
        for place in (root, root.attrs):
            if name in place:
                value = place[name]
                values = value[()] if hasattr(value, "shape") else value
                return [float(v) for v in np.atleast_1d(values)]
    return []


def _step_names(group: Any) -> list[str]:
    """Return full names of the members named like steps, in order of number."""
    matches = [(match, name) for name in group if (match := _STEP.fullmatch(name))]
    matches.sort(key=lambda pair: int(pair[0][1]))
    return [f"{group.name.rstrip('/')}/{name}" for _, name in matches]


@contextlib.contextmanager
def open_hdf5(path: Path) -> Generator[Any, None, None]:
    """Open a file to read; what HDF5 cannot read is a ValueError that names it."""
    h5py = import_extra("h5py", "HDF5 files", "trace")
    try:
        with h5py.File(path, "r") as root:
            yield root
    except (OSError, KeyError) as error:
        raise ValueError(f"{path}: HDF5 cannot read the file: {error}") from error


def _find_axes(root: Any) -> tuple[np.ndarray, ...] | None:
    for names in AXIS_NAMES:
        if all(name in root for name in names[:2]):
            stored = [root[name][()] if name in root else 0.0 for name in names]
            return tuple(np.atleast_1d(np.asarray(axis, np.float64)) for axis in stored)
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


FORMAT = FileFormat("hdf5", EXTENSIONS, ("h5py",), H5Slices)
