"""What PPO and GRPO share: advantages, the clipped objective, and gradient steps."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

if TYPE_CHECKING:
    import optax

Loss = Callable[[Any, Any], tuple[Float[Array, ""], Any]]


def make_optimizer(
    learning_rate: float, max_grad_norm: float
) -> "optax.GradientTransformation":
    """Return Adam with the global gradient norm clipped first."""
    import optax

    # Clipped before Adam sees it: its second moment would remember one exploding
    # gradient for about 1 / (1 - 0.999) = 1,000 steps and all but stop the learning.
    return optax.chain(
        optax.clip_by_global_norm(max_grad_norm), optax.adam(learning_rate)
    )


class FlatTree(eqx.Module):
    """The arrays of a tree, all of one dtype, as one vector.

    XLA compiles an optimizer's update once per array, at 10 ms each on a CPU, and runs
    it at 8 us each however small they are: of one vector it is a single kernel.
    """

    vector: Float[Array, " n"]
    shapes: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    structure: Any = eqx.field(static=True)

    def __init__(self, tree: PyTree):
        leaves, self.structure = jax.tree.flatten(tree)
        self.shapes = tuple(leaf.shape for leaf in leaves)
        self.vector = jnp.concatenate([leaf.reshape(-1) for leaf in leaves])

    def restore(self) -> Any:
        """Return the tree; the gradient of its parts is a vector again."""
        sizes = [int(np.prod(shape)) for shape in self.shapes]
        # Not slices: the transpose of a split is one concatenation, that of a slice
        # a padded vector for each array.
        parts = jax.lax.split(self.vector, sizes)
        shaped = [x.reshape(s) for x, s in zip(parts, self.shapes, strict=True)]
        return jax.tree.unflatten(self.structure, shaped)


def restored(tree: Any) -> Any:
    """Return the tree that a `FlatTree` holds, and any other tree as it is."""
    return tree.restore() if isinstance(tree, FlatTree) else tree


def start_optimizer(
    optimizer: "optax.GradientTransformation", policy: PyTree
) -> PyTree:
    """Return the optimizer's state for the floating-point arrays of a policy."""
    trainable = eqx.filter(policy, eqx.is_inexact_array)
    for path, leaf in jax.tree_util.tree_flatten_with_path(trainable)[0]:
        if jnp.finfo(leaf.dtype).bits < 32:
            raise ValueError(
                f"policy{jax.tree_util.keystr(path)} is {leaf.dtype}, which is too "
                "coarse for small updates; keep parameters in float32 and cast them "
                "inside sample and evaluate"
            )
    return optimizer.init(trainable)


def improve(
    optimizer: "optax.GradientTransformation",
    loss: Callable[[Any], tuple[Float[Array, ""], Any]],
    policy: PyTree,
    memory: PyTree,
) -> tuple[PyTree, PyTree, Any, Float[Array, ""]]:
    """Take one step down the gradient of `loss(policy) -> (value, extras)`.

    Returns policy, memory, extras and the gradient's norm before clipping.
    """
    gradients, extras = eqx.filter_grad(loss, has_aux=True)(policy)
    parameters = eqx.filter(policy, eqx.is_inexact_array)
    with jax.numpy_dtype_promotion("standard"):  # optax mixes integers and floats
        updates, memory = optimizer.update(gradients, memory, parameters)
    # The norm before clipping: after it, every large gradient would look alike.
    squares = sum(jnp.sum(jnp.square(g)) for g in jax.tree.leaves(gradients))
    return eqx.apply_updates(policy, updates), memory, extras, jnp.sqrt(squares)


def descend(
    optimizer: "optax.GradientTransformation",
    loss: Loss,
    policy: PyTree,
    memory: PyTree,
    batches: PyTree,
    steps: int,
) -> tuple[PyTree, PyTree, Any, Float[Array, " steps"]]:
    """Take `steps` steps on `loss(policy, batch)`, batch by batch along the first
    axis of `batches` (None: no batches). Extras and norms are stacked.
    """
    # A scan carries arrays alone; activation functions and sizes stay outside of it.
    # One compiled body serves all steps: unrolled, compile time would grow with them.
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


def standardize(
    values: Float[Array, "*n"], axis: int | None = None, scale: bool = True
) -> Float[Array, "*n"]:
    """Return (x - mean) / (std + 1e-8), population std; without `scale`, x - mean.

    Values that are all equal give exactly 0. The float mean of equal numbers may be
    off by a rounding, which division by the std of roundings would blow up to 1, so
    the first value is subtracted beforehand.
    """
    first = jax.lax.index_in_dim(
        values.reshape(-1) if axis is None else values, 0, axis or 0
    )
    shifted = values - (first.reshape((1,) * values.ndim) if axis is None else first)
    centered = shifted - shifted.mean(axis=axis, keepdims=True)
    return (
        centered / (shifted.std(axis=axis, keepdims=True) + 1e-8) if scale else centered
    )


def clipped_surrogate(
    ratio: Float[Array, "*n"], advantage: Float[Array, "*n"], clip: float
) -> Float[Array, "*n"]:
    """Return min(r A, clip(r, 1 - e, 1 + e) A) (Schulman et al. 2017, eq. 7)."""
    return jnp.minimum(
        ratio * advantage, jnp.clip(ratio, 1 - clip, 1 + clip) * advantage
    )


def advantages(
    reward: Float[Array, "time batch"],
    value: Float[Array, "time batch"],
    next_value: Float[Array, "time batch"],
    done: Bool[Array, "time batch"],
    discount: float,
    trace_decay: float,
) -> Float[Array, "time batch"]:
    """Return generalized advantage estimates (Schulman et al. 2016, eq. 16):
    A_t = d_t + discount * trace_decay * A_{t+1}, d_t = r_t + discount * V_{t+1} - V_t.
    """
    td_error = reward + discount * next_value - value

    def back(following: Array, step: tuple[Array, Array]):
        delta, ends = step
        current = delta + discount * trace_decay * jnp.where(ends, 0.0, following)
        return current, current

    start = jnp.zeros_like(td_error[0])
    return jax.lax.scan(back, start, (td_error, done), reverse=True)[1]
