import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from jaxrig.dtypes import DTYPES, is_key, shrink, smallest_dtype

INTEGERS = [np.dtype(f"{s}int{b}") for b in (8, 16, 32, 64) for s in ("", "u")]


@pytest.mark.parametrize(
    ("values", "dtype", "expected", "saved"),
    [
        ([1, 2, 3, 4, 5], "int64", "int8", 35),
        ([1000, 2000, 3000], "int64", "int16", 18),
        ([1.1, 2.2, 3.3], "float64", "float32", 12),
        ([0, 200], "int64", "uint8", 14),
        ([-1, 200], "int64", "int16", 12),
        ([0, 2**63], "uint64", "uint64", 0),
        ([0, 2**32 - 1], "uint64", "uint32", 8),
        ([-(2**63), 2**63 - 1], "int64", "int64", 0),
        ([1, 2], "uint8", "uint8", 0),
        ([True, False], "bool", "bool", 0),
        ([1e-3], "float32", "float32", 0),
        ([1.0], "complex128", "complex128", 0),
    ],
)
def test_documented_examples(values, dtype, expected, saved):
    array = np.array(values, dtype)
    small = shrink(array)
    assert small.dtype == expected
    assert array.nbytes - small.nbytes == saved
    assert (small is array) == (saved == 0)


@given(
    hnp.arrays(st.sampled_from(INTEGERS), hnp.array_shapes(min_dims=0, min_side=0)),
)
def test_integers_are_exact_and_no_narrower_dtype_holds_them(array):
    small = shrink(array)
    assert small.shape == array.shape
    assert small.tolist() == array.tolist()
    if array.size:
        for dtype in INTEGERS:
            fits = array.astype(dtype).tolist() == array.tolist()
            # A cast may wrap and come back equal only through the same values.
            assert not (fits and dtype.itemsize < small.itemsize)


@given(hnp.arrays(np.float64, hnp.array_shapes(min_dims=0, min_side=0)))
def test_floats_keep_specials_and_the_relative_tolerance(array):
    small = shrink(array)
    wide = small.astype(np.float64)
    assert np.array_equal(np.isnan(wide), np.isnan(array))
    assert np.array_equal(np.isinf(wide), np.isinf(array))
    assert np.array_equal(wide == 0, array == 0)
    assert np.array_equal(np.signbit(wide), np.signbit(array))
    finite = np.isfinite(array)
    error = np.abs(wide[finite] - array[finite])
    assert (error <= 1e-6 * np.abs(array[finite])).all()


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        (np.nan, True),
        (-np.inf, True),
        (1e39, False),
        (3.4028236e38, False),
        (1e-50, False),
        (1.2345678e-42, False),  # subnormal in float32: too few digits are left
        (2.0**-149, True),
        (-0.0, True),
    ],
)
def test_edges_of_float32(value, fits):
    with warnings.catch_warnings(), np.errstate(all="raise"):
        array = np.array([1.0, value])
        assert (smallest_dtype(array) == np.float32) == fits
        shrink(array)


@pytest.mark.parametrize("dtype", [*DTYPES, "object", "U3", "datetime64[s]"])
def test_empty_arrays_are_returned_as_they_are(dtype):
    array = np.empty((0, 3), DTYPES.get(dtype, dtype))
    assert shrink(array) is array


def test_every_dtype_of_jax_has_its_name_here():
    for name in ["bool_", "int4", "uint4", "bfloat16", "float8_e5m2", "complex64"]:
        assert np.dtype(getattr(jnp, name)).name in DTYPES
    assert all(dtype.itemsize and not dtype.hasobject for dtype in DTYPES.values())


def test_keys_are_told_from_numbers(key):
    assert is_key(key.dtype)
    assert is_key(jax.ShapeDtypeStruct((2,), key.dtype).dtype)
    assert not is_key(jax.random.key_data(key).dtype)
    assert not is_key(np.dtype("O"))
