"""What VTK's reader of legacy `.vtk` files leaves unchecked, found in the text."""

import mmap
import re
from pathlib import Path
from typing import BinaryIO

import numpy as np

_DATA = re.compile(rb"(?m)^(?:POINT|CELL)_DATA\s+(\d+)")
_ATTRIBUTE = re.compile(
    rb"(?m)^(SCALARS|COLOR_SCALARS|VECTORS|NORMALS|TENSORS6|TENSORS"
    rb"|TEXTURE_COORDINATES)[ \t]+(\S+)[ \t]+(\S+)(?:[ \t]+(\S+))?[ \t]*\r?\n"
    rb"(?:LOOKUP_TABLE[ \t]+\S+[ \t]*\r?\n)?"
)
_FIELD_ARRAY = re.compile(
    rb"(?m)^(\S+)[ \t]+(\d+)[ \t]+(\d+)[ \t]+(?:bit|char|unsigned_char|short"
    rb"|unsigned_short|int|unsigned_int|long|unsigned_long|float|double|vtkIdType"
    rb"|vtktypeint64|vtktypeuint64)[ \t]*\r?\n"
)
_GEOMETRY = re.compile(
    rb"(?m)^(POINTS|[XYZ]_COORDINATES|CELL_TYPES)[ \t]+(\d+)[^\n]*\n"
)
_STOP = re.compile(
    rb"(?m)^(?:METADATA|FIELD|POINT_DATA|CELL_DATA|LOOKUP_TABLE|[A-Z]{4})"
)
_LONGEST_NUMBER = 64  # bytes, with leading blanks
_COMPONENTS = {b"VECTORS": 3, b"NORMALS": 3, b"TENSORS": 9, b"TENSORS6": 6}
_TIME = re.compile(
    rb"(?m)^(?:(TimeValue|TIME|Time)[ \t]+[1-9]\d*[ \t]+[1-9]\d*[ \t]+(\w+)[ \t]*\r?\n"
    rb"|SCALARS[ \t]+(Time)[ \t]+(\w+)[^\n]*\n(?:LOOKUP_TABLE[^\n]*\n)?)"
)
# Binary legacy files are big-endian whatever wrote them.
_BINARY = {b"double": ">f8", b"float": ">f4", b"int": ">i4", b"vtktypeint64": ">i8"}


def times_in_text(path: Path) -> dict[str, float]:
    """The first value of each array that is named like a time."""
    found: dict[str, float] = {}
    with open(path, "rb") as file, _mapped(file) as text:
        is_text = _is_text(text)
        for match in _TIME.finditer(text):
            kind, start = match[2] or match[4], match.end()
            if is_text:
                words = text[start : start + _LONGEST_NUMBER].split()
                value = float(words[0]) if words else None
            else:
                value = _binary_value(text[start : start + 8], kind)
            if value is not None:
                found.setdefault(_name(match[1] or match[3]), value)
    return found


def _binary_value(data: bytes, kind: bytes) -> float | None:
    if kind not in _BINARY or len(data) < int(_BINARY[kind][-1]):
        return None
    return float(np.frombuffer(data, _BINARY[kind], count=1)[0])


def _is_text(text: mmap.mmap) -> bool:
    return re.match(rb"[^\n]*\n[^\n]*\n[ \t]*ASCII", text) is not None


def check_text(path: Path) -> None:
    """ValueError if the points or an array of a text file end early.

    VTK leaves the missing values unset there and says nothing.
    """
    with open(path, "rb") as file, _mapped(file) as text:
        if not _is_text(text):
            return
        arrays = _arrays(text)
        ends = [head for _, head, _, _ in arrays[1:]] + [len(text)]
        for (name, _, start, expected), following in zip(arrays, ends, strict=False):
            stop = _STOP.search(text, start, following)
            found = _count_words(text[start : stop.start() if stop else following])
            if found < expected:
                raise ValueError(
                    f"{path}: array {name!r} has {found} of its {expected} values; "
                    "the file is cut short"
                )


def _mapped(file: BinaryIO) -> mmap.mmap:
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _arrays(text: mmap.mmap) -> list[tuple[str, int, int, int]]:
    """Name, heading, first value and number of values of every array, in order."""
    found = [
        (_name(array[1]), array.start(), array.end(), int(array[2]) * int(array[3]))
        for array in _FIELD_ARRAY.finditer(text)
    ]
    for part in _GEOMETRY.finditer(text):
        values = int(part[2]) * (3 if part[1] == b"POINTS" else 1)
        found.append((_name(part[1]), part.start(), part.end(), values))
    sections = [(match.start(), int(match[1])) for match in _DATA.finditer(text)]
    for array in _ATTRIBUTE.finditer(text):
        rows = [count for start, count in sections if start < array.start()]
        if rows:
            values = rows[-1] * _components(array)
            found.append((_name(array[2]), array.start(), array.end(), values))
    return sorted(found, key=lambda array: array[1])


def _name(text: bytes) -> str:
    return text.decode(errors="replace")


def _components(array: re.Match[bytes]) -> int:
    kind = array[1]
    if kind in _COMPONENTS:
        return _COMPONENTS[kind]
    count = array[4] if kind == b"SCALARS" else array[3]
    return int(count) if count and count.isdigit() else 1


def _count_words(text: bytes) -> int:
    blank = np.frombuffer(text, np.uint8) <= ord(" ")
    return int(np.count_nonzero(blank[:-1] & ~blank[1:]) + (not blank[:1].all()))
