"""Keep data of pictures for later: in files, in a bounded cache, in narrower arrays."""

import gc
import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakSet

import numpy as np

from jaxrig.dtypes import smallest_dtype
from jaxrig.memory import MIB, host_memory
from jaxrig.storage import BlobStore, ByteCache, LazyLoader

T = TypeVar("T")

# Drawing makes many short-lived objects: Python's default of 700 collects too often.
GC_THRESHOLDS = (1000, 15, 15)


class CompressedStorage(BlobStore):
    """A folder of named compressed data: nested containers, numbers, text, arrays.

    The files end in `.pkl.gz` as documented, but hold no pickle: loading one runs no
    code, and a pickle from elsewhere is refused. JAX arrays come back as NumPy.

        storage = CompressedStorage("visualization_cache")
        storage.save({"grids": [np.zeros((3, 3), np.int8)]}, "episode_001")
    """

    def __init__(self, base_path: str | os.PathLike[str], compression_level: int = 6):
        super().__init__(base_path, compression_level, suffix=".pkl.gz")


class MemoryManager:
    """Watches the memory of this process and releases what can be loaded again.

    As a context it also makes garbage collection less frequent; on exit everything is
    released and the former settings return.

        with MemoryManager(max_total_memory_mb=100.0) as manager:
            manager.register_lazy_loader(loader)
    """

    def __init__(
        self,
        max_cache_memory_mb: float = 100.0,
        max_total_memory_mb: float = 500.0,
        storage_path: str | os.PathLike[str] | None = None,
    ):
        self.max_total_memory_mb = max_total_memory_mb
        self.storage = CompressedStorage(storage_path) if storage_path else None
        self.cache = ByteCache(int(max_cache_memory_mb * MIB), 1000, self.storage)
        self._thresholds: tuple[int, int, int] | None = None
        self._loaders: WeakSet[LazyLoader[Any]] = WeakSet()
        self._lock = threading.Lock()
        self._samples, self._sum, self._peak = 0, 0.0, 0.0

    def __enter__(self) -> "MemoryManager":
        if self._thresholds is None:
            self._thresholds = gc.get_threshold()
        gc.set_threshold(*GC_THRESHOLDS)
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.cleanup_memory()
        finally:
            if self._thresholds is not None:
                gc.set_threshold(*self._thresholds)
            self._thresholds = None

    def register_lazy_loader(self, loader: LazyLoader[Any]) -> None:
        """Clean this loader up with the others, as long as someone else holds it."""
        with self._lock:
            self._loaders.add(loader)

    def check_memory_usage(self) -> bool:
        """Measure; above the limit clean up and return True."""
        above = self._sample() > self.max_total_memory_mb
        if above:
            self.cleanup_memory()
        return above

    def cleanup_memory(self) -> dict[str, int]:
        """Release loaded data and the cache in memory, and collect garbage."""
        with self._lock:
            loaded = [loader for loader in self._loaders if loader.is_loaded()]
        for loader in loaded:
            loader.force_cleanup()
        before = self.cache.statistics().items
        self.cache.release()
        return {
            "lazy_loaders_cleaned": len(loaded),
            "cache_items_before": before,
            "cache_items_after": self.cache.statistics().items,
            "gc_collected": gc.collect(),
        }

    def get_memory_report(self) -> dict[str, Any]:
        """Measure, and report on the process, the cache, collections and loaders."""
        current, cache = self._sample(), self.cache.statistics()
        with self._lock:
            monitor = {
                "current_mb": current,
                "peak_mb": self._peak,
                "avg_mb": self._sum / self._samples,
                "samples_count": self._samples,
            }
            loaders = len(self._loaders)
        return {
            "monitor_stats": monitor,
            "cache_stats": {
                "items_in_memory": cache.items,
                "memory_usage_mb": cache.bytes / MIB,
                "max_memory_mb": cache.max_bytes / MIB,
                "storage_items": len(self.storage.names()) if self.storage else 0,
            },
            "gc_stats": {
                "thresholds": gc.get_threshold(),
                "collections": [one["collections"] for one in gc.get_stats()],
                "optimized": self._thresholds is not None,
            },
            "active_lazy_loaders": loaders,
            "max_total_memory_mb": self.max_total_memory_mb,
        }

    def _sample(self) -> float:
        current = host_memory().resident / MIB
        with self._lock:
            self._samples += 1
            self._sum += current
            self._peak = max(self._peak, current)
        return current


_manager = MemoryManager()


def get_memory_manager() -> MemoryManager:
    """Return the one manager of this process."""
    return _manager


def create_lazy_visualization_loader(
    data_path: str | os.PathLike[str],
    loader_func: Callable[[Any], T],
    max_idle_time: float = 300.0,
) -> LazyLoader[T]:
    """Return a loader that calls `loader_func(data_path)` on first use.

    The manager of the process cleans it up with the others.
    """
    loader = LazyLoader(lambda: loader_func(data_path), max_idle_time=max_idle_time)
    get_memory_manager().register_lazy_loader(loader)
    return loader


def optimize_array_memory(arr: np.ndarray) -> np.ndarray:
    """Return the array in the smallest dtype of its kind that keeps every value.

    Integers are kept exactly and signed ones stay signed; float64 becomes float32
    where every value stays within a relative 1e-6. Anything else is returned as it is.

    >>> optimize_array_memory(np.array([1000, 2000, 3000])).dtype
    dtype('int16')
    """
    with np.errstate(all="ignore"):
        return arr.astype(smallest_dtype(arr), copy=False)
