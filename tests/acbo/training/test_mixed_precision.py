"""Oracle: dtypes."""

import jax
import jax.numpy as jnp
import pytest

from acbo.training import mixed_precision


def test_the_policy_casts_by_role():
    policy = mixed_precision.create_policy(compute_dtype=jnp.float16)
    tree = {"weight": jnp.ones(2), "count": jnp.arange(2), "name": "x"}
    cast = policy.cast_to_compute(tree)
    assert cast["weight"].dtype == jnp.float16
    assert cast["count"].dtype == jnp.int32
    assert cast["name"] == "x"
    assert policy.cast_to_output(cast)["weight"].dtype == jnp.float32
    assert policy.cast_to_param(cast)["weight"].dtype == jnp.float32
    assert hash(policy) == hash(mixed_precision.create_policy(jnp.float16))
    jax.jit(policy.cast_to_compute)({"weight": jnp.ones(2)})


def test_integers_are_refused():
    with pytest.raises(ValueError, match="no floating-point type"):
        mixed_precision.create_policy(compute_dtype=jnp.int8)
