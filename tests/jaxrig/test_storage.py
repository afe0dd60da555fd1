import gzip
import io
import random
import threading
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxrig import storage
from jaxrig.file_format import ContainerError, write_container
from jaxrig.storage import MAX_NAME, BlobStore, ByteCache, LazyLoader, size_of

SAMPLE = {
    "grids": [np.full((5, 5), i, np.int8) for i in range(3)],
    "meta": {"id": "a", "steps": (1, 2.5, None), 7: {1, "x"}, None: 2**80},
    "raw": b"\x00\xff",
}


@pytest.fixture
def store(tmp_path):
    return BlobStore(tmp_path / "blobs")


def test_arrays_come_back_as_numpy(store, key):
    data = {
        "jax": jnp.arange(4, dtype=jnp.bfloat16),
        "scalar": np.float32(0.1),
        "zero": np.array(3),
        "key": key,
        "numbers": [float("nan"), float("-inf"), -0.0, 1 + 2j],
    }
    store.save(data, "arrays")
    found = store.load("arrays")
    assert type(found["jax"]) is np.ndarray
    assert found["jax"].dtype == jnp.bfloat16
    assert (found["jax"] == np.arange(4)).all()
    assert type(found["scalar"]) is np.float32
    assert type(found["zero"]) is np.ndarray
    assert repr(found["numbers"]) == repr(data["numbers"])
    assert (jax.random.bits(found["key"]) == jax.random.bits(key)).all()


def test_life_of_a_blob(store):
    assert store.names() == []
    assert not store.exists("a")
    assert store.size_bytes("a") == 0
    assert not store.delete("a")
    path = store.save(SAMPLE, "a")
    store.save([1], "b c.d")
    assert path.name == "a.blob.gz"
    assert store.names() == ["a", "b c.d"]
    assert store.exists("a")
    assert store.size_bytes("a") == path.stat().st_size > 0
    store.save([2], "a")
    assert store.load("a") == [2]
    assert store.delete("a")
    assert store.names() == ["b c.d"]


def test_a_missing_blob_names_the_folder_and_what_is_there(store):
    with pytest.raises(FileNotFoundError, match=r"no blob 'x' in .*blobs; there is"):
        store.load("x")
    for name in ("x" * MAX_NAME, "a..b", "x.blob.gz", "ünï 1", "-"):  # odd but safe
        store.save(name, name)
        assert store.load(name) == name
    with pytest.raises(FileNotFoundError, match=r"There are: -, a\.\.b, x\.blob\.gz"):
        store.load("x")


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../x",
        "/etc/passwd",
        "a/b",
        "a\\b",
        "c:d",
        ".hidden",
        "a\0b",
        "a\nb",
        "\ud800",
        "x" * (MAX_NAME + 1),
        "é" * MAX_NAME,
    ],
)
def test_names_cannot_leave_the_folder(store, name):
    for method in (store.load, store.exists, store.delete, store.size_bytes):
        with pytest.raises(ValueError, match="a name is 1 to"):
            method(name)
    with pytest.raises(ValueError, match="a name is 1 to"):
        store.save(1, name)
    assert list(store.folder.iterdir()) == []


def test_what_cannot_be_stored_leaves_the_previous_blob(store):
    store.save([1], "a")
    with pytest.raises(TypeError, match=r"data\['x'\]\[0\] is a builtins.object"):
        store.save({"x": [object()]}, "a")
    assert store.load("a") == [1]
    assert len(list(store.folder.iterdir())) == 1


@pytest.mark.parametrize("level", [0, 1, 6, 9])
def test_equal_data_gives_equal_bytes(tmp_path, level):
    one = BlobStore(tmp_path / "one", level).save(SAMPLE, "x")
    two = BlobStore(tmp_path / "two", level).save(SAMPLE, "y")
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize("level", [-1, 10])
def test_wrong_levels_are_refused(tmp_path, level):
    with pytest.raises(ValueError, match="from 0 to 9"):
        BlobStore(tmp_path, level)


