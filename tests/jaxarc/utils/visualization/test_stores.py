"""What is saved comes back, memory stays bounded, dtypes lose nothing."""

import pickle

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from jaxarc.utils.visualization.stores import (
    CompressedStorage,
    VisualizationCache,
    optimize_array_memory,
)
from jaxrig.container import ContainerError

INTEGERS = [
    np.dtype(f"{sign}{bits}") for sign in ("int", "uint") for bits in (16, 32, 64)
]
MIB = 2**20


def test_storage_gives_back_what_was_saved(tmp_path):
    storage = CompressedStorage(tmp_path / "cache")
    data = {
        "episode_grids": [np.full((3, 3), i) for i in range(4)],
        "metadata": {"episode_id": "test_001", "total_steps": 100},
    }
    path = storage.save(data, "episode_001")
    assert path == storage.base_path / "episode_001.pkl.gz"
    loaded = storage.load("episode_001")
    assert loaded["metadata"] == data["metadata"]
    np.testing.assert_array_equal(loaded["episode_grids"], data["episode_grids"])
    assert storage.exists("episode_001")
    assert storage.get_size_mb("episode_001") == path.stat().st_size / MIB
    assert storage.list_files() == ["episode_001"]


def test_storage_without_the_file(tmp_path):
    storage = CompressedStorage(tmp_path, compression_level=1)
    with pytest.raises(FileNotFoundError, match="'a'"):
        storage.load("a")
    assert not storage.exists("a")
    assert storage.get_size_mb("a") == 0.0
    assert storage.delete("a") is False
    storage.save(1, "a")
    assert storage.delete("a") is True
    with pytest.raises(ValueError, match="blob name"):
        storage.save(1, "../a")


def test_a_pickle_is_refused_not_run(tmp_path):
    storage = CompressedStorage(tmp_path)
    (tmp_path / "a.pkl.gz").write_bytes(pickle.dumps([1]))
    with pytest.raises(ContainerError, match=r"a\.pkl\.gz"):
        storage.load("a")


def test_the_cache_loads_once_and_else_raises():
    cache = VisualizationCache()
    calls = []
    for _ in range(2):
        assert cache.get("a", lambda: calls.append(1) or "value") == "value"
    assert calls == [1]
    with pytest.raises(KeyError, match="b"):
        cache.get("b")
    cache.clear()
    with pytest.raises(KeyError):
        cache.get("a")


def test_the_least_recently_used_value_goes_first():
    cache = VisualizationCache(max_items=2)
    cache.put("a", 1)
    cache.put("b", 2)
    cache.get("a")
    cache.put("c", 3)
    assert (cache.get("a"), cache.get("c")) == (1, 3)
    with pytest.raises(KeyError):
        cache.get("b")


@pytest.mark.parametrize("stored", [False, True])
def test_statistics_and_values_too_large_for_memory(stored, tmp_path):
    cache = VisualizationCache(1.0, storage_path=tmp_path if stored else None)
    cache.put("small", np.zeros(MIB // 2, np.uint8))
    cache.put("large", np.ones(2 * MIB, np.uint8))
    stats = cache.get_stats()
    assert set(stats) == {
        "items_in_memory",
        "memory_usage_mb",
        "max_memory_mb",
        "memory_utilization",
        "storage_items",
    }
    assert (stats["items_in_memory"], stats["storage_items"]) == (1, int(stored))
    assert stats["memory_usage_mb"] == pytest.approx(0.5, rel=1e-3)
    assert stats["memory_utilization"] == pytest.approx(0.5, rel=1e-3)
    if stored:
        assert cache.get("large").sum() == 2 * MIB
    else:
        with pytest.raises(KeyError):
            cache.get("large")


def test_released_values_come_back_from_files_if_there_are_any(tmp_path):
    kept, lost = VisualizationCache(storage_path=tmp_path), VisualizationCache()
    for cache in (kept, lost):
        cache.put("a", jnp.arange(3))
        cache.release_memory()
        assert cache.get_stats()["items_in_memory"] == 0
    np.testing.assert_array_equal(kept.get("a"), [0, 1, 2])
    with pytest.raises(KeyError):
        lost.get("a")


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


@given(st.sampled_from(INTEGERS).flatmap(lambda d: hnp.arrays(d, st.integers(1, 5))))
def test_integers_keep_value_and_sign_in_the_narrowest_dtype(array):
    found = optimize_array_memory(array)
    np.testing.assert_array_equal(found.astype(array.dtype), array)
    assert found.dtype.kind == array.dtype.kind
    sign = "int" if array.dtype.kind == "i" else "uint"
    fitting = [
        bits
        for bits in (8, 16, 32, 64)
        if np.iinfo(f"{sign}{bits}").min <= array.min()
        and array.max() <= np.iinfo(f"{sign}{bits}").max
    ]
    assert found.dtype == f"{sign}{fitting[0]}"


@pytest.mark.parametrize("array", [np.array([True]), np.array(["a"]), np.ones(2, "f4")])
def test_other_arrays_are_returned_as_they_are(array):
    assert optimize_array_memory(array) is array
