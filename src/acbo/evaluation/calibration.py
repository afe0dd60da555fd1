"""Do probabilities mean what they say: reliability curves and temperature scaling."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

BISECTIONS = 60
SHARPEST, FLATTEST = 100.0, 0.01  # bounds of the inverse temperature


class Reliability(eqx.Module):
    """Sums over equally wide bins of predicted probability, lowest bin first."""

    count: Float[Array, "*batch bins"]
    predicted: Float[Array, "*batch bins"]  # sum of probabilities
    happened: Float[Array, "*batch bins"]  # number of true labels

    @property
    def confidence(self) -> Float[Array, "*batch bins"]:
        """Mean probability of each bin; 0 where it is empty."""
        return self.predicted / jnp.maximum(self.count, 1.0)

    @property
    def accuracy(self) -> Float[Array, "*batch bins"]:
        """Share of true labels in each bin; 0 where it is empty."""
        return self.happened / jnp.maximum(self.count, 1.0)

    @property
    def error(self) -> Float[Array, "*batch"]:
        """Expected calibration error: mean gap of the bins, weighted by their count."""
        gap = jnp.abs(self.predicted - self.happened).sum(-1)
        return gap / jnp.maximum(self.count.sum(-1), 1.0)


def reliability(
    probs: Float[Array, "*n"],
    labels: Bool[Array, "*n"],
    mask: Bool[Array, "*n"],
    bins: int = 10,
) -> Reliability:
    """Reliability curve of probabilities of yes/no events, all pooled."""
    place = jnp.clip((probs * bins).astype(jnp.int32), 0, bins - 1)
    inside = (place.reshape(-1, 1) == jnp.arange(bins)[None]) & mask.reshape(-1, 1)
    weight = inside.astype(probs.dtype)
    return Reliability(
        weight.sum(0),
        probs.reshape(-1) @ weight,
        labels.reshape(-1).astype(probs.dtype) @ weight,
    )


def fit_temperature(
    logits: Float[Array, "*n"], labels: Bool[Array, "*n"], mask: Bool[Array, "*n"]
) -> Float[Array, ""]:
    """The temperature T for which sigmoid(logits / T) has the least log loss.

    The loss is convex in 1/T, so its slope is bisected. Where no finite T is best
    (every label on its right side) the nearest bound is given: T in [0.01, 100].
    """

    def loss(inverse: Float[Array, ""]) -> Float[Array, ""]:
        scaled = logits * inverse
        each = jax.nn.softplus(scaled) - jnp.where(labels, scaled, 0.0)
        return jnp.where(mask, each, 0.0).sum()

    return 1.0 / _least(loss)


def fit_set_temperature(
    logits: Float[Array, "n sets"], truth: Int[Array, " n"]
) -> Float[Array, ""]:
    """The temperature of a softmax over sets with the least log loss; sets that are
    not candidates have a logit of minus infinity.
    """
    finite = jnp.where(jnp.isfinite(logits), logits, 0.0)

    def loss(inverse: Float[Array, ""]) -> Float[Array, ""]:
        scaled = jnp.where(jnp.isfinite(logits), finite * inverse, -jnp.inf)
        log_probs = jax.nn.log_softmax(scaled, axis=-1)
        return -jnp.take_along_axis(log_probs, truth[:, None], axis=-1).sum()

    return 1.0 / _least(loss)


def _least(loss: Callable[[Array], Array]) -> Float[Array, ""]:
    """Where the slope of a convex function of the inverse temperature turns."""
    slope = jax.grad(loss)

    def halve(_: Array, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = jnp.sqrt(low * high)
        # A slope of 0 is one too small to be seen: the loss has not turned yet.
        falling = slope(middle) <= 0.0
        return jnp.where(falling, middle, low), jnp.where(falling, high, middle)

    bounds = (jnp.asarray(FLATTEST), jnp.asarray(SHARPEST))
    low, high = jax.lax.fori_loop(0, BISECTIONS, halve, bounds)
    return jnp.sqrt(low * high)
