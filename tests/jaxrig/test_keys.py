"""Oracle: uniqueness, and independence of batch size."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp

from jaxrig.dtypes import DTYPES, is_key, smallest_dtype
from jaxrig.keys import batch_keys, hashed_key, mix, named_key


def data(keys):
    typed = jnp.issubdtype(keys.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(keys) if typed else keys)


@pytest.fixture(params=[jax.random.key, jax.random.PRNGKey], ids=["typed", "raw"])
def parent(request):
    return request.param(42)


def test_item_key_does_not_depend_on_batch_size(parent):
    np.testing.assert_array_equal(
        data(batch_keys(parent, 5)), data(batch_keys(parent, 100))[:5]
    )


def test_all_keys_differ_and_keep_their_kind(parent):
    keys = batch_keys(parent, 512)
    assert len(np.unique(data(keys), axis=0)) == 512
    assert keys.dtype == parent.dtype
    with pytest.raises(ValueError, match="count is -1"):
        batch_keys(parent, -1)


def test_named_keys_are_stable_and_distinct(parent):
    names = ["init", "data", "noise", "policy"]
    rows = [tuple(data(named_key(parent, n)).tolist()) for n in names]
    assert len(set(rows)) == len(names)
    assert tuple(data(named_key(parent, "init")).tolist()) == rows[0]


def murmur(number):
    """The finalizer of MurmurHash3, in plain integers."""
    word = 2**32 - 1
    number = number + 0x9E3779B9 & word
    number = (number ^ number >> 16) * 0x85EBCA6B & word
    number = (number ^ number >> 13) * 0xC2B2AE35 & word
    return number ^ number >> 16


def test_mix_is_the_named_hash():
    numbers = np.random.default_rng(0).integers(0, 2**32, 1000)
    numbers[:3] = 0, 1, 2**32 - 1
    found = mix(jnp.asarray(numbers.astype(np.uint32)))
    assert found.tolist() == [murmur(n) for n in numbers.tolist()]


@given(hnp.arrays(np.float64, hnp.array_shapes(min_dims=0, min_side=0)))
def test_floats_keep_specials_and_the_relative_tolerance(array):
    wide = array.astype(smallest_dtype(array)).astype(np.float64)
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


@pytest.mark.parametrize("dtype", [*DTYPES, "object", "U3", "datetime64[s]"])
def test_empty_arrays_keep_their_dtype(dtype):
    array = np.empty((0, 3), DTYPES.get(dtype, dtype))
    assert smallest_dtype(array) == array.dtype


def test_every_dtype_of_jax_has_its_name_here():
    for name in ["bool_", "int4", "uint4", "bfloat16", "float8_e5m2", "complex64"]:
        assert np.dtype(getattr(jnp, name)).name in DTYPES
    assert all(dtype.itemsize and not dtype.hasobject for dtype in DTYPES.values())


def test_keys_are_told_from_numbers(key):
    assert is_key(key.dtype)
    assert is_key(jax.ShapeDtypeStruct((2,), key.dtype).dtype)
    assert not is_key(jax.random.key_data(key).dtype)
    assert not is_key(np.dtype("O"))


def test_hashed_keys_draw_like_keys(parent):
    key = hashed_key(parent)
    one, two = jax.random.split(key)
    drawn = np.asarray(jax.random.normal(one, (2, 200, 200)))
    # Four standard errors of mean, variance and correlation over 40,000 numbers.
    assert np.all(np.abs(drawn.mean((1, 2))) < 0.02)
    assert np.all(np.abs(drawn.var((1, 2)) - 1) < 0.03)
    beside = [drawn[1], np.roll(drawn[0], 1, 0), np.roll(drawn[0], 1, 1)]
    beside.append(np.asarray(jax.random.normal(two, (200, 200))))
    others = [np.corrcoef(drawn[0].ravel(), each.ravel())[0, 1] for each in beside]
    assert np.all(np.abs(others) < 0.02)
    folded = [data(jax.random.fold_in(key, i)) for i in range(3)]
    assert len(np.unique([data(one), data(two), *folded], axis=0)) == 5
    with pytest.raises(ValueError, match="words of 32 bits, not of 16"):
        jax.random.bits(key, (2,), np.uint16)
