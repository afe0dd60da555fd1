"""The loss of a batch and one step down its gradient: one pure function of arrays.

Compiled, adaptive and uncompiled steps all run this very function.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from acbo.surrogate.losses import (
    array_form,
    distribution_entropy,
    kl_divergence_loss_jax,
    takes_truth,
)
from acbo.training.codec import BatchArrays
from acbo.training.parent_set_model import ParentSetModel
from jaxrig.keys import batch_keys
from jaxrig.learn.optimizer import improve
from jaxrig.tracing import TRACING_ERRORS

MAX_GRADIENT_NORM = 1.0
PADDED_LOGIT = -1e9  # probability 0 exactly, and 0 * log of it is 0, not NaN


class Terms(NamedTuple):
    """The loss of a batch and what it is made of."""

    total_loss: Float[Array, ""]
    kl_loss: Float[Array, ""]
    regularization_loss: Float[Array, ""]
    mean_expert_accuracy: Float[Array, ""]
    predicted_entropy: Float[Array, ""]
    expert_entropy: Float[Array, ""]


class _OfExample(NamedTuple):
    loss: Float[Array, ""]
    kl: Float[Array, ""]
    predicted_entropy: Float[Array, ""]
    expert_entropy: Float[Array, ""]


def map_examples(function: Callable[..., Any]) -> Callable[..., Any]:
    """`jax.vmap`; a function that asks for values is called example by example."""

    def mapped(*args: Any) -> Any:
        try:
            return jax.vmap(function)(*args)
        except TRACING_ERRORS:
            count = jax.tree.leaves(args)[0].shape[0]
            each = [
                function(*jax.tree.map(lambda x, i=i: x[i], args)) for i in range(count)
            ]
            return jax.tree.map(lambda *x: jnp.stack(x), *each)

    return mapped


@dataclass(frozen=True)
class Objective:
    """Mean over examples of the loss, plus `weight_decay` times the sum of squares.

    `loss(logits, expert_probs, membership)` is given logits of -1e9 and probabilities
    of 0 where a set is padding; one with a `true_index` gets the true set's place.
    """

    model: ParentSetModel
    loss: Callable[..., Any]
    weight_decay: float

    def __call__(
        self, params: PyTree, batch: BatchArrays, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], Terms]:
        """The loss of a batch, dropout on, and its terms."""
        keys = batch_keys(key, batch.expert_accuracies.shape[0])
        one = lambda part, key: self._of_example(params, part, key)
        found: _OfExample = map_examples(one)(batch, keys)
        squares = [jnp.sum(jnp.square(x)) for x in jax.tree.leaves(params)]
        penalty = self.weight_decay * jnp.stack(squares).sum()
        mean = jax.tree.map(jnp.mean, found)
        total = mean.loss + penalty
        return total, Terms(
            *(total, mean.kl, penalty, batch.expert_accuracies.mean()),
            *(mean.predicted_entropy, mean.expert_entropy),
        )

    def _of_example(
        self, params: PyTree, part: BatchArrays, key: PRNGKeyArray
    ) -> _OfExample:
        raw = self.model.logits(params, part.example, key)
        logits = jnp.where(part.example.set_mask, raw, PADDED_LOGIT)
        p = part.expert_probs / part.expert_probs.sum()
        truth = {"true_index": part.true_index} if takes_truth(self.loss) else {}
        sets = part.example.membership
        return _OfExample(
            self.loss(logits, p, sets, **truth),
            kl_divergence_loss_jax(logits, p),
            distribution_entropy(jax.nn.softmax(logits)),
            distribution_entropy(p),
        )


def clip_first(
    optimizer: optax.GradientTransformation,
) -> optax.GradientTransformation:
    """The optimizer on gradients of global norm 1 at most; its state is unchanged."""
    clip = optax.clip_by_global_norm(MAX_GRADIENT_NORM)

    def update(updates: Any, state: Any, params: Any = None) -> Any:
        clipped, _ = clip.update(updates, optax.EmptyState())
        return optimizer.update(clipped, state, params)

    return optax.GradientTransformation(optimizer.init, update)


def learning_rate_of(opt_state: PyTree, otherwise: float) -> Float[Array, ""]:
    """The rate that an optimizer with injected hyperparameters holds, else another."""
    held = optax.tree_utils.tree_get_all_with_path(opt_state, "learning_rate")
    return jnp.asarray(held[0][1] if held else otherwise, jnp.float32)


def make_update(
    model: ParentSetModel,
    optimizer: optax.GradientTransformation,
    loss_fn: Callable[..., Any],
    config: Any,
    l2_in_loss: bool = True,
) -> Callable[..., Any]:
    """`update(params, opt_state, batch, key) -> (params, opt_state, metrics)`, pure.

    `config` has a `learning_rate` and a `weight_decay`; the latter is left to the
    optimizer unless `l2_in_loss`.
    """
    decay = config.weight_decay if l2_in_loss else 0.0
    objective = Objective(model, array_form(loss_fn), decay)
    clipped = clip_first(optimizer)

    def update(
        params: PyTree, opt_state: PyTree, batch: BatchArrays, key: PRNGKeyArray
    ) -> tuple[PyTree, PyTree, dict[str, Float[Array, ""]]]:
        params, opt_state, terms, norm = improve(
            clipped, lambda p: objective(p, batch, key), params, opt_state
        )
        rate = learning_rate_of(opt_state, config.learning_rate)
        extra = {"gradient_norm": norm, "learning_rate": rate}
        return params, opt_state, {**terms._asdict(), **extra}

    return update
