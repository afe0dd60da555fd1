"""Memory of a process that makes many pictures: measured, bounded, let go again."""

import gc
import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakSet

from jaxarc.utils.visualization.stores import VisualizationCache
from jaxrig.caching import LazyLoader
from jaxrig.memory import MIB, host_memory

T = TypeVar("T")


class GarbageCollectionOptimizer:
    """Collections of Python objects: fewer while pictures are made, then as before."""

    THRESHOLDS = (1000, 15, 15)

    def __init__(self) -> None:
        self._original: tuple[int, int, int] | None = None

    def optimize_for_visualization(self) -> None:
        """Set the thresholds for making many short-lived objects."""
        if self._original is None:
            self._original = gc.get_threshold()
        gc.set_threshold(*self.THRESHOLDS)

    def restore_original_settings(self) -> None:
        """Set the thresholds found by `optimize_for_visualization` again."""
        if self._original is not None:
            gc.set_threshold(*self._original)
            self._original = None

    def force_cleanup(self) -> dict[str, int]:
        """Collect now; the number of unreachable objects found in each generation."""
        return {f"generation_{number}": gc.collect(number) for number in range(3)}

    def get_gc_stats(self) -> dict[str, Any]:
        """The thresholds in force, the counts towards them, and past collections."""
        return {
            "thresholds": gc.get_threshold(),
            "counts": gc.get_count(),
            "collections": [generation["collections"] for generation in gc.get_stats()],
            "optimized": self._original is not None,
        }


class MemoryManager:
    """Watches the memory of this process and lets go of what can be loaded again.

    As a context it also tunes garbage collection; on exit everything is let go and
    the former settings return.

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
        self.cache = VisualizationCache(max_cache_memory_mb, storage_path=storage_path)
        self.gc_optimizer = GarbageCollectionOptimizer()
        self._loaders: WeakSet[LazyLoader[Any]] = WeakSet()
        self._lock = threading.Lock()
        self._samples, self._sum, self._peak = 0, 0.0, 0.0

    def __enter__(self) -> "MemoryManager":
        self.gc_optimizer.optimize_for_visualization()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.cleanup_memory()
        finally:
            self.gc_optimizer.restore_original_settings()

    def register_lazy_loader(self, loader: LazyLoader[Any]) -> None:
        """Clean this loader up with the others, while someone else holds it."""
        with self._lock:
            self._loaders.add(loader)

    def check_memory_usage(self) -> bool:
        """Measure; above the limit clean up and say so."""
        above = self._sample() > self.max_total_memory_mb
        if above:
            self.cleanup_memory()
        return above

    def cleanup_memory(self) -> dict[str, int]:
        """Let go of loaded data and of the cache in memory, and collect garbage."""
        with self._lock:
            loaded = [loader for loader in self._loaders if loader.is_loaded()]
        for loader in loaded:
            loader.force_cleanup()
        before = int(self.cache.get_stats()["items_in_memory"])
        self.cache.release_memory()
        return {
            "lazy_loaders_cleaned": len(loaded),
            "cache_items_before": before,
            "cache_items_after": int(self.cache.get_stats()["items_in_memory"]),
            "gc_collected": sum(self.gc_optimizer.force_cleanup().values()),
        }

    def get_memory_report(self) -> dict[str, Any]:
        """Measure, and report on the process, the cache, collections and loaders."""
        current = self._sample()
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
            "cache_stats": self.cache.get_stats(),
            "gc_stats": self.gc_optimizer.get_gc_stats(),
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
    """The one manager of this process."""
    return _manager


def create_lazy_visualization_loader(
    data_path: str | os.PathLike[str],
    loader_func: Callable[[Any], T],
    max_idle_time: float = 300.0,
) -> LazyLoader[T]:
    """A loader that calls `loader_func(data_path)` on first use.

    The manager of the process cleans it up with the others.
    """
    loader = LazyLoader(lambda: loader_func(data_path), max_idle_time=max_idle_time)
    get_memory_manager().register_lazy_loader(loader)
    return loader
