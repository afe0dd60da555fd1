"""Checks that VTK's readers skip: cut files, swapped bytes, incomplete text, Nek5000.

Without them VTK leaves values unset, or ends the process.
"""

import base64
import mmap
import os
import re
from pathlib import Path
from typing import BinaryIO, Literal

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
    """Return the first value of each array that is named like a time."""
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
    """Raise ValueError if the points or an array of a text file end early.

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
                    "the file is truncated"
                )


def _mapped(file: BinaryIO) -> mmap.mmap:
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _arrays(text: mmap.mmap) -> list[tuple[str, int, int, int]]:
    """Return name, heading, first value and number of values of every array."""
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


_LAST_TAG = b"</VTKFile>"
_TAIL_BYTES = 1024
_HEAD_BYTES = 2**16
_WORDS = {b"UInt32": 4, b"UInt64": 8}


def check_whole(path: Path) -> None:
    """Raise ValueError if an XML file, or one it refers to, is cut or misdeclared."""
    for part in (path, *_pieces(path)):
        with open(part, "rb") as file:
            head = file.read(_HEAD_BYTES)
            file.seek(-min(_TAIL_BYTES, part.stat().st_size), os.SEEK_END)
            tail = file.read()
        if b"<VTKFile" not in head:
            continue  # something else, which VTK refuses
        if _LAST_TAG not in tail:
            raise ValueError(
                f"{part}: the file is truncated, {_LAST_TAG.decode()} is not at its end"
            )
        _check_order(part, head)


def _pieces(path: Path) -> list[Path]:
    """Return the files that a parallel file or one of blocks refers to, if they are
    there.
    """
    if not path.suffix.lower().startswith((".pv", ".vtm")):
        return []
    names = re.findall(rb'(?:Source|file)="([^"]+)"', path.read_bytes())
    found = (path.parent / os.fsdecode(name) for name in names)
    return [piece for piece in found if piece.is_file()]


def _check_order(path: Path, head: bytes) -> None:
    """Check the byte order by the size that stands before an array."""
    opening = re.search(rb"<VTKFile[^>]*>", head)
    if opening is None or b"compressor=" in opening[0]:
        return  # packed bytes that are turned cannot be unpacked
    order: Literal["big", "little"] = (
        "big" if b'"BigEndian"' in opening[0] else "little"
    )
    kind = re.search(rb'header_type="(\w+)"', opening[0])
    word = _WORDS.get(kind[1], 4) if kind else 4
    first = _first_word(head, word)
    room = path.stat().st_size
    if len(first) < word or int.from_bytes(first, order) <= room:
        return
    other = "little" if order == "big" else "big"
    if int.from_bytes(first, other) <= room:
        raise ValueError(
            f"{path}: the file declares its bytes to be {order}-endian, and they are "
            f"{other}-endian: correct byte_order in its first line"
        )


def _first_word(head: bytes, word: int) -> bytes:
    """Return the first bytes of the first array, appended or in its place."""
    raw = re.search(rb'<AppendedData\s+encoding="raw"\s*>\s*_', head)
    if raw is not None:
        return head[raw.end() : raw.end() + word]
    text = re.search(rb'<AppendedData\s+encoding="base64"\s*>\s*_', head) or re.search(
        rb'<DataArray[^>]*format="binary"[^>]*>\s*', head
    )
    if text is None:
        return b""
    return base64.b64decode(head[text.end() : text.end() + 12])[:word]


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
