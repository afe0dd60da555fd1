"""Named compressed blobs on disk: nested data in a gzipped container, never pickle."""

import gzip
import os
import zlib
from pathlib import Path
from typing import Any

from jaxrig.atomic import atomic_write, remove_leftovers
from jaxrig.container import (
    ContainerError,
    as_value,
    read_arrays,
    read_header,
    write_container,
)
from jaxrig.plain import decode, encode

SCHEMA = "jaxrig.blob"
MAX_NAME = 150  # bytes, and letters of a suffix: file systems allow 255 bytes
MAX_SUFFIX = 25
MAX_RATIO = 1032  # deflate codes at most 258 bytes in two bits
NAMES_SHOWN = 10


class BlobStore:
    """A folder of named blobs: nested data and arrays, compressed, written atomically.

    Data comes back equal, with the same container and scalar types; JAX arrays come
    back as NumPy arrays, typed PRNG keys as keys. `max_bytes` bounds one blob before
    compression: a larger one is neither saved nor loaded. A file may in addition
    declare no more than 1032 times its own size, deflate's best ratio, so that a small
    file cannot claim much memory.

        store = BlobStore("cache")
        store.save({"grids": [np.zeros((30, 30), np.int8)], "id": "a"}, "episode_001")
        store.load("episode_001")["id"]
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        compression_level: int = 6,
        suffix: str = ".blob.gz",
        max_bytes: int = 4 * 2**30,
    ):
        if not 0 <= compression_level <= 9:
            raise ValueError(
                f"compression_level={compression_level}, it goes from 0 to 9"
            )
        if suffix[:1] != "." or not _is_safe(suffix[1:]) or len(suffix) > MAX_SUFFIX:
            raise ValueError(
                f"suffix={suffix!r}: it is a dot and a plain name, at most {MAX_SUFFIX}"
            )
        self.folder = Path(folder)
        self.compression_level = compression_level
        self.suffix = suffix
        self.max_bytes = max_bytes
        self.folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(self.folder)

    def save(self, data: Any, name: str) -> Path:
        """Store data under a name, in place of what was there; return the file."""
        path = self._path(name)
        node, arrays = encode(data)
        meta = {"schema": SCHEMA, "data": node}
        with (
            atomic_write(path) as file,
            # No file name and no time inside: equal data gives equal bytes.
            gzip.GzipFile("", "wb", self.compression_level, file, mtime=0) as packed,
        ):
            write_container(packed, meta, arrays, limit=self.max_bytes)
        return path

    def load(self, name: str) -> Any:
        """The data stored under a name; ContainerError if the file is not sound."""
        path = self._path(name)
        if not path.exists():
            raise FileNotFoundError(
                f"no blob {name!r} in {self.folder}, which holds {self._summary()}"
            )
        with open(path, "rb") as file, gzip.GzipFile("", "rb", fileobj=file) as packed:
            bound = MAX_RATIO * os.fstat(file.fileno()).st_size
            try:
                return _read_data(packed, str(path), min(bound, self.max_bytes))
            except (gzip.BadGzipFile, EOFError, zlib.error) as error:
                raise ContainerError(f"{path}: not sound gzip: {error}") from error

    def exists(self, name: str) -> bool:
        """Whether there is a blob of this name."""
        return self._path(name).is_file()

    def delete(self, name: str) -> bool:
        """Remove a blob; say whether there was one."""
        try:
            self._path(name).unlink()
        except FileNotFoundError:
            return False
        return True

    def size_bytes(self, name: str) -> int:
        """The compressed size of a blob, 0 if there is none."""
        try:
            return self._path(name).stat().st_size
        except FileNotFoundError:
            return 0

    def names(self) -> list[str]:
        """The names of all blobs, sorted."""
        files = (path.name for path in self.folder.iterdir())
        names = (file.removesuffix(self.suffix) for file in files if self._owns(file))
        return sorted(names)

    def _owns(self, file: str) -> bool:
        return file.endswith(self.suffix) and _is_safe(file.removesuffix(self.suffix))

    def _path(self, name: str) -> Path:
        if not _is_safe(name):
            raise ValueError(
                f"blob name {name[:MAX_NAME]!r}: a name is 1 to {MAX_NAME} bytes of "
                f"printable text without '/', '\\' or ':' and does not begin with a dot"
            )
        return self.folder / (name + self.suffix)

    def _summary(self) -> str:
        names = self.names()
        more = len(names) - NAMES_SHOWN
        listed = ", ".join(map(repr, names[:NAMES_SHOWN])) or "no blobs"
        return f"{listed} and {more} more" if more > 0 else listed


def _is_safe(name: str) -> bool:
    # isprintable refuses NUL, line breaks and lone surrogates, but not "".
    if not name or not name.isprintable() or name.startswith("."):
        return False
    return len(name.encode()) <= MAX_NAME and not set(name) & set("/\\:")


def _read_data(packed: gzip.GzipFile, where: str, bound: int) -> Any:
    header = read_header(packed, where, bound, exact=False)
    if header.meta.get("schema") != SCHEMA or "data" not in header.meta:
        raise ContainerError(f"{where}: a container, but not a blob of a BlobStore")
    arrays: dict[str, Any] = {}
    for entry, data in read_arrays(packed, header, where):
        arrays[entry.name] = as_value(entry, data, where)
    try:
        return decode(header.meta["data"], arrays)
    except ValueError as error:
        raise ContainerError(f"{where}: {error}") from error
