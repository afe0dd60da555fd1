"""The acquisition policy: which variable to set next, and to what value.

Each variable at each candidate value gets a score: the gain that its curve promises,
and what the network makes of the features. The value is continuous: a bump around the
candidate, cut at the ends of the range, so that both ends can be reached.
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from acbo.environment import Action
from acbo.policy.features import CANDIDATES, FEATURES, LEAST_GAIN, PolicyObservation
from acbo.surrogate.layers import Linear, Norm
from jaxrig.learn import Choice, Evaluation
from jaxrig.settings import Checked, Count


@dataclass(frozen=True)
class PolicyConfig(Checked):
    """Width of the network."""

    dim: Count = 64


class PolicyAction(eqx.Module):
    """An action as it was drawn: the cell of the grid, and the place beside it."""

    cell: Int[Array, "*batch"]
    offset: Float[Array, "*batch"]  # in steps of the grid, before it is cut
    variable: Int[Array, "*batch"]
    value: Float[Array, "*batch"]

    @property
    def action(self) -> Action:
        """Return the intervention."""
        return Action(self.variable, self.value)


class Scores(eqx.Module):
    """What the network says: logits of cells, and where beside each the value goes."""

    logits: Float[Array, "*batch d m"]
    center: Float[Array, "*batch d m"]
    log_width: Float[Array, "*batch d m"]

    @property
    def variable_logits(self) -> Float[Array, "*batch d"]:
        """Return log probability of setting each variable, whatever the value."""
        flat = self.logits.reshape(*self.logits.shape[:-2], -1)
        total = jax.nn.logsumexp(flat, axis=-1)[..., None]
        return jax.nn.logsumexp(self.logits, axis=-1) - total


class PolicyNetwork(eqx.Module):
    """Shared over variables and candidates, so it serves any number of variables."""

    embed: Linear
    cell: Linear
    context: Linear
    norm: Norm
    mix: Linear
    head: Linear
    trust: Float[Array, ""]
    config: PolicyConfig = eqx.field(static=True)

    def __init__(self, config: PolicyConfig, key: PRNGKeyArray):
        keys = iter(jax.random.split(key, 5))
        dim = config.dim
        self.embed = Linear(FEATURES, dim, next(keys), 2.0)
        self.cell = Linear(dim, dim, next(keys), 2.0)
        self.context = Linear(4 * dim, dim, next(keys), 2.0)
        self.norm = Norm(2 * dim)
        self.mix = Linear(2 * dim, dim, next(keys), 2.0)
        self.head = Linear(dim, 3, next(keys), 0.01)
        # Before anything is learned the policy is greedy in log expected improvement:
        # softplus(3) times it, plus a head that starts near 0.
        self.trust = jnp.full((), 3.0)
        self.config = config

    def __call__(self, observation: PolicyObservation) -> Scores:
        """Return scores of every cell; what is not allowed has the logit -inf."""
        x = jax.nn.relu(self.cell(jax.nn.relu(self.embed(observation.features))))
        there = observation.allowed
        own = jnp.concatenate([x.mean(axis=1), x.max(axis=1)], axis=-1)
        many = jnp.maximum(there.sum(), 1).astype(x.dtype)
        mean = jnp.where(there[:, None], own, 0.0).sum(axis=0) / many
        around = jnp.broadcast_to(mean[None], own.shape)
        context = self.context(jnp.concatenate([own, around], axis=-1))
        context = jnp.broadcast_to(context[:, None], (*x.shape[:-1], x.shape[-1]))
        joined = self.norm(jnp.concatenate([x, context], axis=-1))
        out = self.head(jax.nn.relu(self.mix(joined)))
        worth = jnp.log(observation.gain + LEAST_GAIN)
        logits = out[..., 0] + jax.nn.softplus(self.trust) * worth
        return Scores(
            jnp.where(there[:, None], logits, -jnp.inf),
            0.5 * jnp.tanh(out[..., 1]),
            jnp.clip(out[..., 2] - 1.5, -2.5, 0.0),
        )

    def sample(self, key: PRNGKeyArray, observation: PolicyObservation) -> Choice:
        """Draw an experiment, and how likely it was."""
        scores = self(observation)
        which, where = jax.random.split(key)
        cell = jax.random.categorical(which, scores.logits.reshape(-1))
        width = jnp.exp(scores.log_width.reshape(-1)[cell])
        offset = scores.center.reshape(-1)[cell] + width * jax.random.normal(where)
        action = place(observation, cell, offset)
        return Choice(action, _log_prob(scores, action), jnp.asarray(0.0))

    def best(self, observation: PolicyObservation) -> PolicyAction:
        """Return the likeliest experiment."""
        scores = self(observation)
        cell = jnp.argmax(scores.logits.reshape(-1))
        return place(observation, cell, scores.center.reshape(-1)[cell])

    def evaluate(
        self, observation: PolicyObservation, action: PolicyAction
    ) -> Evaluation:
        """Return how likely an experiment is now, and how open the choice."""
        scores = self(observation)
        chance = _log_prob(scores, action)
        return Evaluation(chance, _entropy(scores), jnp.asarray(0.0))


def place(
    observation: PolicyObservation, cell: Int[Array, ""], offset: Float[Array, ""]
) -> PolicyAction:
    """Return the experiment of a cell and an offset, its value within the range."""
    variable, index = cell // CANDIDATES, cell % CANDIDATES
    low, high = observation.low[variable], observation.high[variable]
    share = (index.astype(jnp.float32) + offset) / (CANDIDATES - 1)
    value = jnp.clip(low + jnp.clip(share, 0.0, 1.0) * (high - low), low, high)
    value = jnp.where(share >= 1.0, high, value)  # rounding must not keep it short
    return PolicyAction(cell, offset, variable, value)


def _log_prob(scores: Scores, action: PolicyAction) -> Float[Array, ""]:
    # The density is that of the offset before it is cut at the ends of the range, so
    # that an end has a density and not a point mass.
    chosen = jax.nn.log_softmax(scores.logits.reshape(-1))[action.cell]
    center = scores.center.reshape(-1)[action.cell]
    log_width = scores.log_width.reshape(-1)[action.cell]
    unit = (action.offset - center) / jnp.exp(log_width)
    density = -0.5 * jnp.square(unit) - log_width - float(0.5 * np.log(2 * np.pi))
    return chosen + density


def _entropy(scores: Scores) -> Float[Array, ""]:
    """Return the entropy of the cell plus the mean entropy of the offset within it."""
    logs = jax.nn.log_softmax(scores.logits.reshape(-1))
    probs = jnp.exp(logs)
    there = jnp.isfinite(logs)
    spread = scores.log_width.reshape(-1) + float(0.5 * np.log(2 * np.pi * np.e))
    return jnp.where(there, probs * (spread - jnp.where(there, logs, 0.0)), 0.0).sum()