def test_stores_of_two_suffixes_share_a_folder(tmp_path):
    one, two = BlobStore(tmp_path, suffix=".pkl.gz"), BlobStore(tmp_path)
    assert one.save(1, "a").name == "a.pkl.gz"
    two.save(2, "a")
    assert (one.load("a"), two.load("a")) == (1, 2)
    assert one.names() == two.names() == ["a"]


def test_damage_never_gives_a_wrong_value(store):
    path = store.save(SAMPLE, "a")
    whole = path.read_bytes()
    rng = random.Random(0)
    for position in range(len(whole)):
        path.write_bytes(whole[:position])
        with pytest.raises(ContainerError, match=r"a\.blob\.gz"):
            store.load("a")
        damaged = bytearray(whole)
        damaged[position] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        try:
            found = store.load("a")
        except ContainerError:
            continue
        # gzip's clock and the bits after its last code carry no data
        rest = [{k: v for k, v in x.items() if k != "grids"} for x in (found, SAMPLE)]
        assert rest[0] == rest[1]
        assert np.array_equal(found["grids"], SAMPLE["grids"])


def pack(meta, arrays):
    file = io.BytesIO()
    write_container(file, meta, arrays)
    return file.getvalue()


@pytest.mark.parametrize(
    "meta",
    [
        {},
        {"schema": "other", "data": 1},
        {"schema": "jaxrig.blob", "data": ["object", "x"]},
        {"schema": "jaxrig.blob", "data": ["array", "absent"]},
    ],
)
def test_other_containers_are_refused(store, meta):
    (store.folder / "x.blob.gz").write_bytes(gzip.compress(pack(meta, {})))
    with pytest.raises(ContainerError, match=r"x\.blob\.gz"):
        store.load("x")


def test_a_blob_over_the_limit_is_neither_saved_nor_loaded(store, monkeypatch):
    data = np.zeros(2 * 10**6, np.uint8)
    store.save(data, "a")
    monkeypatch.setattr(storage, "MAX_BYTES", 10**6)
    with pytest.raises(ValueError, match="the limit is 1000000"):
        store.save(data, "b")
    assert store.names() == ["a"]
    with pytest.raises(ContainerError, match="more than 1000000 bytes"):
        store.load("a")


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


@settings(max_examples=30)
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
    for key, value in reference.disk.items():  # what was spilled outlives the cache
        assert np.array_equal(ByteCache(100, store=store).get(key), value)


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
    with (
        pytest.warns(UserWarning, match="cached value dropped"),
        pytest.raises(KeyError),
    ):
        cache.get("a")


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


def test_sizes_count_arrays_exactly():
    array = np.zeros(1000, np.float32)
    assert size_of(jax.random.split(jax.random.key(0), 1000)) == 8000
    assert size_of({"x": [array], "y": jnp.zeros(1000, jnp.bfloat16)}) == 6000
    assert size_of(["x" * 1000]) > 1000


def test_the_cache_holds_together_under_threads(tmp_path):
    cache = ByteCache(300, 5, BlobStore(tmp_path, 1))
    barrier = threading.Barrier(4)

    def work(seed):
        rng = np.random.default_rng(seed)
        barrier.wait()
        for _ in range(60):
            number = int(rng.integers(12))
            cache.put(str(number), block(rng.integers(50, 80), number))
            assert (cache.get(str(number)) == number).all()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    statistics = cache.statistics()
    assert statistics.bytes <= 300
    assert statistics.items <= 5


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
    assert lazy.get() == 1
    for clock.now in (10.0, 20.0, 30.0):  # every use starts the waiting anew
        assert lazy.get() == 1
    clock.now = 40.5
    assert lazy.get() == 2
    assert cleaned == [1]


def test_an_error_of_loading_or_cleaning_up_leaves_nothing_loaded():
    answers = iter([ZeroDivisionError(), 5])

    def load():
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def fail(value):
        raise OSError(f"cannot close {value}")

    lazy = LazyLoader(load, fail)
    with pytest.raises(ZeroDivisionError):
        lazy.get()
    assert not lazy.is_loaded()
    assert lazy.get() == 5
    with pytest.raises(OSError, match="cannot close 5"):
        lazy.force_cleanup()
    assert not lazy.is_loaded()


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
