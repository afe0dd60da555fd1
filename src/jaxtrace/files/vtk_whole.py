"""Checks of VTK XML files that VTK's readers skip: cut files, and turned bytes."""

import base64
import os
import re
from pathlib import Path
from typing import Literal

_LAST_TAG = b"</VTKFile>"
_TAIL_BYTES = 1024
_HEAD_BYTES = 2**16
_WORDS = {b"UInt32": 4, b"UInt64": 8}


def check_whole(path: Path) -> None:
    """ValueError if an XML file, or one that it refers to, is cut or misdeclared."""
    for part in (path, *_pieces(path)):
        with open(part, "rb") as file:
            head = file.read(_HEAD_BYTES)
            file.seek(-min(_TAIL_BYTES, part.stat().st_size), os.SEEK_END)
            tail = file.read()
        if b"<VTKFile" not in head:
            continue  # something else, which VTK refuses
        if _LAST_TAG not in tail:
            raise ValueError(
                f"{part}: the file is cut short, {_LAST_TAG.decode()} is not at its end"
            )
        _check_order(part, head)


def _pieces(path: Path) -> list[Path]:
    """The files that a parallel file or one of blocks refers to, if they are there."""
    if not path.suffix.lower().startswith((".pv", ".vtm")):
        return []
    names = re.findall(rb'(?:Source|file)="([^"]+)"', path.read_bytes())
    found = (path.parent / os.fsdecode(name) for name in names)
    return [piece for piece in found if piece.is_file()]


def _check_order(path: Path, head: bytes) -> None:
    """The size that stands before an array tells which way its bytes run."""
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
    """The first bytes of the first array, appended to the file or in its place."""
    raw = re.search(rb'<AppendedData\s+encoding="raw"\s*>\s*_', head)
    if raw is not None:
        return head[raw.end() : raw.end() + word]
    text = re.search(rb'<AppendedData\s+encoding="base64"\s*>\s*_', head) or re.search(
        rb'<DataArray[^>]*format="binary"[^>]*>\s*', head
    )
    if text is None:
        return b""
    return base64.b64decode(head[text.end() : text.end() + 12])[:word]
