"""Velocity series in HDF5: one dataset, one group of steps, or one file per step."""

import contextlib
import re
from collections.abc import Generator, Sequence
from itertools import product, takewhile
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxrig.machine import import_extra
from jaxtrace.fields.interpolation import TensorGrid
from jaxtrace.fields.topology import Elements
from jaxtrace.io.geometry import Cells, Geometry, ascending
from jaxtrace.io.series import FileFormat, Slices, float_dtype
from jaxtrace.io.steps import PathSpec, find_files
from jaxtrace.io.velocity import (
    COMPONENT_NAMES,
    VELOCITY_NAMES,
    check_values,
    three_components,
)

EXTENSIONS = (".h5", ".hdf5")
POSITION_NAMES = ("positions", "points", "coordinates")
AXIS_NAMES = (("x", "y", "z"), ("X", "Y", "Z"), ("grid_x", "grid_y", "grid_z"))
_STEP = re.compile(r"(?:t|step_?)?(\d+)")
_TIME_NAMES = ("times", "time", "t")
Step = tuple[Path, tuple[str, ...], int | None]  # file, arrays, row


class H5Slices(Slices):
    """Slices of a series stored in HDF5, with the coordinates stored beside them.

    The velocity is one array (T, Nx, Ny, Nz, C) - or (T, Nx, Ny, C) in a plane, or
    (T, N, C) on nodes - or a group with an array per step named t0000, step_0 or 0;
    with several files, the array of each. Several names are its components, without C.
    Nodes are an array (N, 3) named positions, points or coordinates, with cells in
    connectivity, and if they are not rows in cell_offsets and cell_types; a grid has
    the axes x, y and z, or grid_x, grid_y and grid_z. Coordinates and times are looked
    for in the group of the velocity, then in those around it; a step may have a time of
    its own. Nothing is kept open.
    """

    def __init__(
        self,
        spec: PathSpec,
        *,
        velocity_field_name: str | Sequence[str] | None = None,
        dtype: str = "float32",
        allow_nan: bool = False,
    ) -> None:
        self._dtype, self._allow_nan = float_dtype(dtype), allow_nan
        self.files: tuple[Path, ...] = tuple(find_files(spec, EXTENSIONS))
        wanted = velocity_field_name
        if wanted is None:
            with open_hdf5(self.files[0]) as root:
                wanted = _find_velocity(root)
        self.names = (wanted,) if isinstance(wanted, str) else tuple(wanted)
        self._slices = self._find_slices()
        self.times, self.time_source = self._find_times()
        self.labels = tuple(
            f"{file}, step {step}" for step, (file, *_) in enumerate(self._slices)
        )
        self._stored: tuple[np.ndarray, ...] = ()
        self._geometry: Geometry | None = None
        self.components = 0  # of the array, once a slice is read

    def __len__(self) -> int:
        return len(self._slices)

    @property
    def velocity_name(self) -> str:
        """The datasets that the velocity is read from."""
        return ", ".join(self.names)

    def read_slice(self, index: int) -> tuple[Geometry, np.ndarray]:
        """Return the coordinates, which are the same for all, and one velocity."""
        if self._geometry is None:
            self._geometry = self._find_geometry()
        geometry, raw, label = self._geometry, self._load(index), self.labels[index]
        check_values(raw, self.velocity_name, label, self._allow_nan)
        grid = isinstance(geometry, TensorGrid)
        if grid and raw.ndim == 3:  # of a plane
            raw = raw[:, :, None]
        due = geometry.shape if grid else (geometry.n_points,)
        if raw.shape[:-1] != due:
            raise ValueError(
                f"{label}: velocities of shape {raw.shape} at coordinates of {due}: "
                "store them with the axes in the order x, y, z, components last"
            )
        self.components = raw.shape[-1]
        values = three_components(raw, self._dtype)
        if grid:
            values = ascending(self._stored, {"": values})[1][""]
        return geometry, values

    def _load(self, index: int) -> np.ndarray:
        file, names, row = self._slices[index]
        with open_hdf5(file) as root:
            parts = [root[n][()] if row is None else root[n][row] for n in names]
        return parts[0] if len(parts) == 1 else np.stack(parts, axis=-1)

    def _find_slices(self) -> list[Step]:
        """Return file, arrays and row of every step."""
        found = [self._slices_in(file) for file in self.files]
        for file, steps in zip(self.files, found, strict=True):
            if len(found) > 1 and len(steps) > 1:
                raise ValueError(
                    f"{file}: {self.velocity_name!r} holds {len(steps)} steps; files "
                    "of a series hold one step each"
                )
        return [step for steps in found for step in steps]

    def _slices_in(self, file: Path) -> list[Step]:
        with open_hdf5(file) as root:
            lists = [_arrays_of(root, name) for name in self.names]
            if not lists[0] or len(set(map(len, lists))) > 1:
                there = ", ".join(_listed(root)) or "nothing"
                raise ValueError(
                    f"{file}: no dataset or group of steps {self.velocity_name!r}; the "
                    f"file holds {there}: give one as velocity_field_name="
                )
            steps = list(zip(*lists, strict=True))
            node = root[steps[0][0]]
            if hasattr(root.get(self.names[0]), "shape"):
                rows = self._rows(node, file)
                return [(file, steps[0], row) for row in rows]
            return [(file, step, None) for step in steps]

    def _rows(self, node: Any, file: Path) -> Sequence[int | None]:
        """Return the rows of an array that are steps; None if it is one step itself."""
        shape = [*node.shape, 3][: node.ndim + (len(self.names) > 1)]
        axes, places = _find_axes(node), 1
        if axes is None or len(shape) > 4:
            places = 3 if len(shape) > 3 else 1
        elif _find_points(node) is None:
            # In a plane an axis of one node may stand for z.
            flat = axes[2].size == 1 and shape[2:3] != [1]
            places = 2 if flat else 3
        if len(shape) in (places + 1, places + 2):
            return [None] if len(shape) == places + 1 else range(shape[0])
        raise ValueError(
            f"{file}: {self.velocity_name!r} must be (T, Nx, Ny, Nz, C), (T, Nx, Ny, "
            f"C) or (T, N, C), or one step of them, it is {node.shape}"
        )

    def _find_times(self) -> tuple[Float[np.ndarray, " steps"], str]:
        """Return times stored beside the data, else the index of the step."""
        found: list[np.ndarray] = []
        for file, names in dict.fromkeys(step[:2] for step in self._slices):
            with open_hdf5(file) as root:
                found.append(_stored_times(root[names[0]]))
        count, listed = len(self), np.concatenate(found)
        if found[0].size == count:  # of all steps
            return found[0], "the file"
        if listed.size == count == np.unique(listed).size:
            return listed, "the steps in the file"
        odd = f" ({found[0].size} times for {count} steps)" if found[0].size else ""
        return np.arange(count) * 1.0, f"the index of the step{odd}"

    def _find_geometry(self) -> Geometry:
        file, names, _ = self._slices[0]
        gridded = self._load(0).ndim > 2
        with open_hdf5(file) as root:
            node = root[names[0]]
            found = _find_axes(node) if gridded else _find_points(node)
        if isinstance(found, Cells):
            return found
        if found is not None:
            self._stored = found
            return TensorGrid(ascending(found, {})[0])
        due = " or ".join(", ".join(names) for names in AXIS_NAMES[::2])
        due = due if gridded else " or ".join(POSITION_NAMES)
        raise ValueError(f"{file}: no coordinates; store them beside the data as {due}")


