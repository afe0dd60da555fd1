import io
import json
import pickle
import random
import signal
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
from jaxrig.file_format import Container, ContainerError


def dump(arrays, meta=None):
    file = io.BytesIO()
    file_format.write_container(file, meta or {}, arrays)
    return file.getvalue()


def parse(data):
    container = Container(io.BytesIO(data), "some.file")
    return container.meta, dict(container.arrays())


def forge(header, content=bytes(4)):
    """A container whose header is what an attacker writes, with right checksums."""
    blocks = [header if isinstance(header, bytes) else header.encode(), content]
    sums = [zlib.crc32(block).to_bytes(4, "little") for block in blocks]
    start = file_format.MAGIC + len(blocks[0]).to_bytes(8, "little")
    return start + blocks[0] + sums[0] + blocks[1] + sums[1]


def entry(**changes):
    fields = {"name": "a", "dtype": "int8", "shape": [4], "key": None}
    return json.dumps({"meta": {}, "arrays": [fields | changes]})


SAMPLE = {
    "a": np.arange(300, dtype=np.int16).reshape(3, 100),
    "b": np.array(1.5),
    "c": np.zeros((0, 3), np.float32),
    "d": np.array([True, False, True]),
}


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_comes_back(name):
    for shape in ((), (0,), (5,), (2, 0, 3), (3, 4, 5)):
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
def test_typed_keys_come_back(impl):
    one = jax.random.key(7, impl=impl)
    for keys in (one, jax.random.split(one, (2, 2))):
        found = parse(dump({"x": keys}))[1]["x"]
        assert found.dtype == keys.dtype
        assert found.shape == keys.shape
        same = jax.random.key_data(found) == jax.random.key_data(keys)
        assert np.asarray(same).all()


@settings(max_examples=30)
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
    found_meta, found = parse(dump(arrays, meta))
    assert found_meta == meta
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        little = array.astype(array.dtype.newbyteorder("<"))
        assert found[name].tobytes() == little.tobytes()
        assert found[name].shape == array.shape


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


def test_writing_streams_without_a_second_copy(tmp_path):
    arrays = {str(i): np.zeros(2**22, np.uint8) for i in range(8)}
    tracemalloc.start()
    with open(tmp_path / "a", "wb") as file:
        file_format.write_container(file, {}, arrays)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


def test_every_truncation_and_every_flipped_bit_is_refused():
    data, rng = dump(SAMPLE, {"text": "hello"}), random.Random(0)
    wrong = [data + b"x", *(data[:end] for end in range(len(data)))]
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 1 << rng.randrange(8)
        wrong.append(bytes(damaged))
    for each in wrong:
        with pytest.raises(ContainerError, match=r"some\.file"):
            parse(each)


@given(st.binary(max_size=300))
def test_any_bytes_are_refused(noise):
    for data in (noise, file_format.MAGIC + noise, forge(noise)):
        with pytest.raises(ContainerError):
            parse(data)


class Payload:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return (open, (self.marker, "w"))


def test_a_pickle_runs_nothing(tmp_path):
    marker = tmp_path / "marker"
    evil = pickle.dumps(Payload(str(marker)))
    for data in (evil, forge(evil), forge(entry(dtype="object"), evil)):
        with pytest.raises(ContainerError, match="not a sound container"):
            parse(data)
    assert not marker.exists()
    pickle.loads(evil).close()  # the payload works where it is let run
    assert marker.exists()


def test_what_is_forged_is_sound_unless_changed():
    assert parse(forge(entry(shape=[1, 2, 2])))[1]["a"].shape == (1, 2, 2)


@pytest.mark.parametrize(
    "header",
    [
        entry(dtype="object"),
        entry(shape=[5]),
        entry(shape=[-4]),
        entry(shape=[-2, -2]),
        entry(shape=[4.0]),
        entry(shape=["4"]),
        entry(shape=[10**400] * 64),
        entry(shape=[2**40]),
        entry(shape=[1] * 65 + [4]),
        entry(shape=[0, 2**62, 2**62]),
        entry(key="no such"),
        entry(key="rbg"),
        entry(key=3),
        "[" * 10**6,
        "[]",
        "{}",
        '{"meta": 1, "arrays": []}',
        '{"meta": {}, "arrays": [[]]}',
    ],
)
def test_hostile_headers_are_refused_without_memory(header):
    data = forge(header)
    tracemalloc.start()
    try:
        with pytest.raises(ContainerError, match=r"some\.file"):
            parse(data)
        assert tracemalloc.get_traced_memory()[1] < 2**23
    finally:
        tracemalloc.stop()


def test_a_header_longer_than_the_file_is_not_allocated():
    tracemalloc.start()
    with pytest.raises(ContainerError, match="a header of"):
        parse(file_format.MAGIC + (2**60).to_bytes(8, "little"))
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.complex_numbers()
    | st.text()
    | st.integers(-(10**300), 10**300)
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


@settings(max_examples=40)
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


def test_data_that_contains_itself_is_refused():
    cycle = []
    cycle.append(cycle)
    with pytest.raises(ValueError, match="contains itself"):
        file_format.encode(cycle)


def test_sets_have_one_order():
    words = [f"word {i}" for i in range(50)]
    one, two = {*words, 1}, {1, *words[::-1]}
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
        ["bytes", "key"],
        ["int", "zz"],
        ["int", 5],
        ["complex", 1, "x"],
        ["object", "os.system"],
    ],
)
def test_malformed_nodes_are_value_errors(node, key):
    with pytest.raises(ValueError, match=r"."):
        file_format.decode(node, {"a": np.zeros(2), "key": key})
