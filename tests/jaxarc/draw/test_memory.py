"""Memory is released, settings restored, and what is saved comes back."""

import gc
import pickle
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.draw.memory import (
    CompressedStorage,
    MemoryManager,
    create_lazy_visualization_loader,
    get_memory_manager,
    optimize_array_memory,
)
from jaxrig.file_format import ContainerError
from jaxrig.storage import LazyLoader


@pytest.fixture(autouse=True)
def thresholds():
    before = gc.get_threshold()
    yield before
    gc.set_threshold(*before)


def test_a_context_tunes_collection_and_lets_everything_go(thresholds):
    """Also after an error, and even if cleaning fails."""

    def fail(_):
        raise OSError("cannot clean")

    loader = LazyLoader(lambda: np.zeros(10))
    manager = MemoryManager(max_total_memory_mb=100.0)
    manager.register_lazy_loader(loader)
    assert gc.get_threshold() == thresholds
    with manager as entered:
        assert entered is manager
        assert gc.get_threshold() == (1000, 15, 15)
    loader.get()
    manager.cache.put("a", 1)
    with pytest.raises(RuntimeError, match="body"), manager:
        raise RuntimeError("body")
    assert not loader.is_loaded()
    assert manager.cache.statistics().items == 0
    assert gc.get_threshold() == thresholds
    broken = LazyLoader(lambda: 1, cleanup_func=fail)
    manager.register_lazy_loader(broken)
    with pytest.raises(OSError, match="cannot clean"), manager:
        broken.get()
    assert gc.get_threshold() == thresholds


def test_cleanup_counts_what_it_did():
    manager = MemoryManager()
    loaders = [LazyLoader(lambda: 1) for _ in range(3)]
    for index in range(3):  # no name may hold the last of them
        manager.register_lazy_loader(loaders[index])
    loaders[0].get()
    manager.cache.put("a", 1)
    found = manager.cleanup_memory()
    assert found.pop("gc_collected") >= 0
    cache = {"cache_items_before": 1, "cache_items_after": 0}
    assert found == {"lazy_loaders_cleaned": 1} | cache
    assert manager.get_memory_report()["active_lazy_loaders"] == 3
    del loaders
    gc.collect()
    assert manager.get_memory_report()["active_lazy_loaders"] == 0


def test_a_storage_path_keeps_what_cleanup_takes_from_memory(tmp_path):
    with MemoryManager(storage_path=tmp_path) as kept, MemoryManager() as lost:
        for manager in (kept, lost):
            manager.cache.put("a", jnp.arange(3))
    np.testing.assert_array_equal(kept.cache.get("a"), [0, 1, 2])
    with pytest.raises(KeyError):
        lost.cache.get("a")


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


MIB = 2**20


def test_storage_gives_back_what_was_saved_and_runs_no_pickle(tmp_path):
    storage = CompressedStorage(tmp_path / "cache")
    path = storage.save({"grids": [np.full((3, 3), 7)], "steps": 100}, "episode_001")
    assert path == tmp_path / "cache" / "episode_001.pkl.gz"
    loaded = storage.load("episode_001")
    assert loaded["steps"] == 100
    np.testing.assert_array_equal(loaded["grids"][0], np.full((3, 3), 7))
    assert storage.names() == ["episode_001"]
    path.write_bytes(pickle.dumps([1]))
    with pytest.raises(ContainerError, match=r"episode_001\.pkl\.gz"):
        storage.load("episode_001")


@pytest.mark.parametrize("stored", [False, True])
def test_statistics_and_values_too_large_for_memory(stored, tmp_path):
    manager = MemoryManager(1.0, storage_path=tmp_path if stored else None)
    cache = manager.cache
    cache.put("small", np.zeros(MIB // 2, np.uint8))
    cache.put("large", np.ones(2 * MIB, np.uint8))
    stats = manager.get_memory_report()["cache_stats"]
    assert stats["max_memory_mb"] == 1.0
    assert (stats["items_in_memory"], stats["storage_items"]) == (1, int(stored))
    assert stats["memory_usage_mb"] == pytest.approx(0.5, rel=1e-3)
    if stored:
        assert cache.get("large").sum() == 2 * MIB
    else:
        with pytest.raises(KeyError):
            cache.get("large")


@pytest.mark.parametrize(
    ("values", "dtype", "expected", "saved"),
    [
        ([1, 2, 3, 4, 5], "int64", "int8", 35),
        ([1000, 2000, 3000], "int64", "int16", 18),
        ([1.1, 2.2, 3.3], "float64", "float32", 12),
        ([200], "int64", "int16", 6),
        ([70_000], "int64", "int32", 4),
        ([2**40], "int64", "int64", 0),
        ([5], "uint64", "uint8", 7),
        ([1 + 1e-9, 1e300], "float64", "float64", 0),
    ],
)
def test_documented_dtypes(values, dtype, expected, saved):
    array = np.array(values, dtype)
    found = optimize_array_memory(array)
    assert found.dtype == expected
    assert array.nbytes - found.nbytes == saved


@pytest.mark.parametrize("array", [np.array([True]), np.array(["a"]), np.ones(2, "f4")])
def test_other_arrays_are_returned_as_they_are(array):
    assert optimize_array_memory(array) is array
