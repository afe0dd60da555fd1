"""Solver cases whose many instants VTK reads through one file."""

import contextlib
import dataclasses
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxtrace.files.nek5000 import read_case
from jaxtrace.files.snapshot import Snapshot
from jaxtrace.files.vtk_messages import chatter_logged
from jaxtrace.files.vtk_pipeline import (
    reporting,
    select_arrays,
    time_steps,
    vtk_class,
)
from jaxtrace.files.vtk_snapshot import snapshot_of

Check = Callable[[int], None]


def _trust(_index: int) -> None:
    """VTK checks the file itself."""


def _nek5000(path: Path) -> tuple[Any, Check]:
    check = read_case(path).check
    reader = vtk_class("vtkIOParallel", "vtkNek5000Reader")()
    reader.SetFileName(str(path))
    return reader, check


def _ensight(path: Path) -> tuple[Any, Check]:
    reader = vtk_class("vtkIOEnSight", "vtkGenericEnSightReader")()
    reader.SetFilePath(str(path.parent))
    reader.SetCaseFileName(path.name)
    return reader, _trust


def _openfoam(path: Path) -> tuple[Any, Check]:
    reader = vtk_class("vtkIOGeometry", "vtkOpenFOAMReader")()
    reader.SetFileName(str(path))
    # The averages of this package are used, as for every other format.
    reader.CreateCellToPointOff()
    return reader, _trust


_READERS: dict[str, Callable[[Path], tuple[Any, Check]]] = {
    ".nek5000": _nek5000,
    ".case": _ensight,
    ".encas": _ensight,
    ".foam": _openfoam,
}
#: Extensions of files that stand for a whole series.
CASE_EXTENSIONS = tuple(_READERS)


class CaseSteps:
    """The instants of a Nek5000, EnSight or OpenFOAM case, read one at a time."""

    time_source: str

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise FileNotFoundError(f"{self.path}: no such file")
        self._reader, self._check = _READERS[self.path.suffix.lower()](self.path)
        with self._running():
            self._reader.UpdateInformation()
        steps = time_steps(self._reader)
        self.times: Float[np.ndarray, " steps"] = np.asarray(steps or (0.0,), float)
        if np.any(np.diff(self.times) <= 0):
            raise ValueError(f"{self.path}: times must increase, they are {steps}")
        self.time_source = "the solver's case" if steps else "the index"
        self.labels = tuple(f"{self.path} at t = {time:g}" for time in self.times)

    def read(self, index: int, names: Collection[str] | None = None) -> Snapshot:
        """Read one instant; with `names`, only those arrays where possible."""
        self._check(index)
        available = select_arrays(self._reader, names)
        time = float(self.times[index])
        with self._running():
            self._reader.UpdateTimeStep(time)
            data = self._reader.GetOutputDataObject(0)
        if data is None:
            raise ValueError(f"{self.labels[index]}: VTK found nothing to read")
        # The reader goes on to the next instant in the same object.
        copy = data.NewInstance()
        copy.ShallowCopy(data)
        snapshot = snapshot_of(copy, self.labels[index], time, assembled=True)
        return dataclasses.replace(snapshot, available=available or snapshot.available)

    @contextlib.contextmanager
    def _running(self):
        with chatter_logged(), reporting(self.path, self._reader):
            yield
