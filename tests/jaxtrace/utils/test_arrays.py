"""Oracle: the same functions compiled or not, batched or row by row."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.config import configure, reset_config
from jaxtrace.utils.arrays import asarray, maybe_jit, maybe_vmap, to_device, to_numpy


@pytest.fixture(autouse=True)
def defaults():
    yield
    reset_config()


def test_arrays_go_to_the_chosen_device_and_back():
    configure(device="cpu", device_id=5)
    placed = to_device({"a": np.arange(3)})
    assert placed["a"].devices() == {jax.devices()[5]}
    assert to_device(np.ones(2), jax.devices()[1]).devices() == {jax.devices()[1]}
    assert type(to_numpy(placed["a"])) is np.ndarray
    np.testing.assert_array_equal(to_numpy(placed["a"]), [0, 1, 2])
    assert asarray([1, 2], np.float32).dtype == jnp.float32


def test_jit_follows_the_setting():
    double = lambda x: 2 * x
    assert maybe_jit(double, False) is double
    configure(use_jax_jit=False)
    assert maybe_jit(double) is double
    assert maybe_jit(double, True) is not double
    power = maybe_jit(lambda x, n: x**n, True, static_argnums=[1])
    assert power(jnp.array(3.0), 2) == 9


def test_vmap_equals_the_loop():
    def function(x, table, y):
        return {"sum": x + y, "first": table[0] * x}

    x, y, table = jnp.arange(4.0), jnp.ones((2, 4)), jnp.array([3.0, 1.0])
    axes = (0, None, 1)
    fast = maybe_vmap(function, True, axes)(x, table, y)
    slow = maybe_vmap(function, False, axes)(x, table, y)
    jax.tree.map(np.testing.assert_array_equal, fast, slow)
    configure(use_jax_vmap=False)
    shapes = maybe_vmap(lambda a: a, in_axes=1, out_axes=1)(y)
    np.testing.assert_array_equal(shapes, y)
    with pytest.raises(ValueError, match=r"one length, here: \[2, 4\]"):
        maybe_vmap(lambda a, b: a)(x, table)
