"""Pictures and their data kept for later: files, a cache, and narrower arrays."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from jaxrig.caching import ByteCache
from jaxrig.dtypes import smallest_dtype
from jaxrig.memory import MIB
from jaxrig.storage import BlobStore


class CompressedStorage(BlobStore):
    """A folder of named compressed data: nested containers, numbers, text, arrays.

    The files end in `.pkl.gz` as documented, but hold no pickle: loading one runs no
    code, and a pickle from elsewhere is refused. JAX arrays come back as NumPy.

        storage = CompressedStorage("visualization_cache")
        storage.save({"grids": [np.zeros((3, 3), np.int8)]}, "episode_001")
    """

    def __init__(self, base_path: str | os.PathLike[str], compression_level: int = 6):
        super().__init__(base_path, compression_level, suffix=".pkl.gz")

    @property
    def base_path(self) -> Path:
        """The folder of the files."""
        return self.folder

    def get_size_mb(self, name: str) -> float:
        """The size of a file in MiB, 0.0 if there is none."""
        return self.size_bytes(name) / MIB

    def list_files(self) -> list[str]:
        """The names of everything saved, without the suffix."""
        return self.names()


class VisualizationCache:
    """The values used last, bounded in MiB and number, the others in files if wanted.

    A value larger than the whole cache goes to the files, or is not kept.
    """

    def __init__(
        self,
        max_memory_mb: float = 100.0,
        max_items: int = 1000,
        storage_path: str | os.PathLike[str] | None = None,
        compression_level: int = 6,
    ):
        self.storage = None
        if storage_path is not None:
            self.storage = CompressedStorage(storage_path, compression_level)
        self._max_memory_mb = max_memory_mb
        self._cache = _Cache(int(max_memory_mb * MIB), max_items, self.storage)

    def get(self, key: str, loader_func: Callable[[], Any] | None = None) -> Any:
        """From memory, the files, or the loader; else KeyError."""
        return self._cache.get(key, loader_func)

    def put(self, key: str, value: Any) -> None:
        """Set the value of a key."""
        self._cache.put(key, value)

    def clear(self) -> None:
        """Forget every value, in memory and in the files."""
        self._cache.clear()

    def release_memory(self) -> None:
        """Let go of all values in memory; with a storage path they move to files."""
        self._cache.release()

    def get_stats(self) -> dict[str, float]:
        """What is held, and how much of the allowed memory it takes."""
        found = self._cache.statistics()
        share = found.bytes / found.max_bytes if found.max_bytes else 0.0
        return {
            "items_in_memory": found.items,
            "memory_usage_mb": found.bytes / MIB,
            "max_memory_mb": self._max_memory_mb,
            "memory_utilization": share,
            "storage_items": len(self.storage.names()) if self.storage else 0,
        }


class _Cache(ByteCache):
    def release(self) -> None:
        with self._lock:
            while self._items:
                self._evict()


def optimize_array_memory(arr: np.ndarray) -> np.ndarray:
    """The array in the smallest dtype of its kind that keeps every value.

    Integers are kept exactly and signed ones stay signed; float64 becomes float32
    where every value stays within a relative 1e-6. Anything else is returned as it is.

    >>> optimize_array_memory(np.array([1000, 2000, 3000])).dtype
    dtype('int16')
    """
    dtype = smallest_dtype(arr)
    if arr.dtype.kind == "i":
        # Unsigned results would wrap around where differences are taken later.
        dtype = np.promote_types(dtype, np.int8)
    elif arr.dtype.kind == "u":
        dtype = np.dtype(f"uint{8 * dtype.itemsize}")
    with np.errstate(all="ignore"):
        return arr.astype(dtype, copy=False)
