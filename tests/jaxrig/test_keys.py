"""Oracle: uniqueness, and independence of batch size."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrig.keys import batch_keys, mix, named_key, worker_keys


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
    keys = worker_keys(parent, 8, 64)
    flat = data(keys).reshape(-1, 2)
    assert len(np.unique(flat, axis=0)) == 8 * 64
    assert keys.dtype == parent.dtype
    assert keys.shape[:2] == (8, 64)


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
