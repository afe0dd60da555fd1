"""Oracle: the first Adam step is minus the learning rate times the gradient's sign."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxrig.learn.optimizer import improve, make_optimizer, start_optimizer


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