def _find_velocity(root: Any) -> tuple[str, ...]:
    """Return the array or components that have the name of a velocity."""
    groups = [""]
    root.visititems(lambda n, node: None if _is_array(node) else groups.append(f"{n}/"))
    for place in groups:
        inside = root[place or "/"]
        parts = [tuple(takewhile(inside.__contains__, c)) for c in COMPONENT_NAMES]
        sets = [c for c in parts if len(c) > 1]
        single = [(n,) for n in VELOCITY_NAMES if all(n not in c for c in sets)]
        for names in (*single, *sets):
            if not _STEP.fullmatch(place[:-1]) and names[0] in inside:
                return tuple(f"{place}{name}" for name in names)
    return ("velocity",)  # in groups of steps


def _is_array(node: Any) -> bool:
    return hasattr(node, "shape")


def _arrays_of(root: Any, name: str) -> list[str]:
    """Return the array of that name, or those of the steps that it stands for."""
    node = root.get(name)
    if _is_array(node):
        return [name]
    steps = _step_names(root if node is None else node)
    # The array of a step may itself be in a group that holds it.
    found = [n if _is_array(root[n]) else f"{n}/{name}" for n in steps]
    return found if all(_is_array(root.get(n)) for n in found) else []


def _listed(root: Any) -> list[str]:
    """Return what the file holds, and what is in its groups."""
    inner = lambda n: [] if _is_array(root[n]) else [f"{n}/{m}" for m in root[n]]
    return [name for outer in root for name in (inner(outer) or [outer])]


def _around(node: Any) -> Generator[Any, None, None]:
    """Yield the groups that an array is in, the innermost first."""
    while node.name != "/":
        node = node.parent
        yield node


def _stored_times(node: Any) -> Float[np.ndarray, " _"]:
    for place in (node.attrs, *(p for g in _around(node) for p in (g, g.attrs))):
        for name in _TIME_NAMES:
            value = place.get(name)
            if _is_array(value):
                return np.atleast_1d(np.asarray(value, np.float64))
    return np.zeros(0)


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


def _find_axes(node: Any) -> tuple[np.ndarray, ...] | None:
    for group, names in product(_around(node), AXIS_NAMES):
        if all(_is_array(group.get(name)) for name in names[:2]):
            stored = [group[name][()] if name in group else 0.0 for name in names]
            return tuple(np.atleast_1d(np.asarray(axis, np.float64)) for axis in stored)
    return None


def _find_points(node: Any) -> Cells | None:
    for group, name in product(_around(node), POSITION_NAMES):
        if name in group:
            points = three_components(np.asarray(group[name][()]), np.float64)
            none = np.zeros(0, np.int64)
            if "connectivity" not in group:
                return Cells(points, none, np.zeros(1, np.int64), none)
            names = ("connectivity", "cell_types", "cell_offsets")
            arrays = (group[part][()] if part in group else None for part in names)
            return Cells(points, *Elements(*arrays).flatten(points))
    return None


FORMAT = FileFormat("hdf5", EXTENSIONS, ("h5py",), H5Slices)
