"""What the policy looks at: every variable at a row of candidate values."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from acbo.environment import Setting
from acbo.history import History
from acbo.policy.effects import (
    fit_curves,
    reach_probs,
    structural_weights,
    total_effects,
)
from acbo.surrogate.encode import column_scale, standardise
from acbo.surrogate.predictor import Surrogate
from acbo.surrogate.statistics import squash

CANDIDATES = 9  # values of each variable, both ends of its range among them
FEATURES = 18


class Outlook(eqx.Module):
    """Features of each variable and candidate, and a first guess of its outcome.

    Outcomes are in deviations of the target, lower is better whatever the direction.
    """

    features: Float[Array, "*batch d m f"]
    guess: Float[Array, "*batch d m"]
    doubt: Float[Array, "*batch d m"]
    low: Float[Array, "*batch d"]
    high: Float[Array, "*batch d"]
    allowed: Bool[Array, "*batch d"]


def edges_of(
    surrogate: Surrogate, history: History, setting: Setting
) -> Float[Array, "d d"]:
    """P(i causes j) for every pair, as the surrogate reads the history."""
    found = surrogate.read(
        history.values,
        history.intervened,
        history.row_mask,
        setting.mask,
        setting.target,
    )
    return jax.nn.sigmoid(found.edge_logits)


def _lowest(y: Float[Array, " n"], rows: Bool[Array, " n"]) -> Float[Array, ""]:
    """The best outcome of these rows, 0 where there is none."""
    best = jnp.where(rows, y, jnp.inf).min()
    return jnp.where(jnp.isfinite(best), best, 0.0)


def look(
    history: History, setting: Setting, edge_probs: Float[Array, "d d"]
) -> Outlook:
    """The outlook from a history and the probabilities of its edges."""
    seen, target = history.row_mask, setting.target
    mean, spread = column_scale(history.values, history.intervened, seen)
    z = standardise(history.values, history.intervened, seen, setting.mask)
    y = setting.sign * z[:, target]
    free = (seen[:, None] & ~history.intervened).astype(z.dtype)
    weights = structural_weights(z, free, edge_probs)
    effect = setting.sign * total_effects(weights, target)
    share = jnp.linspace(0.0, 1.0, CANDIDATES)
    width = jnp.where(setting.high > setting.low, setting.high - setting.low, 1.0)
    values = setting.low[:, None] + width[:, None] * share[None]
    scaled = (values - mean[:, None]) / spread[:, None]
    line = jnp.clip(effect[:, None] * scaled, -40.0, 40.0)

    place = (history.values - setting.low[None]) / width[None]
    acted = history.intervened & seen[:, None]
    expected = jnp.clip(effect[None] * z, -40.0, 40.0)
    surprise = fit_curves(place, y[:, None] - expected, acted, CANDIDATES)
    passive = jnp.broadcast_to((seen & ~acted.any(axis=1))[:, None], z.shape)
    habit = fit_curves(
        place, jnp.broadcast_to(y[:, None], z.shape), passive, CANDIDATES
    )
    guess = line + surprise.mean
    rows = acted.any(axis=1)
    best = _lowest(y, rows)
    hope = jnp.where(setting.allowed[:, None], guess, jnp.inf).min()
    whole = jnp.ones_like(line)
    column = lambda x: whole * x[:, None]
    count = lambda flags: jnp.log1p(flags.sum().astype(z.dtype))
    features = [
        squash(line),
        squash(guess),
        surprise.deviation,
        squash(surprise.mean),
        squash(habit.mean),
        habit.deviation,
        column(edge_probs[:, target]),
        column(reach_probs(edge_probs, target)),
        whole * (2 * share - 1)[None],
        whole * ((share == 0) | (share == 1)).astype(z.dtype)[None],
        squash(scaled),
        column(jnp.log1p(acted.sum(axis=0).astype(z.dtype))),
        jnp.log1p(surprise.near),
        jnp.log1p(habit.near),
        whole * squash(best),
        whole * (count(passive[:, 0]) - 3.0),
        whole * count(rows),
        squash(guess - hope),
    ]
    return Outlook(
        jnp.where(setting.mask[:, None, None], jnp.stack(features, axis=-1), 0.0),
        guess,
        surprise.deviation,
        setting.low,
        setting.high,
        setting.allowed,
    )
