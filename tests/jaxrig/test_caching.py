import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import small_heap
from jaxrig.caching import ByteCache, LazyLoader, size_of
from jaxrig.storage import BlobStore


def block(size, fill=0):
    return np.full(size, fill, np.uint8)


class Reference:
    """The same cache, naively: a list in order of use, and a dict for the disk."""

    def __init__(self, max_bytes, max_items, has_store):
        self.max_bytes, self.max_items, self.has_store = max_bytes, max_items, has_store
        self.used, self.disk = [], {}

    def get(self, key):
        for i, (name, value) in enumerate(self.used):
            if name == key:
                self.used.append(self.used.pop(i))
                return value
        if key in self.disk:
            self.keep(key, self.disk[key])
            return self.disk[key]
        return None

    def put(self, key, value):
        self.used = [pair for pair in self.used if pair[0] != key]
        self.disk.pop(key, None)
        self.keep(key, value)

    def keep(self, key, value):
        if len(value) > self.max_bytes:
            self.spill(key, value)
            return
        self.used.append((key, value))
        while (
            sum(len(v) for _, v in self.used) > self.max_bytes
            or len(self.used) > self.max_items
        ):
            self.spill(*self.used.pop(0))

    def spill(self, key, value):
        if self.has_store:
            self.disk[key] = value


operations = st.lists(
    st.tuples(
        st.sampled_from(["get", "put"]),
        st.sampled_from(["a", "b", "c", "../d", ""]),
        st.integers(0, 30) | st.integers(0, 60),
    ),
    min_size=10,
    max_size=60,
)


@settings(max_examples=60)
@given(operations, st.integers(1, 4), st.booleans())
def test_the_cache_does_what_the_reference_does(tmp_path_factory, calls, items, stored):
    store = BlobStore(tmp_path_factory.mktemp("cache"), 1) if stored else None
    cache = ByteCache(100, items, store)
    reference = Reference(100, items, stored)
    for number, (method, key, size) in enumerate(calls):
        if method == "put":
            value = block(2 * size, number)
            cache.put(key, value)
            reference.put(key, value)
            continue
        expected = reference.get(key)
        if expected is None:
            with pytest.raises(KeyError):
                cache.get(key)
        else:
            assert np.array_equal(cache.get(key), expected)
        statistics = cache.statistics()
        assert statistics.items == len(reference.used)
        assert statistics.bytes == sum(len(value) for _, value in reference.used)
        assert store is None or len(store.names()) == len(reference.disk)


def test_the_least_recently_used_goes_first():
    cache = ByteCache(30)
    for key in "abc":
        cache.put(key, block(10))
    cache.get("a")
    cache.put("b", block(10))
    cache.put("d", block(15))
    for key in "ac":
        with pytest.raises(KeyError):
            cache.get(key)
    assert cache.get("b").size == 10
    assert cache.get("d").size == 15


def test_loaders_run_once_and_counts_are_kept():
    cache = ByteCache(100)
    assert cache.get("a", lambda: 1) == 1
    assert cache.get("a", lambda: 2) == 1
    with pytest.raises(KeyError, match="missing"):
        cache.get("missing")
    assert cache.get("none", lambda: None) is None
    assert cache.get("none") is None
    statistics = cache.statistics()
    assert (statistics.hits, statistics.misses, statistics.items) == (2, 3, 2)
    assert statistics.max_bytes == 100


def test_an_error_in_a_loader_changes_nothing():
    cache = ByteCache(100)
    cache.put("a", block(100))
    with pytest.raises(ZeroDivisionError):
        cache.get("b", lambda: 1 / 0)
    assert cache.statistics().items == 1
    assert cache.statistics().evictions == 0
    assert cache.get("a").size == 100


def test_an_item_larger_than_the_cache_pushes_nothing_out(tmp_path):
    for store in (None, BlobStore(tmp_path)):
        cache = ByteCache(100, store=store)
        cache.put("a", block(60))
        cache.put("b", block(30))
        assert cache.get("huge", lambda: block(101)).size == 101
        statistics = cache.statistics()
        assert (statistics.items, statistics.evictions) == (2, 0)
        assert statistics.spilled == (store is not None)
        assert cache.get("huge", lambda: block(500)).size == (500, 101)[bool(store)]


def test_a_larger_value_replaces_the_smaller_one_of_its_key():
    cache = ByteCache(100)
    cache.put("a", block(10))
    cache.put("a", block(101))
    with pytest.raises(KeyError):
        cache.get("a")
    assert cache.statistics().bytes == 0


def test_spilled_values_return_and_outlive_the_cache(tmp_path):
    store = BlobStore(tmp_path)
    keys = ["a/b", "..", "a b", "a_b", "x" * 500, "\ud800", "Ä"]
    cache = ByteCache(10, store=store)
    for i, key in enumerate(keys):
        cache.put(key, block(10, i))
    assert cache.statistics().spilled == len(keys) - 1
    for i, key in enumerate(keys):
        assert (cache.get(key) == i).all()
    assert cache.statistics().spilled == len(keys)  # what is stored is not stored again
    later = ByteCache(10, store=store)
    assert (later.get("..") == 1).all()


def test_a_new_value_hides_the_spilled_one(tmp_path):
    cache = ByteCache(10, store=BlobStore(tmp_path))
    cache.put("a", block(10, 1))
    cache.put("b", block(10, 2))
    cache.put("a", block(10, 3))
    cache.put("b", block(10, 4))
    assert (cache.get("a") == 3).all()


