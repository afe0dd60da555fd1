import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from jaxrig.dtypes import DTYPES
from jaxrig.plain import MAX_DEPTH, decode, encode, pack_scalar, unpack_scalar

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
    node, arrays = encode(data)
    arrays = {name: np.asarray(array) for name, array in arrays.items()}
    return decode(json.loads(json.dumps(node)), arrays)


@settings(max_examples=300)
@given(nested)
def test_data_comes_back_with_its_types(data):
    assert same(through_json(data), data)


@given(scalars)
def test_scalars_come_back(value):
    assert same(unpack_scalar(json.loads(json.dumps(pack_scalar(value)))), value)


def test_jax_arrays_and_keys_are_taken_as_they_are(key):
    node, arrays = encode([jnp.arange(3), key])
    assert decode(node, arrays)[1] is key
    assert isinstance(arrays["0"], jax.Array)


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
    ],
)
def test_other_types_are_refused_by_place_and_name(data, where, kind):
    with pytest.raises(TypeError) as error:
        encode(data)
    assert str(error.value).startswith(where + " ")
    assert kind in str(error.value)


def test_subclasses_are_not_taken_for_their_parents():
    class Number(int):
        pass

    class Table(dict):
        pass

    for value in (Number(3), Table()):
        with pytest.raises(TypeError, match=type(value).__name__):
            encode({"x": value})


def test_a_list_that_holds_itself_is_refused():
    data = []
    data.append(data)
    with pytest.raises(ValueError, match="holds itself"):
        encode(data)


def test_the_deepest_nesting_that_is_written_is_read():
    data = 0
    for _ in range(MAX_DEPTH):
        data = {"x": data}
    assert through_json(data) == data
    with pytest.raises(ValueError, match="levels deep"):
        encode([data])


def test_sets_have_one_order():
    words = [f"word {i}" for i in range(50)]
    one = {frozenset(words), "z", 1, (2, frozenset(words))}
    two = {(2, frozenset(words[::-1])), 1, "z", frozenset(words[::-1])}
    assert encode(one)[0] == encode(two)[0]


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
        decode(node, {"a": np.zeros(2), "key": key})


def test_hostile_depth_is_a_value_error():
    node = 0
    for _ in range(10 * MAX_DEPTH):
        node = ["list", [node]]
    with pytest.raises(ValueError, match="levels deep"):
        decode(node, {})
