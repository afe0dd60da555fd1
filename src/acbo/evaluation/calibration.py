"""Do probabilities mean what they say: reliability curves."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


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
