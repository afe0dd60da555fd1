"""Results of flow solvers that VTK reads: one case stands for a whole series in time.

OpenFOAM, also decomposed, EnSight, Nek5000, PLOT3D, Exodus II and CGNS.
"""

import contextlib
import dataclasses
import itertools
import re
from collections.abc import Callable, Collection, Generator
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxtrace.io.geometry import Snapshot
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
    if not whole and (joint := sorted(folder.glob("processors*"))):
        raise ValueError(
            f"{joint[0]}: VTK does not read collated files of several processes; "
            "reconstructPar puts the case together"
        )
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
        with self._running():
            self._reader.UpdateTimeStep(float(self.times[index]))
            data = self._reader.GetOutputDataObject(0)
        if data is None:
            raise ValueError(f"{self.labels[index]}: VTK found nothing to read")
        # The reader goes on to the next instant in the same object.
        copy = data.NewInstance()
        copy.ShallowCopy(data)
        snapshot = snapshot_of(copy, name=self.labels[index], assembled=True)
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
_NUMERALS = frozenset(b"0123456789+-.*eEdD,\t\r\n ")


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
    # VTK takes the first bytes of any text for a size, and asks for that much memory.
    if head.isascii() and not set(head) <= _NUMERALS:
        raise ValueError(f"{path}: the file is text, not a PLOT3D solution")
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


_TAGS = {"filetemplate", "firsttimestep", "numtimesteps", "version", "endian", "type"}
_HEADER_BYTES = 132
_MARK_BYTES = 4  # a number in the byte order of the file
_SCALARS = re.compile(r"([A-Z])(\d\d)?")


def find_dumps(path: Path) -> tuple[Path, ...]:
    """Return the dumps a `.nek5000` file names; an error says what is wrong in it."""
    entries: dict[str, str] = {}
    for line in path.read_text(errors="replace").splitlines():
        tag, colon, value = line.partition(":")
        if line.strip() and (not colon or tag.strip() not in _TAGS):
            raise ValueError(
                f"{path}: unknown line {line!r} in a Nek5000 case, lines start with "
                f"one of {', '.join(sorted(_TAGS))}"
            )
        entries[tag.strip()] = value.strip()
    try:
        template = entries["filetemplate"]
        first, count = int(entries["firsttimestep"]), int(entries["numtimesteps"])
    except (KeyError, ValueError) as error:
        raise ValueError(
            f"{path}: a Nek5000 case needs filetemplate, firsttimestep and "
            f"numtimesteps: {error}"
        ) from error
    if count < 1:
        raise ValueError(f"{path}: numtimesteps must be at least 1, got {count}")
    return tuple(_dump(path, template, index) for index in range(first, first + count))


def _dump(path: Path, template: str, index: int) -> Path:
    """Return the dump of one instant; two numbers in the template name a folder too."""
    numbers = (0, index) if template.count("%") == 2 else (index,)
    try:
        dump = path.parent / (template % numbers)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{path}: filetemplate {template!r} is not like name%01d.f%05d: {error}"
        ) from error
    if not dump.is_file():
        raise FileNotFoundError(f"{path} refers to {dump.name!r}, which does not exist")
    return dump


def check_dump(path: Path) -> None:
    """Raise ValueError unless the dump has the size its header states."""
    with open(path, "rb") as file:
        words = file.read(_HEADER_BYTES).decode(errors="replace").split()
    try:
        word, nx, ny, nz, elements = (int(text) for text in words[1:6])
        fields = words[11]
    except (IndexError, ValueError) as error:
        raise ValueError(
            f"{path}: not a Nek5000 dump, its header is {' '.join(words)[:60]!r}"
        ) from error
    dimension = 2 if nz == 1 else 3
    components = sum(
        dimension if name in "XU" else int(count or 1)
        for name, count in _SCALARS.findall(fields)
    )
    values = nx * ny * nz * elements * components
    needed = _HEADER_BYTES + _MARK_BYTES + 4 * elements + word * values
    size = path.stat().st_size
    if size < needed:
        raise ValueError(
            f"{path}: {size} bytes where the header asks for {needed}; the dump is "
            "truncated"
        )
