"""One gradient step, the same for every learner: clip the norm, then Adam."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PyTree


def make_optimizer(
    learning_rate: float, max_grad_norm: float
) -> optax.GradientTransformation:
    """Adam with the global gradient norm clipped first."""
    return optax.chain(
        optax.clip_by_global_norm(max_grad_norm), optax.adam(learning_rate)
    )


def start_optimizer(optimizer: optax.GradientTransformation, policy: PyTree) -> PyTree:
    """The optimizer's memory for the trainable arrays of a policy."""
    return optimizer.init(eqx.filter(policy, eqx.is_inexact_array))


def improve(
    optimizer: optax.GradientTransformation,
    loss: Callable[[PyTree], tuple[Float[Array, ""], Any]],
    policy: PyTree,
    memory: PyTree,
) -> tuple[PyTree, PyTree, Any, Float[Array, ""]]:
    """One step down the gradient of `loss(policy) -> (value, extras)`.

    Returns policy, memory, extras and the gradient's norm before clipping.
    """
    gradients, extras = eqx.filter_grad(loss, has_aux=True)(policy)
    parameters = eqx.filter(policy, eqx.is_inexact_array)
    with jax.numpy_dtype_promotion("standard"):  # optax mixes integers and floats
        updates, memory = optimizer.update(gradients, memory, parameters)
    squares = sum(jnp.sum(jnp.square(g)) for g in jax.tree.leaves(gradients))
    return eqx.apply_updates(policy, updates), memory, extras, jnp.sqrt(squares)
