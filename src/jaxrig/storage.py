"""Named compressed blobs on disk, a cache bounded by bytes, and a lazy loader."""

import gzip
import hashlib
import io
import os
import re
import sys
import threading
import time
import warnings
import zlib
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import jax

from jaxrig.atomic import remove_leftovers, write_file
from jaxrig.file_format import (
    Container,
    ContainerError,
    decode,
    encode,
    is_array,
    write_container,
)
from jaxrig.settings import maybe, nearest, whole, wrong

SCHEMA = "jaxrig.blob"
MAX_NAME = 150  # bytes; file systems allow 255, suffix and temporaries included
MAX_BYTES = 4 * 2**30  # of one blob, before compression


class BlobStore:
    """A folder of named blobs: nested data and arrays, compressed, written atomically.

    Data comes back equal, with the same container and scalar types; JAX arrays come
    back as NumPy arrays, typed PRNG keys as keys. A blob of more than `MAX_BYTES`
    before compression is neither saved nor loaded.

        store = BlobStore("cache")
        store.save({"grids": [np.zeros((30, 30), np.int8)], "id": "a"}, "episode_001")
        store.load("episode_001")["id"]
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        compression_level: int = 6,
        suffix: str = ".blob.gz",
    ):
        self.folder = Path(folder)
        self.compression_level = whole(0, 9)(compression_level, "compression_level")
        self.suffix = suffix
        self.folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(self.folder)

    def save(self, data: Any, name: str) -> Path:
        """Store data under a name, in place of what was there; return the file."""
        path = self._path(name)
        node, arrays = encode(data)
        plain = io.BytesIO()
        write_container(plain, {"schema": SCHEMA, "data": node}, arrays)
        if plain.tell() > MAX_BYTES:
            size = f"{plain.tell()} bytes before compression"
            raise ValueError(f"{name}: {size}, the limit is {MAX_BYTES}")
        # No file name and no time inside: equal data gives equal bytes.
        packed = gzip.compress(plain.getbuffer(), self.compression_level, mtime=0)
        return write_file(path, packed)

    def load(self, name: str) -> Any:
        """Return what is stored under a name; ContainerError for a damaged file."""
        path = self._path(name)
        if not path.exists():
            raise FileNotFoundError(
                f"no blob {name!r} in {self.folder}; {nearest(name, self.names())}"
            )
        try:
            with gzip.open(path) as file:
                plain = file.read(MAX_BYTES + 1)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise ContainerError(f"{path}: not sound gzip: {error}") from error
        if len(plain) > MAX_BYTES:
            raise ContainerError(f"{path}: more than {MAX_BYTES} bytes")
        container = Container(io.BytesIO(plain), str(path))
        if container.meta.get("schema") != SCHEMA:
            raise ContainerError(f"{path}: a container, but not a blob of a BlobStore")
        arrays = dict(container.arrays())
        try:
            return decode(container.meta.get("data"), arrays)
        except ValueError as error:
            raise ContainerError(f"{path}: {error}") from error

    def exists(self, name: str) -> bool:
        """Return whether there is a blob of this name."""
        return self._path(name).is_file()

    def delete(self, name: str) -> bool:
        """Remove a blob; say whether there was one."""
        try:
            self._path(name).unlink()
        except FileNotFoundError:
            return False
        return True

    def size_bytes(self, name: str) -> int:
        """Return the compressed size of a blob, 0 if there is none."""
        try:
            return self._path(name).stat().st_size
        except FileNotFoundError:
            return 0

    def names(self) -> list[str]:
        """Return the names of all blobs, sorted."""
        files = (path.name for path in self.folder.iterdir())
        names = (f.removesuffix(self.suffix) for f in files if f.endswith(self.suffix))
        return sorted(filter(_is_safe, names))

    def _path(self, name: str) -> Path:
        if not _is_safe(name):
            raise ValueError(
                f"blob name {name[:MAX_NAME]!r}: a name is 1 to {MAX_NAME} bytes of "
                f"printable text without '/', '\\' or ':' and does not begin with a dot"
            )
        return self.folder / (name + self.suffix)


def _is_safe(name: str) -> bool:
    # isprintable refuses NUL, line breaks and lone surrogates, but not "".
    if not name or not name.isprintable() or name.startswith("."):
        return False
    return len(name.encode()) <= MAX_NAME and not set(name) & set("/\\:")


T = TypeVar("T")

_BLOB_NAME = re.compile(r"cached-.*-[0-9a-f]{32}")


class CacheStatistics(NamedTuple):
    """What a cache holds in memory."""

    items: int
    bytes: int
    max_bytes: int


class ByteCache:
    """The most recently used values, at most `max_bytes` of them in memory.

    What does not fit goes to `store` if there is one, else it is forgotten. Values are
    handed out uncopied: treat them as read-only. All methods are safe from any thread.

        cache = ByteCache(100 * 2**20)
        cache.put("task 17", grid)
    """

    def __init__(
        self,
        max_bytes: int,
        max_items: int | None = None,
        store: BlobStore | None = None,
    ):
        self._max_bytes = whole(0)(max_bytes, "max_bytes")
        self._max_items = maybe(whole())(max_items, "max_items") or sys.maxsize
        self._store = store
        self._lock = threading.RLock()
        self._items: OrderedDict[str, Any] = OrderedDict()
        self._bytes = 0

    def get(self, key: str) -> Any:
        """Return a value from memory or the store; else KeyError."""
        with self._lock:
            if key in self._items:
                self._items.move_to_end(key)
                return self._items[key]
            name = _blob_name(key)
            if self._store is not None and self._store.exists(name):
                try:
                    value = self._store.load(name)
                except ContainerError as error:
                    warnings.warn(f"cached value dropped: {error}", stacklevel=2)
                    self._store.delete(name)
                else:
                    self._keep(key, value)
                    return value
        raise KeyError(key)

    def put(self, key: str, value: Any) -> None:
        """Set the value of a key, as the most recently used one."""
        if self._store is not None:
            encode(value)  # what could not be spilled is refused here, by its giver
        with self._lock:
            if key in self._items:
                self._bytes -= size_of(self._items.pop(key))
            # A copy left in the store would come back as the value after an eviction.
            if self._store is not None:
                self._store.delete(_blob_name(key))
            self._keep(key, value)

    def release(self) -> None:
        """Remove all values from memory; with a store they move there."""
        with self._lock:
            while self._items:
                self._evict()

    def clear(self) -> None:
        """Forget every value, in memory and in the store."""
        with self._lock:
            self._items.clear()
            self._bytes = 0
            if self._store is not None:
                for name in filter(_BLOB_NAME.fullmatch, self._store.names()):
                    self._store.delete(name)

    def statistics(self) -> CacheStatistics:
        """Return what is in memory now."""
        with self._lock:
            return CacheStatistics(len(self._items), self._bytes, self._max_bytes)

    def _keep(self, key: str, value: Any) -> None:
        room = self._max_bytes - size_of(value)
        if room < 0:  # no eviction could make room for it
            self._spill(key, value)
            return
        while self._bytes > room or len(self._items) >= self._max_items:
            self._evict()
        self._items[key] = value
        self._bytes += size_of(value)

    def _evict(self) -> None:
        key, value = next(iter(self._items.items()))
        self._spill(key, value)  # before it leaves memory: the disk may be full
        del self._items[key]
        self._bytes -= size_of(value)

    def _spill(self, key: str, value: Any) -> None:
        # A value that came from the store is equal to the copy that is still there.
        if self._store is not None and not self._store.exists(_blob_name(key)):
            self._store.save(value, _blob_name(key))


class LazyLoader(Generic[T]):
    """A value loaded on first use, and again after `max_idle_time` seconds unused.

    `cleanup_func` is called with the value when it is let go. Concurrent calls load
    once; an error in `loader_func` reaches the caller and leaves nothing loaded.

        table = LazyLoader(lambda: np.load("table.npy"), max_idle_time=60.0)
        table.get()
    """

    def __init__(
        self,
        loader_func: Callable[[], T],
        cleanup_func: Callable[[T], object] | None = None,
        max_idle_time: float = 300.0,
        clock: Callable[[], float] = time.monotonic,
    ):
        if not max_idle_time >= 0:
            raise wrong("max_idle_time", max_idle_time, "seconds from 0")
        self._loader_func = loader_func
        self._cleanup_func = cleanup_func
        self._max_idle_time = max_idle_time
        self._clock = clock
        self._lock = threading.RLock()
        self._loaded: tuple[T] | None = None  # a tuple, since None is a value too
        self._last_use = 0.0

    def get(self) -> T:
        """Return the value; load it if needed, again if it was idle too long."""
        with self._lock:
            if self._clock() - self._last_use > self._max_idle_time:
                self.force_cleanup()
            if self._loaded is None:
                self._loaded = (self._loader_func(),)
            self._last_use = self._clock()
            return self._loaded[0]

    def is_loaded(self) -> bool:
        """Return whether the value is in memory."""
        return self._loaded is not None

    def force_cleanup(self) -> None:
        """Let the value go now; without effect when nothing is loaded."""
        with self._lock:
            loaded, self._loaded = self._loaded, None
            if loaded is not None and self._cleanup_func is not None:
                self._cleanup_func(loaded[0])


def size_of(value: Any) -> int:
    """Return the bytes of the leaves of a value, without the containers around them."""
    leaves = jax.tree.leaves(value)
    return sum(int(x.nbytes) if is_array(x) else sys.getsizeof(x) for x in leaves)


def _blob_name(key: str) -> str:
    readable = re.sub(r"[^A-Za-z0-9_-]+", "_", key)[:40]
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
    return f"cached-{readable}-{digest[:32]}"
