"""Velocity series in HDF5: one dataset, one group of steps, or one file per step."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Shaped

from jaxrig.machine import missing_extra
from jaxtrace.files.hdf5_store import append_h5_trajectories, write_h5_trajectories
from jaxtrace.files.patterns import PathSpec, find_files

HDF5_EXTENSIONS = (".h5", ".hdf5")
_STEP = re.compile(r"(?:t|step_?)?(\d+)")
_TIME_NAMES = ("times", "time")


class H5Series:
    """Slices of a series stored in HDF5.

    `dataset` names one array (T, Nx, Ny, Nz, C) - or (T, N, C) on nodes - or a group
    with an array per step named t0000, step_0 or 0; with several files it names the
    array of each. Nothing is kept open between calls.
    """

    write_trajectories = staticmethod(write_h5_trajectories)
    append_trajectories = staticmethod(append_h5_trajectories)

    def __init__(self, spec: PathSpec, dataset: str = "velocity") -> None:
        self.dataset = dataset
        self.files: tuple[Path, ...] = tuple(find_files(spec, HDF5_EXTENSIONS))
        self._slices = self._find_slices()
        self.times: Float[np.ndarray, " steps"] = self._find_times()

    def __len__(self) -> int:
        return len(self._slices)

    def load_slice(self, index: int) -> Shaped[np.ndarray, "*shape components"]:
        """The array of one step; negative indices count from the end."""
        try:
            file, name, row = self._slices[index]
        except IndexError as error:
            raise IndexError(
                f"step {index} of a series of {len(self)} in {self.files[0]}"
            ) from error
        with _reading(file) as root:
            return root[name][()] if row is None else root[name][row]

    def _find_slices(self) -> list[tuple[Path, str, int | None]]:
        file, *others = self.files
        if others:
            return [(file, *self._single(file)) for file in self.files]
        with _reading(file) as root:
            node = root.get(self.dataset)
            if node is not None and hasattr(node, "shape"):
                return self._rows(file, node)
            steps = _step_names(root if node is None else node)
            names = [self._array_name(root, name) for name in steps]
            if not names or not all(name in root for name in names):
                raise ValueError(self._missing(file, root))
            return [(file, name, None) for name in names]

    def _single(self, file: Path) -> tuple[str, int | None]:
        """The array of a file that holds one step."""
        with _reading(file) as root:
            node = root.get(self.dataset)
            if node is None or not hasattr(node, "shape"):
                raise ValueError(self._missing(file, root))
            if node.ndim == 5 and node.shape[0] != 1:
                raise ValueError(
                    f"{file}: {self.dataset!r} holds {node.shape[0]} steps; files of a "
                    "series hold one step each"
                )
            return self.dataset, 0 if node.ndim == 5 else None

    def _rows(self, file: Path, node: Any) -> list[tuple[Path, str, int | None]]:
        if node.ndim in (3, 5):
            return [(file, self.dataset, row) for row in range(node.shape[0])]
        if node.ndim in (2, 4):
            return [(file, self.dataset, None)]
        raise ValueError(
            f"{file}: {self.dataset!r} must be (T, Nx, Ny, Nz, C) or (T, N, C), or one "
            f"step of them, it is {node.shape}"
        )

    def _array_name(self, root: Any, name: str) -> str:
        """The array of a step, which may itself be a group that holds it."""
        return name if hasattr(root[name], "shape") else f"{name}/{self.dataset}"

    def _missing(self, file: Path, root: Any) -> str:
        there = ", ".join(root) or "nothing"
        return (
            f"{file}: no dataset or group of steps {self.dataset!r}; the file holds "
            f"{there}: give one as dataset="
        )

    def _find_times(self) -> np.ndarray:
        """Times stored beside the data, else the index of the step."""
        found: list[float] = []
        for file in self.files:
            with _reading(file) as root:
                found += _stored_times(root)
        return (
            np.array(found) if len(found) == len(self) else np.arange(len(self)) * 1.0
        )


def _stored_times(root: Any) -> list[float]:
    for name in _TIME_NAMES:
        for place in (root, root.attrs):
            if name in place:
                value = place[name]
                values = value[()] if hasattr(value, "shape") else value
                return [float(v) for v in np.atleast_1d(values)]
    return []


def _step_names(group: Any) -> list[str]:
    """Full names of the members that are called like steps, in order of number."""
    matches = [(match, name) for name in group if (match := _STEP.fullmatch(name))]
    matches.sort(key=lambda pair: int(pair[0][1]))
    return [f"{group.name.rstrip('/')}/{name}" for _, name in matches]


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[Any]:
    """The open file; what HDF5 cannot read is a ValueError that names it."""
    try:
        import h5py
    except ImportError as error:
        raise missing_extra("reading HDF5 files needs h5py", "trace") from error
    try:
        with h5py.File(path, "r") as root:
            yield root
    except (OSError, KeyError) as error:
        raise ValueError(f"{path}: HDF5 cannot read the file: {error}") from error
