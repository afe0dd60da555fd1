"""What the policy looks at: every variable at a row of candidate values."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from acbo.environment import Setting
from acbo.history import History
from acbo.policy.curves import Sight, average_curve, fit_curves
from acbo.policy.effects import (
    clear_probs,
    reach_probs,
    structural_weights,
    total_effects,
)
from acbo.policy.gains import expected_gains
from acbo.surrogate.encode import column_scale, standardize
from acbo.surrogate.predictor import Surrogate
from acbo.surrogate.statistics import squash

CANDIDATES = 17  # values of each variable, both ends of its range among them
FEATURES = 19
FARTHEST = 40.0  # deviations of the target that a line may promise
BESIDE = 0.1  # of a range: rows farther outside tell nothing about it
LEAST_GAIN = 1e-3  # in deviations of the target; smaller ones are all alike


class Outlook(eqx.Module):
    """Features of each variable and candidate, and a first guess of its outcome.

    Outcomes are in deviations of the target, lower is better whatever the direction.
    """

    features: Float[Array, "*batch d m f"]
    guess: Float[Array, "*batch d m"]
    doubt: Float[Array, "*batch d m"]
    gain: Float[Array, "*batch d m"]  # expected, over what was tried
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


class Lines(NamedTuple):
    """The linear view: outcomes in deviations of the target, lower is better."""

    outcome: Float[Array, " n"]
    scaled: Float[Array, "d m"]  # candidate values in deviations of their variable
    at_rows: Float[Array, "n d"]  # expected outcome by the total effect of a variable
    at_candidates: Float[Array, "d m"]


def _draw_lines(
    history: History, setting: Setting, edge_probs: Float[Array, "d d"]
) -> Lines:
    seen, target = history.row_mask, setting.target
    mean, spread = column_scale(history.values, history.intervened, seen)
    z = standardize(history.values, history.intervened, seen, setting.mask)
    free = (seen[:, None] & ~history.intervened).astype(z.dtype)
    weights = structural_weights(z, free, edge_probs)
    effect = setting.sign * total_effects(weights, target)
    share = jnp.linspace(0.0, 1.0, CANDIDATES)
    values = setting.low[:, None] + (setting.high - setting.low)[:, None] * share[None]
    scaled = (values - mean[:, None]) / spread[:, None]
    return Lines(
        setting.sign * z[:, target],
        scaled,
        jnp.clip(effect[None] * z, -FARTHEST, FARTHEST),
        jnp.clip(effect[:, None] * scaled, -FARTHEST, FARTHEST),
    )


def _rows_by_variable(
    history: History, setting: Setting, clear: Float[Array, " d"], lines: Lines
) -> Sight:
    """Rows in which a variable was set tell about its curve, and those in which it was
    free as far as nothing confounds it, that is with the probability `clear`.
    """
    width = jnp.where(setting.high > setting.low, setting.high - setting.low, 1.0)
    place = (history.values - setting.low[None]) / width[None]
    there = history.row_mask[:, None] & (place >= -BESIDE) & (place <= 1 + BESIDE)
    telling = jnp.where(history.intervened, 1.0, clear[None])
    made = there & history.intervened
    weight = jnp.where(there, telling, 0.0)
    return Sight(place, lines.outcome, lines.at_rows, weight, made)


def look(
    history: History, setting: Setting, edge_probs: Float[Array, "d d"]
) -> Outlook:
    """The outlook from a history and the probabilities of its edges."""
    target = setting.target
    lines = _draw_lines(history, setting, edge_probs)
    clear = clear_probs(edge_probs, target)
    sight = _rows_by_variable(history, setting, clear, lines)
    fit = fit_curves(sight, lines.at_candidates)
    tried = average_curve(fit, lines.at_candidates)
    gain = expected_gains(fit, sight, lines.at_candidates)
    acted = history.intervened & history.row_mask[:, None]
    rows = acted.any(axis=1)
    best = _lowest(lines.outcome, rows)
    hope = jnp.where(setting.allowed[:, None], tried.mean, jnp.inf).min()
    share = jnp.linspace(0.0, 1.0, CANDIDATES)
    whole = jnp.ones_like(gain)
    column = lambda x: whole * x[:, None]
    count = lambda flags: jnp.log1p(flags.sum().astype(gain.dtype))
    features = [
        squash(lines.at_candidates),
        squash(tried.mean),
        squash(tried.deviation),
        column(tried.straight),
        column(tried.rough),
        column(edge_probs[:, target]),
        column(reach_probs(edge_probs, target)),
        column(clear),
        whole * (2 * share - 1)[None],
        whole * ((share == 0) | (share == 1)).astype(gain.dtype)[None],
        squash(lines.scaled),
        column(jnp.log1p(acted.sum(axis=0).astype(gain.dtype))),
        jnp.log1p(fit.near),
        whole * squash(best),
        whole * (count(history.row_mask & ~rows) - 3.0),
        whole * count(rows),
        squash(tried.mean - hope),
        squash((tried.mean - hope) / tried.deviation),
        jnp.log(gain + LEAST_GAIN),
    ]
    return Outlook(
        jnp.where(setting.mask[:, None, None], jnp.stack(features, axis=-1), 0.0),
        tried.mean,
        tried.deviation,
        gain,
        setting.low,
        setting.high,
        setting.allowed,
    )
