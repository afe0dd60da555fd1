"""Gradient descent, the same for every learner: clip the norm, then Adam."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PyTree

Loss = Callable[[Any, Any], tuple[Float[Array, ""], Any]]


def make_optimizer(
    learning_rate: float, max_grad_norm: float
) -> optax.GradientTransformation:
    """Adam with the global gradient norm clipped first."""
    return optax.chain(
        optax.clip_by_global_norm(max_grad_norm), optax.adam(learning_rate)
    )


def start_optimizer(optimizer: optax.GradientTransformation, policy: PyTree) -> PyTree:
    """The optimizer's memory for the trainable (floating-point) arrays of a policy."""
    trainable = eqx.filter(policy, eqx.is_inexact_array)
    for path, leaf in jax.tree_util.tree_flatten_with_path(trainable)[0]:
        if jnp.finfo(leaf.dtype).bits < 32:
            raise ValueError(
                f"policy{jax.tree_util.keystr(path)} is {leaf.dtype}, too coarse for "
                "small updates to add up; keep parameters in float32 and cast them "
                "inside sample and evaluate"
            )
    return optimizer.init(trainable)


def improve(
    optimizer: optax.GradientTransformation,
    loss: Callable[[Any], tuple[Float[Array, ""], Any]],
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


def descend(
    optimizer: optax.GradientTransformation,
    loss: Loss,
    policy: PyTree,
    memory: PyTree,
    batches: PyTree,
    steps: int,
) -> tuple[PyTree, PyTree, Any, Float[Array, " steps"]]:
    """`steps` improvements of `loss(policy, batch)`, batch by batch along the first
    axis of `batches` (None: no batches). Extras and norms are stacked.
    """
    arrays, rest = eqx.partition(policy, eqx.is_array)

    def take_step(carry: tuple[PyTree, PyTree], batch: Any):
        policy, memory, extras, norm = improve(
            optimizer,
            lambda policy: loss(policy, batch),
            eqx.combine(carry[0], rest),
            carry[1],
        )
        return (eqx.filter(policy, eqx.is_array), memory), (extras, norm)

    (arrays, memory), (extras, norms) = jax.lax.scan(
        take_step, (arrays, memory), batches, steps
    )
    return eqx.combine(arrays, rest), memory, extras, norms
