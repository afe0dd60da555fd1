"""Memory let go, settings restored, reports with the documented keys."""

import gc
import threading
from pathlib import Path

import numpy as np
import pytest

from jaxarc.utils.visualization.manager import (
    GarbageCollectionOptimizer,
    MemoryManager,
    create_lazy_visualization_loader,
    get_memory_manager,
)
from jaxrig.caching import LazyLoader


@pytest.fixture(autouse=True)
def thresholds():
    before = gc.get_threshold()
    yield before
    gc.set_threshold(*before)


def test_a_context_tunes_collection_and_restores_it(thresholds):
    manager = MemoryManager()
    assert gc.get_threshold() == thresholds
    with manager as entered:
        assert entered is manager
        assert gc.get_threshold() == (1000, 15, 15)
    assert gc.get_threshold() == thresholds


def test_everything_is_let_go_on_exit_also_after_an_error(thresholds):
    loader = LazyLoader(lambda: np.zeros(10))
    manager = MemoryManager(max_total_memory_mb=100.0)
    manager.register_lazy_loader(loader)
    manager.cache.put("a", 1)
    loader.get()
    with pytest.raises(RuntimeError, match="body"), manager:
        raise RuntimeError("body")
    assert not loader.is_loaded()
    assert manager.cache.get_stats()["items_in_memory"] == 0
    assert gc.get_threshold() == thresholds


def test_settings_return_even_if_cleaning_fails(thresholds):
    def fail(_):
        raise OSError("cannot clean")

    loader = LazyLoader(lambda: 1, cleanup_func=fail)
    manager = MemoryManager()
    manager.register_lazy_loader(loader)
    with pytest.raises(OSError, match="cannot clean"), manager:
        loader.get()
    assert gc.get_threshold() == thresholds


def test_cleanup_counts_what_it_did():
    manager = MemoryManager()
    loaders = [LazyLoader(lambda: 1) for _ in range(3)]
    for index in range(3):
        manager.register_lazy_loader(loaders[index])
    loaders[0].get()
    manager.cache.put("a", 1)
    found = manager.cleanup_memory()
    assert set(found) == {
        "lazy_loaders_cleaned",
        "cache_items_before",
        "cache_items_after",
        "gc_collected",
    }
    assert found["lazy_loaders_cleaned"] == 1
    assert (found["cache_items_before"], found["cache_items_after"]) == (1, 0)
    assert manager.get_memory_report()["active_lazy_loaders"] == 3
    del loaders
    gc.collect()
    assert manager.get_memory_report()["active_lazy_loaders"] == 0


def test_a_storage_path_keeps_what_cleanup_takes_from_memory(tmp_path):
    with MemoryManager(storage_path=tmp_path) as manager:
        manager.cache.put("a", [1, 2])
    assert manager.cache.get("a") == [1, 2]


def test_the_report_measures_by_itself():
    manager = MemoryManager()
    first, second = manager.get_memory_report(), manager.get_memory_report()
    assert set(first) == {
        "monitor_stats",
        "cache_stats",
        "gc_stats",
        "active_lazy_loaders",
        "max_total_memory_mb",
    }
    assert first["max_total_memory_mb"] == 500.0
    assert first["cache_stats"]["max_memory_mb"] == 100.0
    one, other = first["monitor_stats"], second["monitor_stats"]
    assert set(one) == {"current_mb", "peak_mb", "avg_mb", "samples_count"}
    assert one["current_mb"] == one["peak_mb"] == one["avg_mb"] > 1
    assert other["samples_count"] == 2
    assert other["peak_mb"] == max(one["current_mb"], other["current_mb"])
    mean = (one["current_mb"] + other["current_mb"]) / 2
    assert other["avg_mb"] == pytest.approx(mean)


@pytest.mark.parametrize(("limit", "above"), [(0.0, True), (1e9, False)])
def test_too_much_memory_leads_to_a_cleanup(limit, above):
    manager = MemoryManager(max_total_memory_mb=limit)
    loader = LazyLoader(lambda: 1)
    manager.register_lazy_loader(loader)
    loader.get()
    assert manager.check_memory_usage() is above
    assert loader.is_loaded() is not above
    assert manager.get_memory_report()["monitor_stats"]["samples_count"] == 2


def test_there_is_one_manager_for_all_threads():
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(get_memory_manager()))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {id(manager) for manager in found} == {id(get_memory_manager())}


def test_loaders_of_files_belong_to_the_manager():
    seen = []
    before = get_memory_manager().get_memory_report()["active_lazy_loaders"]
    loader = create_lazy_visualization_loader(
        Path("data.bin"), lambda path: seen.append(path) or "data", max_idle_time=5.0
    )
    after = get_memory_manager().get_memory_report()["active_lazy_loaders"]
    assert after == before + 1
    assert not loader.is_loaded()
    assert loader.get() == loader.get() == "data"
    assert seen == [Path("data.bin")]
    get_memory_manager().cleanup_memory()
    assert not loader.is_loaded()


def test_the_optimizer_remembers_what_it_found_first(thresholds):
    optimizer = GarbageCollectionOptimizer()
    optimizer.restore_original_settings()
    assert gc.get_threshold() == thresholds
    optimizer.optimize_for_visualization()
    optimizer.optimize_for_visualization()
    stats = optimizer.get_gc_stats()
    assert stats["thresholds"] == (1000, 15, 15)
    assert stats["optimized"]
    optimizer.restore_original_settings()
    assert gc.get_threshold() == thresholds


def test_forced_collection_finds_cycles():
    gc.collect()
    gc.disable()  # nothing else may find the cycle first
    cycle = []
    cycle.append(cycle)
    del cycle
    found = GarbageCollectionOptimizer().force_cleanup()
    gc.enable()
    assert set(found) == {"generation_0", "generation_1", "generation_2"}
    assert sum(found.values()) >= 1
