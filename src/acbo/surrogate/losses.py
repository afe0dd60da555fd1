"""How far a predicted distribution over parent sets is from the expert's.

Everything is computed in log space without an epsilon, so values and gradients are
exact for any logits. The forms that take posterior objects align the expert's
probabilities with the candidate sets and hand over to the array forms (`_jax`).
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

ParentSets = Sequence[frozenset[str]]


def distribution_entropy(probs: Float[Array, "*batch K"]) -> Float[Array, "*batch"]:
    """Return -sum p log p in nats, with 0 log 0 = 0."""
    return -jax.scipy.special.xlogy(probs, probs).sum(axis=-1)


def _aligned(
    logits: Float[Array, " K"],
    probs: Float[Array, " K"],
    set_mask: Bool[Array, " K"] | None,
) -> tuple[Float[Array, " K"], Float[Array, " K"]]:
    """Return logits, minus infinity where there is no set, and probabilities that sum
    to 1 over the sets that are there, both in float32 or wider.
    """
    # bfloat16 keeps two to three digits, too few for differences of logs.
    wide = logits.astype(jnp.float32) if logits.dtype.itemsize < 4 else logits
    if set_mask is not None:
        wide = jnp.where(set_mask, wide, -jnp.inf)
        probs = jnp.where(set_mask, probs, 0.0)
    return wide, (probs / probs.sum()).astype(wide.dtype)


def _divergence(p: Float[Array, " K"], logits: Float[Array, " K"]) -> Float[Array, ""]:
    """Return KL(p || softmax(logits)); terms without expert probability are 0."""
    # Both logs are made safe before they are chosen: 0 * log 0 is NaN, and so is its
    # gradient behind a `where`.
    there = p > 0
    log_q = jnp.where(there, jax.nn.log_softmax(logits), 0.0)
    log_p = jnp.log(jnp.where(there, p, 1.0))
    return (p * (log_p - log_q)).sum()


def kl_divergence_loss_jax(
    predicted_logits: Float[Array, " K"],
    expert_probs: Float[Array, " K"],
    parent_sets: Any = None,
    temperature: float = 1.0,
    set_mask: Bool[Array, " K"] | None = None,
) -> Float[Array, ""]:
    """KL(p || softmax(logits / temperature)), p normalized over the sets that are
    there. `parent_sets` only keeps the place it has in the other form.
    """
    if isinstance(temperature, int | float) and not temperature > 0:
        raise ValueError(f"temperature is {temperature}: give a number above 0")
    logits, p = _aligned(predicted_logits, expert_probs, set_mask)
    return _divergence(p, logits / temperature)


def uncertainty_weighted_loss_jax(
    predicted_logits: Float[Array, " K"],
    expert_probs: Float[Array, " K"],
    parent_sets: Any = None,
    weight_scale: float = 1.0,
    set_mask: Bool[Array, " K"] | None = None,
) -> Float[Array, ""]:
    """Return exp(-weight_scale H(p)) KL(p || q): confident experts count more."""
    logits, p = _aligned(predicted_logits, expert_probs, set_mask)
    return jnp.exp(-weight_scale * distribution_entropy(p)) * _divergence(p, logits)


def expert_vector(
    expert_posterior: Any, parent_sets: ParentSets
) -> Float[np.ndarray, " K"]:
    """Return the expert's probabilities of these sets, normalized; 0 for sets it leaves
    out.

    `expert_posterior` is a `ParentSetPosterior` or a mapping of sets to probabilities.
    """
    known = getattr(expert_posterior, "parent_set_probs", expert_posterior)
    probs = np.asarray([known.get(one, 0.0) for one in parent_sets], np.float64)
    if not probs.sum() > 0:
        raise ValueError(
            f"the expert gives none of the {len(probs)} candidate sets a probability "
            "above 0; enumerate candidates up to the size of its sets"
        )
    return (probs / probs.sum()).astype(np.float32)


def kl_divergence_loss(
    predicted_logits: Float[Array, " K"],
    expert_posterior: Any,
    parent_sets: ParentSets,
    temperature: float = 1.0,
) -> Float[Array, ""]:
    """Return KL(expert || softmax(logits / temperature)) over these candidate sets."""
    probs = jnp.asarray(expert_vector(expert_posterior, parent_sets))
    return kl_divergence_loss_jax(predicted_logits, probs, parent_sets, temperature)


def uncertainty_weighted_loss(
    predicted_logits: Float[Array, " K"],
    expert_posterior: Any,
    parent_sets: ParentSets,
    weight_scale: float = 1.0,
) -> Float[Array, ""]:
    """Return exp(-weight_scale H(expert)) KL(expert || predicted)."""
    probs = jnp.asarray(expert_vector(expert_posterior, parent_sets))
    return uncertainty_weighted_loss_jax(
        predicted_logits, probs, parent_sets, weight_scale
    )


_ARRAY_FORMS: dict[Any, Callable[..., Any]] = {
    kl_divergence_loss: kl_divergence_loss_jax,
    uncertainty_weighted_loss: uncertainty_weighted_loss_jax,
}


def array_form(loss_fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return the `_jax` twin of a loss given by its plain name; any other function as
    it is.

    Keyword arguments fixed with `functools.partial` are kept.
    """
    if isinstance(loss_fn, functools.partial):
        inner = array_form(loss_fn.func)
        return functools.partial(inner, *loss_fn.args, **loss_fn.keywords)
    return _ARRAY_FORMS.get(loss_fn, loss_fn)
