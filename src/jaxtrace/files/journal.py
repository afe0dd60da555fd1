"""Changes to a file that reach it all together or not at all, whatever is killed.

Bytes past the old end go to the file at once, where nothing refers to them yet. Changes
below it wait in memory, then go to a journal beside the file, then to the file; a
journal that is found is finished by the next one to open the file.
"""

import io
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from jaxrig.atomic import atomic_write

PAGE = 4096  # bytes
_HEAD = struct.Struct("<8sQQI")  # magic, old size, size after, crc32 of the rest
_PAGE_HEAD = struct.Struct("<QI")  # offset, length
_MAGIC = b"JTJOURN1"


def journal_of(path: Path) -> Path:
    """Where the journal of a file lies while there is one."""
    return path.with_name(path.name + ".journal")


@contextmanager
def all_or_nothing(path: Path) -> "Iterator[PendingFile]":
    """A file object whose writes are kept if the block succeeds, else undone."""
    finish_journal(path)
    with open(path, "r+b", buffering=0) as raw, ExitStack() as undo:
        pending = PendingFile(raw)
        undo.callback(raw.truncate, pending.base)
        yield pending
        undo.pop_all()
        os.fsync(raw.fileno())
        _write_journal(path, pending)
    finish_journal(path)


def finish_journal(path: Path) -> None:
    """Carry out the changes a journal holds and remove it; nothing if there is none."""
    journal = journal_of(path)
    if not journal.exists():
        return
    data = journal.read_bytes()
    magic, base, size, checksum = _HEAD.unpack_from(data)
    if magic != _MAGIC or zlib.crc32(data[_HEAD.size :]) != checksum:
        raise ValueError(f"{journal} is damaged: restore {path.name} from a copy")
    with open(path, "r+b", buffering=0) as raw:
        if raw.seek(0, os.SEEK_END) < base:
            raise ValueError(
                f"{journal} belongs to another file than {path.name}: delete it"
            )
        position = _HEAD.size
        while position < len(data):
            offset, length = _PAGE_HEAD.unpack_from(data, position)
            position += _PAGE_HEAD.size
            _write_at(raw, offset, memoryview(data)[position : position + length])
            position += length
        raw.truncate(size)
        os.fsync(raw.fileno())
    journal.unlink()


def _write_journal(path: Path, pending: "PendingFile") -> None:
    body = b"".join(
        _PAGE_HEAD.pack(number * PAGE, len(page)) + page
        for number, page in sorted(pending.pages.items())
    )
    head = _HEAD.pack(_MAGIC, pending.base, pending.size, zlib.crc32(body))
    with atomic_write(journal_of(path)) as file:
        file.write(head + body)


class PendingFile:
    """A file object that keeps changes to the first `base` bytes in `pages`."""

    def __init__(self, raw: io.FileIO) -> None:
        self._raw = raw
        self.base = self.size = raw.seek(0, os.SEEK_END)
        self.pages: dict[int, bytearray] = {}
        self._position = 0

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to `offset` from the start, the position or the end."""
        self._position = offset + (0, self._position, self.size)[whence]
        return self._position

    def tell(self) -> int:
        """The position."""
        return self._position

    def flush(self) -> None:
        """Nothing: there is no buffer."""

    def truncate(self, size: int | None = None) -> int:
        """Set the size; what cuts the first `base` bytes waits like other changes."""
        self.size = self._position if size is None else size
        self._raw.truncate(max(self.size, self.base))
        return self.size

    def read(self, count: int) -> bytes:
        """At most `count` bytes from the position on."""
        buffer = bytearray(count)
        return bytes(buffer[: self.readinto(buffer)])

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer from the position on; return how many bytes there were."""
        view = memoryview(buffer).cast("B")
        begin = self._position
        end = max(begin, min(begin + len(view), self.size))
        _read_at(self._raw, begin, view[: end - begin])
        for number in range(begin // PAGE, -(-end // PAGE)):
            page, start = self.pages.get(number), number * PAGE
            if page is not None:
                first, last = max(begin, start), min(end, start + len(page))
                if first < last:
                    view[first - begin : last - begin] = page[
                        first - start : last - start
                    ]
        self._position = end
        return end - begin

    def write(self, data: Any) -> int:
        """Write at the position: past `base` to the file, below it to a page."""
        view = memoryview(data).cast("B")
        left = view
        while len(left):
            if self._position >= self.base:
                count = len(left)
                _write_at(self._raw, self._position, left)
            else:
                number, within = divmod(self._position, PAGE)
                page = self._page(number)
                count = min(len(page) - within, len(left))
                page[within : within + count] = left[:count]
            left = left[count:]
            self._position += count
        self.size = max(self.size, self._position)
        return len(view)

    def _page(self, number: int) -> bytearray:
        if number not in self.pages:
            page = bytearray(min(PAGE, self.base - number * PAGE))
            _read_at(self._raw, number * PAGE, memoryview(page))
            self.pages[number] = page
        return self.pages[number]


def _read_at(raw: io.FileIO, offset: int, view: memoryview) -> None:
    raw.seek(offset)
    while len(view):
        count = raw.readinto(view)
        if not count:  # a hole at the end, which reads as zeros
            view[:] = bytes(len(view))
            return
        view = view[count:]


def _write_at(raw: io.FileIO, offset: int, view: memoryview) -> None:
    raw.seek(offset)
    while len(view):
        view = view[raw.write(view) :]
