import io
import json
import pickle
import random
import signal
import struct
import tracemalloc
import zlib
from collections import OrderedDict

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from jaxrig import file_format
from jaxrig.dtypes import DTYPES


def dump(arrays, meta=None):
    file = io.BytesIO()
    size = file_format.write_container(file, meta or {}, arrays)
    assert size == len(file.getvalue())
    return file.getvalue()


def parse(data, exact=True):
    file = io.BytesIO(data)
    header = file_format.read_header(file, "some.file", len(data), exact=exact)
    return header, dict(file_format.read_arrays(file, header, "some.file"))


def forge(arrays, payload=b"", meta=None):
    """A container whose header is what an attacker writes, with a right checksum."""
    text = json.dumps({"meta": meta or {}, "arrays": arrays}).encode()
    return forge_text(text, payload)


def forge_text(text, payload=b""):
    data = (
        file_format.PREFIX.pack(
            file_format.MAGIC, file_format.VERSION, len(text), zlib.crc32(text)
        )
        + text
    )
    return data + bytes(-len(data) % file_format.ALIGNMENT) + payload


def entry(**changes):
    fields = {
        "name": "a",
        "dtype": "int8",
        "shape": [4],
        "offset": 0,
        "nbytes": 4,
        "key": None,
    }
    return fields | changes


SAMPLE = {
    "a": np.arange(300, dtype=np.int16).reshape(3, 100),
    "b": np.array(1.5),
    "c": np.zeros((0, 3), np.float32),
    "d": np.array([True, False, True]),
}


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 0, 3), (3, 4, 5)])
def test_every_dtype_comes_back(name, shape):
    values = np.random.default_rng(0).integers(0, 2, shape)
    array = values.astype(DTYPES[name])
    _, arrays = parse(dump({"x": array}))
    found = arrays["x"]
    assert isinstance(found, np.ndarray)
    assert found.flags.writeable
    assert found.dtype == array.dtype
    assert found.shape == shape
    assert found.tobytes() == array.tobytes()


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg", "unsafe_rbg"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 2)])
def test_typed_keys_come_back(impl, shape):
    keys = jax.random.split(jax.random.key(7, impl=impl), shape)
    found = parse(dump({"x": keys}))[1]["x"]
    assert found.dtype == keys.dtype
    assert found.shape == shape
    assert (jax.random.key_data(found) == jax.random.key_data(keys)).all()


@given(
    st.dictionaries(
        st.text(),
        hnp.arrays(
            st.sampled_from(["int8", "float64", "complex64", ">i4", ">f8", "bool"]),
            hnp.array_shapes(min_dims=0, min_side=0),
        ),
        max_size=5,
    )
)
def test_names_and_values_come_back(arrays):
    meta = {"n": len(arrays), "nan": None}
    header, found = parse(dump(arrays, meta))
    assert header.meta == meta
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        little = array.astype(array.dtype.newbyteorder("<"))
        assert found[name].tobytes() == little.tobytes()
        assert found[name].shape == array.shape


def test_layout_is_aligned_and_raw():
    data = dump(SAMPLE)
    header, _ = parse(data)
    assert header.start % file_format.ALIGNMENT == 0
    for item in header.entries:
        assert item.offset % file_format.ALIGNMENT == 0
        begin = header.start + item.offset
        assert data[begin : begin + item.nbytes] == SAMPLE[item.name].tobytes()


def test_strided_and_fortran_arrays_are_stored_in_c_order():
    base = np.arange(24).reshape(4, 6)
    for array in (base[::2, ::-1], np.asfortranarray(base), base.T):
        assert np.array_equal(parse(dump({"x": array}))[1]["x"], array)


@pytest.mark.parametrize(
    "array", [np.array([object()]), np.array(["a"]), np.zeros(2, "f4,i4")]
)
def test_other_dtypes_are_refused_on_writing(array):
    with pytest.raises(TypeError, match="'x' has dtype"):
        dump({"x": array})


def test_an_oversized_header_is_refused_before_anything_is_written():
    file = io.BytesIO()
    with pytest.raises(ValueError, match="store numbers in arrays"):
        file_format.write_container(file, {"text": "x" * file_format.MAX_HEADER}, {})
    with pytest.raises(ValueError, match="the limit is 10"):
        file_format.write_container(file, {}, SAMPLE, limit=10)
    assert file.getvalue() == b""


