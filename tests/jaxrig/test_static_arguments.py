"""Oracle: round trips, and equality of what is frozen."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxrig.static_arguments import freeze, is_hashable, thaw

scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
hashables = st.recursive(
    scalars,
    lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3),
    max_leaves=5,
)
values = st.recursive(
    hashables,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.sets(hashables, max_size=3)
        | st.dictionaries(hashables, inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=30)
@given(values)
def test_thaw_reverses_freeze(value):
    frozen = freeze(value)
    assert is_hashable(frozen)
    back = thaw(frozen)
    assert back == value
    assert type(back) is type(value)


def test_list_tuple_and_set_of_the_same_items_differ():
    assert len({freeze([1]), freeze((1,)), freeze({1}), freeze(frozenset([1]))}) == 4


def test_arrays_freeze_by_value_shape_and_dtype():
    a = np.arange(6, dtype=np.int32).reshape(2, 3)
    assert freeze(a) == freeze(a.copy())
    assert freeze(a) != freeze(a.reshape(3, 2))
    assert freeze(a) != freeze(a.astype(np.int64))
    np.testing.assert_array_equal(thaw(freeze(a)), a)
    half = jnp.ones(3, jnp.bfloat16)
    assert thaw(freeze(half)).dtype == half.dtype


def test_what_cannot_be_frozen_is_named():
    with pytest.raises(TypeError, match="bytearray"):
        freeze([bytearray(b"x")])
    with pytest.raises(TypeError, match="dtype object"):
        freeze(np.asarray([object()]))
