"""Oracle: the first Adam step is minus the learning rate times the gradient's sign."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrig.learn.optimizer import (
    descend,
    improve,
    make_optimizer,
    start_optimizer,
)


class Model(eqx.Module):
    weight: jax.Array
    steps: jax.Array
    activation: object = jnp.tanh


def loss(model):
    return (model.weight**2).sum(), "extra"


def test_first_step_norm_and_what_is_left_alone():
    model = Model(jnp.asarray([3.0, -4.0]), jnp.asarray(7))
    optimizer = make_optimizer(0.1, max_grad_norm=1.0)
    memory = start_optimizer(optimizer, model)
    after, _, extras, norm = improve(optimizer, loss, model, memory)
    np.testing.assert_allclose(after.weight, [2.9, -3.9], rtol=1e-5)
    np.testing.assert_allclose(norm, 10.0, rtol=1e-6)  # before clipping: |(6, -8)|
    assert extras == "extra"
    assert int(after.steps) == 7
    assert after.activation is jnp.tanh


def test_descending_over_batches_equals_one_improvement_after_another():
    model = Model(jnp.asarray([3.0, -4.0]), jnp.asarray(7))
    optimizer = make_optimizer(0.1, max_grad_norm=1.0)
    memory = start_optimizer(optimizer, model)
    of_batch = lambda model, shift: (((model.weight - shift) ** 2).sum(), shift)
    shifts = jnp.asarray([0.0, 1.0, 2.0])
    found, _, extras, norms = descend(optimizer, of_batch, model, memory, shifts, 3)
    expected, loop_norms = model, []
    for shift in shifts:
        expected, memory, _, norm = improve(
            optimizer, lambda m, s=shift: of_batch(m, s), expected, memory
        )
        loop_norms.append(norm)
    np.testing.assert_allclose(found.weight, expected.weight, rtol=1e-6)
    np.testing.assert_allclose(norms, loop_norms, rtol=1e-6)
    np.testing.assert_array_equal(extras, shifts)
    assert found.activation is jnp.tanh


def test_coarse_parameters_are_refused():
    model = Model(jnp.ones(2, jnp.bfloat16), jnp.asarray(7))
    with pytest.raises(ValueError, match=r"policy\.weight is bfloat16.*float32"):
        start_optimizer(make_optimizer(0.1, 1.0), model)
