import gzip
import io
import pickle
import random
import tracemalloc

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxrig.container import ContainerError, write_container
from jaxrig.storage import MAX_NAME, BlobStore

SAMPLE = {
    "grids": [np.full((5, 5), i, np.int8) for i in range(3)],
    "meta": {"id": "a", "steps": (1, 2.5, None), 7: {1, "x"}, None: 2**80},
    "raw": b"\x00\xff",
}

nested = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(st.none() | st.integers() | st.text(), inner)
    ),
    max_leaves=10,
)


@pytest.fixture
def store(tmp_path):
    return BlobStore(tmp_path / "blobs")


@pytest.fixture(scope="module")
def shared_store(tmp_path_factory):
    return BlobStore(tmp_path_factory.mktemp("shared"))


def equal(a, b):
    rest = [{k: v for k, v in x.items() if k != "grids"} for x in (a, b)]
    return rest[0] == rest[1] and np.array_equal(a["grids"], b["grids"])


@given(nested)
def test_plain_data_comes_back(shared_store, data):
    shared_store.save(data, "any")
    assert shared_store.load("any") == data


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
    with pytest.raises(FileNotFoundError, match="which holds no blobs"):
        store.load("x")
    for i in range(12):
        store.save(i, f"n{i:02}")
    with pytest.raises(FileNotFoundError) as error:
        store.load("x")
    for part in ("'x'", str(store.folder), "'n00', 'n01'", "2 more"):
        assert part in str(error.value)


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


@pytest.mark.parametrize("name", ["x" * MAX_NAME, "a..b", "x.blob.gz", "ünï 1", "-"])
def test_odd_but_safe_names_work(store, name):
    store.save(1, name)
    assert store.names() == [name]
    assert store.load(name) == 1


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
def test_wrong_levels_and_suffixes_are_refused(tmp_path, level):
    with pytest.raises(ValueError, match="from 0 to 9"):
        BlobStore(tmp_path, level)
    for suffix in ("", ".", "gz", "./x", ".\0", "." + 25 * "x"):
        with pytest.raises(ValueError, match="suffix="):
            BlobStore(tmp_path, suffix=suffix)


def test_stores_of_two_suffixes_share_a_folder(tmp_path):
    one, two = BlobStore(tmp_path, suffix=".pkl.gz"), BlobStore(tmp_path)
    assert one.save(1, "a").name == "a.pkl.gz"
    two.save(2, "a")
    assert (one.load("a"), two.load("a")) == (1, 2)
    assert one.names() == two.names() == ["a"]


def test_truncated_blobs_are_refused(store):
    path = store.save(SAMPLE, "a")
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(ContainerError, match=r"a\.blob\.gz"):
            store.load("a")


def test_flipped_bits_never_give_a_wrong_value(store):
    path = store.save(SAMPLE, "a")
    whole = path.read_bytes()
    rng = random.Random(0)
    refused = 0
    for position in range(len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        try:
            found = store.load("a")
        except ContainerError:
            refused += 1
        else:  # gzip's clock and the bits after its last code carry no data
            assert equal(found, SAMPLE)
    assert refused >= len(whole) - 8


class Payload:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return (open, (self.marker, "w"))


def test_a_pickle_runs_nothing(store, tmp_path):
    marker = tmp_path / "marker"
    evil = pickle.dumps(Payload(str(marker)))
    for content in (evil, gzip.compress(evil)):
        (store.folder / "evil.blob.gz").write_bytes(content)
        with pytest.raises(ContainerError):
            store.load("evil")
    assert not marker.exists()
    with pytest.raises(TypeError, match="Payload"):
        store.save(Payload(str(marker)), "evil")
    assert not marker.exists()


def pack(meta, arrays):
    file = io.BytesIO()
    write_container(file, meta, arrays)
    return file.getvalue()


@pytest.mark.parametrize(
    "meta",
    [
        {},
        {"schema": "jaxrig.blob"},
        {"schema": "other", "data": 1},
        {"schema": "jaxrig.blob", "data": ["object", "x"]},
        {"schema": "jaxrig.blob", "data": ["array", "absent"]},
    ],
)
def test_other_containers_are_refused(store, meta):
    (store.folder / "x.blob.gz").write_bytes(gzip.compress(pack(meta, {})))
    with pytest.raises(ContainerError, match=r"x\.blob\.gz"):
        store.load("x")


def test_bytes_after_the_end_are_refused(store):
    path = store.save(SAMPLE, "a")
    whole = path.read_bytes()
    for tail in (b"x", gzip.compress(b"x"), gzip.compress(bytes(10**6))):
        path.write_bytes(whole + tail)
        with pytest.raises(ContainerError):
            store.load("a")


def test_a_blob_over_the_limit_is_neither_saved_nor_loaded(tmp_path):
    large = BlobStore(tmp_path)
    small = BlobStore(tmp_path, max_bytes=10**6)
    data = np.zeros(2 * 10**6, np.uint8)
    with pytest.raises(ValueError, match="the limit is 1000000"):
        small.save(data, "a")
    assert small.names() == []
    large.save(data, "a")
    tracemalloc.start()
    with pytest.raises(ContainerError, match="declares"):
        small.load("a")
    assert tracemalloc.get_traced_memory()[1] < 10**6
    tracemalloc.stop()


def test_a_small_file_cannot_claim_much_memory(store):
    bomb = pack(
        {"schema": "jaxrig.blob", "data": ["array", "a"]},
        {"a": np.zeros(3 * 10**7, np.uint8)},
    )
    # Cut off after the header, a few hundred bytes claim thirty million.
    (store.folder / "a.blob.gz").write_bytes(gzip.compress(bomb[:1000]))
    tracemalloc.start()
    with pytest.raises(ContainerError, match="declares"):
        store.load("a")
    assert tracemalloc.get_traced_memory()[1] < 10**6
    tracemalloc.stop()


def test_the_best_compression_there_is_stays_within_the_ratio(store):
    for level in (1, 9):
        dense = BlobStore(store.folder, level)
        dense.save(np.zeros(10**8, np.uint8), "zeros")
        assert dense.load("zeros").sum() == 0