def test_clear_forgets_memory_and_its_own_blobs(tmp_path):
    store = BlobStore(tmp_path)
    store.save(1, "of somebody else")
    cache = ByteCache(10, store=store)
    cache.put("a", block(10))
    cache.put("b", block(10))
    cache.clear()
    assert cache.statistics().items == cache.statistics().bytes == 0
    assert store.names() == ["of somebody else"]
    for key in "ab":
        with pytest.raises(KeyError):
            cache.get(key)


def test_a_damaged_blob_is_a_miss_with_a_warning(tmp_path):
    store = BlobStore(tmp_path)
    cache = ByteCache(10, store=store)
    cache.put("a", block(10))
    cache.put("b", block(10))
    [name] = store.names()
    (tmp_path / f"{name}.blob.gz").write_bytes(b"damaged")
    with pytest.warns(UserWarning, match="cached value dropped"):
        assert cache.get("a", lambda: block(10, 9))[0] == 9


def test_what_cannot_be_spilled_is_refused_by_the_put_that_gives_it(tmp_path):
    cache = ByteCache(1000, store=BlobStore(tmp_path))
    with pytest.raises(TypeError, match=r"data\['x'\]"):
        cache.put("a", {"x": object()})
    assert cache.statistics().items == 0
    ByteCache(1000).put("a", {"x": object()})


@pytest.mark.parametrize("limits", [(-1, None), (10, 0)])
def test_wrong_limits_are_refused(limits):
    with pytest.raises(ValueError, match="max_"):
        ByteCache(*limits)


def test_sizes_count_arrays_exactly_and_shared_ones_once():
    class Pair(eqx.Module):
        left: object
        right: object

    array = np.zeros(1000, np.float32)
    assert size_of(array) == 4000
    assert size_of(jnp.zeros(1000, jnp.bfloat16)) == 2000
    assert size_of(jax.random.split(jax.random.key(0), 1000)) == 8000
    for value in ([array], {"x": array}, (array, array), Pair(array, {1: array})):
        assert 4000 < size_of(value) < 5000
    assert size_of("x" * 1000) > 1000
    cycle = []
    cycle.append(cycle)
    assert size_of(cycle) < 1000


def test_the_cache_holds_together_under_threads(tmp_path):
    cache = ByteCache(300, 5, BlobStore(tmp_path, 1))
    barrier = threading.Barrier(4)

    def work(seed):
        rng = np.random.default_rng(seed)
        barrier.wait()
        for _ in range(60):
            number = int(rng.integers(12))
            value = cache.get(str(number), lambda n=number: block(50, n))
            assert (value == number).all()
            if rng.random() < 0.1:
                cache.put(str(number), block(80, number))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    statistics = cache.statistics()
    assert statistics.bytes <= 300
    assert statistics.items <= 5
    assert statistics.hits + statistics.misses == 240


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_lazy_loader_loads_once_and_reloads_when_idle():
    clock, loads, cleaned = Clock(), [], []

    def load():
        loads.append(None)
        return len(loads)

    lazy = LazyLoader(load, cleaned.append, max_idle_time=10.0, clock=clock)
    assert not lazy.is_loaded()
    assert not lazy.release_if_idle()
    assert lazy.get() == 1
    for clock.now in (10.0, 20.0, 30.0):  # every use starts the waiting anew
        assert lazy.get() == 1
    clock.now = 40.0
    assert not lazy.release_if_idle()
    clock.now = 40.5
    assert lazy.get() == 2
    assert cleaned == [1]
    clock.now = 51.0
    assert lazy.release_if_idle()
    assert not lazy.release_if_idle()
    assert not lazy.is_loaded()
    assert cleaned == [1, 2]


def test_none_counts_as_loaded():
    loads, cleaned = [], []
    lazy = LazyLoader(lambda: loads.append(1), cleaned.append)
    assert lazy.get() is None
    assert lazy.get() is None
    assert lazy.is_loaded()
    lazy.force_cleanup()
    lazy.force_cleanup()
    assert loads == [1]
    assert cleaned == [None]


def test_errors_of_the_loader_leave_it_unloaded():
    answers = iter([ZeroDivisionError(), 5])

    def load():
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    lazy = LazyLoader(load)
    with pytest.raises(ZeroDivisionError):
        lazy.get()
    assert not lazy.is_loaded()
    assert lazy.get() == 5


def test_an_error_of_the_cleanup_reaches_the_caller_and_lets_go():
    def fail(value):
        raise OSError(f"cannot close {value}")

    lazy = LazyLoader(lambda: 1, fail)
    lazy.get()
    with pytest.raises(OSError, match="cannot close 1"):
        lazy.force_cleanup()
    assert not lazy.is_loaded()
    assert lazy.get() == 1


def test_concurrent_gets_load_once():
    entered, release, loads = threading.Event(), threading.Event(), []

    def load():
        loads.append(threading.get_ident())
        entered.set()
        assert release.wait(10)
        return object()

    lazy = LazyLoader(load)
    with ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(lazy.get) for _ in range(8)]
        assert entered.wait(10)
        release.set()
        values = {id(answer.result(10)) for answer in answers}
    assert len(loads) == len(values) == 1


def test_a_negative_idle_time_is_refused():
    for value in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="max_idle_time"):
            LazyLoader(lambda: 1, max_idle_time=value)


def test_released_values_are_garbage_and_loaders_can_be_held_weakly():
    class Value:
        pass

    with small_heap():
        lazy = LazyLoader(Value)
        value, loader = weakref.ref(lazy.get()), weakref.ref(lazy)
        lazy.force_cleanup()
        gc.collect()
        assert value() is None
        del lazy
        gc.collect()
        assert loader() is None
