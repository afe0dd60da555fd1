"""Parents without training: everything, nothing, correlation, regression, posteriors.

Each has `predict(values, intervened, row_mask, var_mask, target)`, which gives parent
probabilities and, where there are beliefs over whole sets, their log probabilities and
members, else None.
"""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from acbo.graphs import bucket_parent_sets
from acbo.posterior import scores
from acbo.posterior.exact import parent_posterior
from acbo.types import Index

Sets = tuple[Float[Array, " K"], Bool[Array, "K d"]]
Prediction = tuple[Float[Array, " d"], Sets | None]


class Evidence(NamedTuple):
    """A data set, what of it is there, and the variable whose parents are asked."""

    values: Float[Array, "rows d"]
    intervened: Bool[Array, "rows d"]
    row_mask: Bool[Array, " rows"]
    var_mask: Bool[Array, " d"]
    target: Index

    @property
    def candidates(self) -> Bool[Array, " d"]:
        """Return which variables can be parents: all that are there but the target."""
        return self.var_mask & (jnp.arange(self.var_mask.shape[0]) != self.target)


class Predictor(eqx.Module):
    """Who says which variables are parents of the target."""

    def predict(self, *data: Any) -> Prediction:
        """Return what `read` gives for the fields of `Evidence`."""
        return self.read(Evidence(*data))

    @abc.abstractmethod
    def read(self, seen: Evidence) -> Prediction:
        """Return parent probabilities, and those of whole sets where there are any."""


class Constant(Predictor):
    """One probability for every other variable, whatever the rows say: with 1 all are
    parents, with 0, the majority's guess, none.
    """

    chance: float = eqx.field(static=True)

    def read(self, seen: Evidence) -> Prediction:
        """Return parent probabilities."""
        return jnp.where(seen.candidates, self.chance, 0.0), None


class Regression(Predictor):
    """Least squares of the target on all others; parents have |t| above a threshold.

    The probability is a logistic curve in |t|, one half at the threshold: a ranking,
    not a calibrated belief.
    """

    threshold: float = eqx.field(static=True, default=scores.THRESHOLD)

    def read(self, seen: Evidence) -> Prediction:
        """Return parent probabilities."""
        t = scores.regression_t(*seen)
        score = jax.nn.sigmoid(jnp.abs(t) - self.threshold)
        return jnp.where(seen.candidates, score, 0.0), None


class Correlation(Predictor):
    """The `count` variables most correlated with the target are its parents."""

    count: int = eqx.field(static=True, default=1)

    def read(self, seen: Evidence) -> Prediction:
        """Return parent probabilities: above one half for the chosen alone."""
        values, target, allowed = seen.values, seen.target, seen.candidates
        free = seen.row_mask & ~seen.intervened[:, target]
        free = free.astype(values.dtype)
        mean = (values * free[:, None]).sum(0) / jnp.maximum(free.sum(), 1.0)
        off = (values - mean[None]) * free[:, None]
        outcome = off[:, target]
        size = jnp.sqrt(jnp.square(off).sum(0) * jnp.square(outcome).sum())
        strength = jnp.abs(off.T @ outcome) / jnp.where(size > 0, size, 1.0)
        strength = jnp.where(allowed, jnp.clip(strength, 0.0, 1.0), -1.0)
        # The rank of each entry: sorting twice inverts the permutation.
        rank = jnp.argsort(jnp.argsort(-strength))
        chosen = (rank < self.count) & allowed
        score = jnp.where(chosen, 0.5 + 0.5 * strength, 0.5 * strength)
        return jnp.where(allowed, score, 0.0), None


class SetPosterior(Predictor):
    """Parents by a posterior over parent sets: log probabilities of all sets of at
    most `max_parents`, from rows that are complete.
    """

    logs: Callable[..., Any] = eqx.field(static=True)
    max_parents: int = eqx.field(static=True, default=3)

    def read(self, seen: Evidence) -> Prediction:
        """Return parent probabilities, and those of whole sets."""
        most = self.max_parents
        logs = self.logs(*seen, max_parents=most)
        among = seen.var_mask, seen.target
        _, held = bucket_parent_sets(*among, most)
        return scores.parent_marginals(logs, *among, max_parents=most), (logs, held)


def exact_predictor(max_parents: int = 3) -> SetPosterior:
    """Return the exact posterior, summed over all orders of the variables."""
    return SetPosterior(parent_posterior, max_parents)


def local_predictor(max_parents: int = 3) -> SetPosterior:
    """Return scores of the target's own regressions: children look like parents."""
    return SetPosterior(scores.local_posterior, max_parents)
