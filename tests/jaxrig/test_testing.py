"""Oracle: functions that break each promise on purpose."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrig import testing


def test_trees_close_names_the_leaf():
    tree = {"a": [jnp.ones(2), jnp.zeros(3)]}
    testing.assert_trees_close(tree, {"a": [jnp.ones(2), jnp.zeros(3)]})
    with pytest.raises(AssertionError, match=r"tree\['a'\]\[1\]"):
        testing.assert_trees_close(tree, {"a": [jnp.ones(2), jnp.full(3, 1e-7)]})
    testing.assert_trees_close(tree, {"a": [jnp.ones(2), jnp.full(3, 1e-7)]}, atol=1e-6)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ([jnp.ones(2)], "structures differ"),
        ((jnp.ones(2, jnp.int32),), r"tree\[0\]: float32\[2\] and int32\[2\]"),
        ((jnp.ones(3),), r"float32\[2\] and float32\[3\]"),
    ],
    ids=["structure", "dtype", "shape"],
)
def test_trees_of_other_kinds_are_not_close(other, message):
    with pytest.raises(AssertionError, match=message):
        testing.assert_trees_close((jnp.ones(2),), other)


def test_keys_half_precision_nan_and_static_leaves_compare():
    tree = (jax.random.key(1), jnp.ones(2, jnp.bfloat16), jnp.asarray(jnp.nan), "x")
    testing.assert_trees_close(tree, tree)
    with pytest.raises(AssertionError, match=r"tree\[0\]"):
        testing.assert_trees_close(tree, (jax.random.key(2), *tree[1:]))
    with pytest.raises(AssertionError, match="'x' is not 'y'"):
        testing.assert_trees_close(tree, (*tree[:3], "y"))
    testing.assert_trees_close([float("nan")], [float("nan")])
    with pytest.raises(AssertionError, match="is not"):
        testing.assert_trees_close([jnp.float32(1)], [1.0])


def test_one_trace_passes_and_fails():
    results = testing.assert_one_trace(lambda x: x + 1, (jnp.ones(2),), (jnp.zeros(2),))
    np.testing.assert_array_equal(results[1], [1, 1])
    with pytest.raises(AssertionError, match=r"x: float32\[2\] -> float32\[3\]"):
        testing.assert_one_trace(lambda x: x + 1, (jnp.ones(2),), (jnp.zeros(3),))


def test_vmap_equals_loop_passes_and_fails():
    xs = jnp.arange(6.0).reshape(3, 2)
    testing.assert_vmap_equals_loop(lambda x, y: x.sum() * y, xs, jnp.arange(3.0))
    testing.assert_vmap_equals_loop(lambda x, mode: x * len(mode), xs, "static")
    with pytest.raises(AssertionError, match="no rows"):
        testing.assert_vmap_equals_loop(lambda x: x, jnp.zeros(0))

    traces = []

    def depends_on_the_trace(x):
        traces.append(1)
        return x + len(traces)

    with pytest.raises(AssertionError):
        testing.assert_vmap_equals_loop(depends_on_the_trace, jnp.arange(3.0))
