"""Results of flow solvers that VTK reads: one case stands for a whole series in time.

OpenFOAM, also decomposed, EnSight, Nek5000, PLOT3D, Exodus II and CGNS.
"""

import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Collection, Generator
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxtrace.io.geometry import Snapshot
from jaxtrace.io.vtk_checks import check_dump, find_dumps
from jaxtrace.io.vtk_read import (
    chatter_logged,
    reporting,
    select_arrays,
    snapshot_of,
    time_steps,
    vtk_class,
)

FOAM_CONTROL = "controlDict"  # the file that every OpenFOAM case has, in `system`


def _nek5000(path: Path) -> Any:
    reader = vtk_class("vtkIOParallel", "vtkNek5000Reader")()
    reader.SetFileName(str(path))
    return reader


def _ensight(path: Path) -> Any:
    reader = vtk_class("vtkIOEnSight", "vtkGenericEnSightReader")()
    reader.SetFilePath(str(path.parent))
    reader.SetCaseFileName(path.name)
    return reader


def _openfoam(path: Path) -> Any:
    reader = vtk_class("vtkIOParallel", "vtkPOpenFOAMReader")()
    reader.SetFileName(str(path))
    folder = path.parent.parent if path.name == FOAM_CONTROL else path.parent
    whole, parts = (_instants(f) for f in (folder, folder / "processor0"))
    reader.SetCaseType(0 if parts > whole else 1)  # decomposed or reconstructed
    # The averages of this package are used, as for every other format.
    reader.CreateCellToPointOff()
    return reader


def _instants(folder: Path) -> int:
    """Return how many folders named by a time there are."""
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return sum(name.replace(".", "", 1).replace("e-", "").isdigit() for name in names)


def _exodus(path: Path) -> Any:
    reader = vtk_class("vtkIOExodus", "vtkExodusIIReader")()
    reader.SetFileName(str(path))
    reader.UpdateInformation()
    for place in (reader.NODAL, reader.ELEM_BLOCK):
        reader.SetAllArrayStatus(place, 1)
    return reader


def _cgns(path: Path) -> Any:
    reader = vtk_class("vtkIOCGNSReader", "vtkCGNSReader")()
    reader.SetFileName(str(path))
    reader.UpdateInformation()
    reader.EnableAllBases()
    return reader


_READERS: dict[str, Callable[[Path], Any]] = {
    ".nek5000": _nek5000,
    ".case": _ensight,
    ".encas": _ensight,
    ".foam": _openfoam,
    ".exo": _exodus,
    ".ex2": _exodus,
    ".e": _exodus,
    ".cgns": _cgns,
}
#: Extensions of files that stand for a whole series.
CASE_EXTENSIONS = tuple(_READERS)


def kind_of(path: str | Path) -> str:
    """Return the extension that says how to read a file."""
    path = Path(path)
    return ".foam" if path.name == FOAM_CONTROL else path.suffix.lower()


def foam_control(folder: Path) -> Path | None:
    """Return the file that stands for an OpenFOAM case; None for any other folder."""
    control = folder / "system" / FOAM_CONTROL
    return control if control.is_file() else None


class CaseSteps:
    """The instants of a solver's case, read one at a time."""

    time_source: str

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise FileNotFoundError(f"{self.path}: no such file")
        kind = kind_of(self.path)
        # VTK checks what it reads, except dumps of Nek5000: it ends the process there.
        self._dumps = find_dumps(self.path) if kind == ".nek5000" else ()
        with chatter_logged():
            self._reader = _READERS[kind](self.path)
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
        if self._dumps:
            check_dump(self._dumps[index])
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
        snapshot = snapshot_of(copy, name=self.labels[index], time=time, assembled=True)
        return dataclasses.replace(snapshot, available=available or snapshot.available)

    @contextlib.contextmanager
    def _running(self) -> Generator[None, None, None]:
        with chatter_logged(), reporting(self.path, self._reader):
            yield


PLOT3D_GRIDS = (".xyz", ".x", ".grd")
PLOT3D_SOLUTION = ".q"
PLOT3D_EXTENSIONS = (*PLOT3D_GRIDS, PLOT3D_SOLUTION)
VELOCITY_FUNCTION = 200  # VTK's number of momentum over density
CONDITIONS = 4  # of a solution's header: Mach number, angle, Reynolds number and time
MOST_BLOCKS = 4096


def read_plot3d(grid: Path, solution: Path) -> Snapshot:
    """Return grid and velocity of one PLOT3D solution, in any of its dialects."""
    for path in (grid, solution):
        if not path.is_file():
            raise FileNotFoundError(f"{path}: no such file")
    reader = vtk_class("vtkIOParallel", "vtkMultiBlockPLOT3DReader")()
    reader.SetFileName(str(grid))
    reader.SetQFileName(str(solution))
    reader.AutoDetectFormatOn()
    reader.AddFunction(VELOCITY_FUNCTION)
    with chatter_logged(), reporting(solution, reader):
        reader.Update()
        data = reader.GetOutputDataObject(0)
    return snapshot_of(data, name=str(solution))


def plot3d_time(path: Path) -> float | None:
    """Return the time in the header of a solution; None if it is text or damaged.

    VTK gives it only with the whole solution. Headers have many dialects: the one is
    right whose sizes of blocks add up to the length of the file.
    """
    length = path.stat().st_size
    with open(path, "rb") as file:
        head = file.read(2**16)
    dialects = itertools.product("<>", (0, 4), (True, False), (3, 2), (4, 8))
    for order, marks, many, axes, width in dialects:
        integers = lambda count, at, order=order: np.frombuffer(
            head[at : at + 4 * count].ljust(4 * count, b"\0"), f"{order}i4"
        ).astype(np.int64)
        at, blocks = marks, 1
        if many:
            blocks = int(integers(1, at)[0])
            at += 4 + 2 * marks
        if not 0 < blocks <= MOST_BLOCKS:
            continue
        shapes = integers(blocks * axes, at).reshape(blocks, axes)
        at += shapes.size * 4 + marks
        # Two records per block: the conditions, then density, momentum and energy.
        values = CONDITIONS * blocks + (axes + 2) * int(shapes.prod(axis=1).sum())
        if shapes.min() > 0 and at + values * width + 4 * marks * blocks == length:
            kind = np.dtype(f"{order}f{width}")
            return float(np.frombuffer(head, kind, CONDITIONS, at + marks)[-1])
    return None