def test_writing_streams_without_a_second_copy():
    arrays = {str(i): np.zeros(2**22, np.uint8) for i in range(8)}

    class Sink(io.BytesIO):
        def write(self, data):
            return memoryview(data).nbytes

    tracemalloc.start()
    file_format.write_container(Sink(), {}, arrays)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


@pytest.mark.parametrize("exact", [True, False])
def test_every_truncation_is_refused(exact):
    data = dump(SAMPLE, {"text": "hello"})
    for length in range(len(data)):
        with pytest.raises(file_format.ContainerError, match=r"some\.file"):
            parse(data[:length], exact)
    with pytest.raises(file_format.ContainerError):
        parse(data + b"x", exact)


def test_every_flipped_bit_is_refused():
    data = dump(SAMPLE, {"text": "hello"})
    rng = random.Random(0)
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 1 << rng.randrange(8)
        with pytest.raises(file_format.ContainerError, match=r"some\.file"):
            parse(bytes(damaged))


@given(st.binary(max_size=300))
def test_any_bytes_are_refused(noise):
    for data in (noise, file_format.MAGIC + noise, forge_text(noise)):
        with pytest.raises(file_format.ContainerError):
            parse(data, exact=False)


class Payload:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return (open, (self.marker, "w"))


def test_a_pickle_runs_nothing(tmp_path):
    marker = tmp_path / "marker"
    evil = pickle.dumps(Payload(str(marker)))
    with pytest.raises(file_format.ContainerError, match="not a jaxrig container"):
        parse(evil)
    with pytest.raises(file_format.ContainerError, match="not JSON"):
        parse(forge_text(evil))
    assert not marker.exists()
    pickle.loads(evil).close()  # the payload works where it is let run
    assert marker.exists()


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (entry(dtype="object"), "unknown dtype"),
        (entry(dtype="O"), "unknown dtype"),
        (entry(shape=[5]), "4 bytes for int8"),
        (entry(shape=[-4]), "not a shape"),
        (entry(shape=[True, 4]), "not a shape"),
        (entry(shape=[4.0]), "not a shape"),
        (entry(shape=[10**4000] * 64), "not a shape"),
        (entry(shape=[1] * 65 + [4]), "not a shape"),
        (entry(offset=64), "overlap or gap"),
        (entry(offset=-64), "overlap or gap"),
        (entry(shape=[2**40], nbytes=2**40), "declares"),
        (entry(shape=[0, 2**62, 2**62], nbytes=0), "entry 'a'"),
        (entry(shape=[1] * 30 + [2, 2], nbytes=4, dtype="bool"), None),
        (entry(key="no such"), "unrecognized PRNG"),
        (entry(key="rbg"), "PRNG key data"),
        (entry(key=3), "does not describe an array"),
        (entry(name=None), "does not describe an array"),
        ([], "does not describe an array"),
    ],
)
def test_hostile_entries_are_refused_without_memory(item, message):
    payload = bytes(4) + struct.pack("<I", zlib.crc32(bytes(4)))
    if isinstance(item, dict) and item["nbytes"] == 0:
        payload = bytes(4)
    tracemalloc.start()
    try:
        if message is None:
            assert parse(forge([item], payload))[1]["a"].size == 4
        else:
            with pytest.raises(file_format.ContainerError, match=message):
                parse(forge([item], payload))
        assert tracemalloc.get_traced_memory()[1] < 2**23
    finally:
        tracemalloc.stop()


def test_overlapping_and_repeated_entries_are_refused():
    payload = bytes(200)
    with pytest.raises(file_format.ContainerError, match="overlap"):
        parse(forge([entry(), entry(name="b", offset=0)], payload), exact=False)
    with pytest.raises(file_format.ContainerError, match="same name"):
        parse(forge([entry(), entry(offset=64)], payload), exact=False)


@pytest.mark.parametrize(
    "text", [b"[" * 10**6, b"[]", b"{}", b'{"meta": 1, "arrays": []}', b"1" * 10**5]
)
def test_hostile_headers_are_refused(text):
    with pytest.raises(file_format.ContainerError, match="header"):
        parse(forge_text(text))


def test_a_header_longer_than_the_file_is_not_allocated():
    data = file_format.PREFIX.pack(file_format.MAGIC, file_format.VERSION, 2**60, 0)
    tracemalloc.start()
    with pytest.raises(file_format.ContainerError, match="header of"):
        parse(data)
    with pytest.raises(file_format.ContainerError, match="header of"):
        file_format.read_header(io.BytesIO(data), "x", 2**62, exact=False)
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


