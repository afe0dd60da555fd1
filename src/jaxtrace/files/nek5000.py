"""Checks of a Nek5000 case that VTK's reader skips: it ends the process instead."""

import re
from dataclasses import dataclass
from pathlib import Path

_TAGS = {"filetemplate", "firsttimestep", "numtimesteps", "version", "endian", "type"}
_HEADER_BYTES = 132
_MARK_BYTES = 4  # a number in the byte order of the file
_SCALARS = re.compile(r"([A-Z])(\d\d)?")


@dataclass(frozen=True)
class NekCase:
    """What a `.nek5000` file says: where the dumps are."""

    path: Path
    dumps: tuple[Path, ...]

    def check(self, index: int) -> None:
        """ValueError that names the dump if its header is wrong or it is cut short."""
        check_dump(self.dumps[index])


def read_case(path: str | Path) -> NekCase:
    """Parse the case; ValueError for a wrong line, FileNotFoundError for a dump."""
    path = Path(path)
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
    dumps = tuple(_dump(path, template, index) for index in range(first, first + count))
    return NekCase(path, dumps)


def _dump(path: Path, template: str, index: int) -> Path:
    """The dump of one instant; of two numbers in the template one is the folder."""
    numbers = (0, index) if template.count("%") == 2 else (index,)
    try:
        dump = path.parent / (template % numbers)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{path}: filetemplate {template!r} is not like name%01d.f%05d: {error}"
        ) from error
    if not dump.is_file():
        raise FileNotFoundError(f"{path}: names {dump.name!r}, which is not there")
    return dump


def check_dump(path: Path) -> None:
    """ValueError unless the dump has the size its header states."""
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
            f"{path}: {size} bytes where the header asks for {needed}; the dump is cut "
            "short"
        )