def test_an_unknown_version_says_so():
    data = bytearray(dump(SAMPLE))
    data[len(file_format.MAGIC)] = file_format.VERSION + 1
    with pytest.raises(
        file_format.ContainerError, match=f"version {file_format.VERSION + 1}"
    ):
        parse(bytes(data))


text = st.text(st.characters(exclude_categories=()))  # lone surrogates too
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.complex_numbers()
    | text
    | st.integers(-(10**5000), 10**5000)
)
numpy_dtypes = st.sampled_from(
    [dtype for dtype in DTYPES.values() if dtype.isbuiltin == 1]
)
arrays = hnp.arrays(numpy_dtypes, hnp.array_shapes(min_dims=0, min_side=0))
numpy_scalars = numpy_dtypes.flatmap(lambda d: hnp.from_dtype(d).map(d.type))
hashables = scalars | st.binary() | st.tuples(scalars, st.binary())
leaves = scalars | st.binary() | arrays | numpy_scalars
nested = st.recursive(
    leaves | st.sets(hashables) | st.frozensets(hashables),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(scalars, inner, max_size=4)
    ),
    max_leaves=12,
)


def same(a, b):
    """Equal values and equal types all the way down; nan equals nan."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray | np.generic):
        return (a.dtype, a.shape) == (b.dtype, b.shape) and a.tobytes() == b.tobytes()
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return same(list(a.items()), list(b.items()))
    if isinstance(a, set | frozenset):
        return sorted(map(written, a)) == sorted(map(written, b))
    return written(a) == written(b)


def written(value):
    if isinstance(value, tuple):
        return str([written(item) for item in value])
    return hex(value) if type(value) is int else repr(value)


def through_json(data):
    node, arrays = file_format.encode(data)
    arrays = {name: np.asarray(array) for name, array in arrays.items()}
    return file_format.decode(json.loads(json.dumps(node)), arrays)


@settings(max_examples=300)
@given(nested)
def test_data_comes_back_with_its_types(data):
    assert same(through_json(data), data)


@pytest.mark.parametrize(
    ("data", "where", "kind"),
    [
        ({"a": [1, object()]}, "data['a'][1]", "object"),
        ([bytearray(b"x")], "data[0]", "bytearray"),
        (np.array([object()]), "data", "object"),
        ({"m": np.ma.masked_array([1, 2], [True, False])}, "data['m']", "MaskedArray"),
        (np.array(["text"]), "data", "<U4"),
        ({(1, 2): 3}, "data", "tuple"),
        ([lambda: 0], "data[0]", "function"),
        ([OrderedDict()], "data[0]", "OrderedDict"),
        ([signal.SIGINT], "data[0]", "Signals"),
    ],
)
def test_other_types_are_refused_by_place_and_name(data, where, kind):
    with pytest.raises(TypeError) as error:
        file_format.encode(data)
    assert str(error.value).startswith(where + " ")
    assert kind in str(error.value)


def test_the_deepest_nesting_that_is_written_is_read():
    data = 0
    for _ in range(file_format.MAX_DEPTH):
        data = {"x": data}
    assert through_json(data) == data
    with pytest.raises(ValueError, match="levels deep"):
        file_format.encode([data])
    node = 0
    for _ in range(10 * file_format.MAX_DEPTH):
        node = ["list", [node]]
    with pytest.raises(ValueError, match="levels deep"):
        file_format.decode(node, {})
    cycle = []
    cycle.append(cycle)
    with pytest.raises(ValueError, match="contains itself"):
        file_format.encode(cycle)


def test_sets_have_one_order():
    words = [f"word {i}" for i in range(50)]
    one = {frozenset(words), "z", 1, (2, frozenset(words))}
    two = {(2, frozenset(words[::-1])), 1, "z", frozenset(words[::-1])}
    assert file_format.encode(one)[0] == file_format.encode(two)[0]


@pytest.mark.parametrize(
    "node",
    [
        {},
        [],
        ["list", 3],
        ["set", [["list", []]]],
        ["dict", [[1]]],
        ["dict", [[["list", []], 1]]],
        ["dict", [3]],
        ["array", "9"],
        ["array", 0],
        ["scalar", "a"],
        ["bytes", "key"],
        ["scalar", "key"],
        ["int", "zz"],
        ["int", 5],
        ["complex", 1, "x"],
        ["str", "0"],
        ["str", "ff"],
        ["object", "os.system"],
    ],
)
def test_malformed_nodes_are_value_errors(node, key):
    with pytest.raises(ValueError, match=r"."):
        file_format.decode(node, {"a": np.zeros(2), "key": key})
