"""Experiments chosen with whole models drawn from an exact posterior.

The models are linear and ignore that other variables may be clipped to their ranges;
the values proposed are within them. A linear outcome is best at an end of a range, and
so is its expected improvement, which is convex in the value: only ends are tried.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from acbo.baselines.choices import best_end, highest, value_grid
from acbo.environment import Action, Setting
from acbo.experts.models import TargetLines, expected_target, sample_model
from acbo.history import History
from jaxrig.keys import batch_keys


def draw_lines(
    key: PRNGKeyArray, history: History, setting: Setting, max_parents: int
) -> TargetLines:
    """What one model drawn from the posterior expects of every intervention."""
    model = sample_model(
        key,
        history.values,
        history.intervened,
        history.row_mask,
        setting.mask,
        max_parents=max_parents,
    )
    return expected_target(model, setting.target)


class ExactThompson(eqx.Module):
    """Thompson sampling: draw one model from the posterior, do what is best in it."""

    max_parents: int = eqx.field(static=True, default=3)

    def propose(
        self, key: PRNGKeyArray, history: History, setting: Setting, truth: Any
    ) -> Action:
        """The next intervention."""
        lines = draw_lines(key, history, setting, self.max_parents)
        return best_end(lines.intercept, lines.slope, setting)


class ExactImprovement(eqx.Module):
    """Expected improvement over models drawn from the posterior.

    Improvement counts from the best mean outcome among the interventions already made,
    or among all ends of ranges where none was made.
    """

    models: int = eqx.field(static=True, default=32)
    max_parents: int = eqx.field(static=True, default=3)

    def propose(
        self, key: PRNGKeyArray, history: History, setting: Setting, truth: Any
    ) -> Action:
        """The next intervention."""
        draw = lambda k: draw_lines(k, history, setting, self.max_parents)
        lines = jax.vmap(draw)(batch_keys(key, self.models))
        ends = value_grid(setting, 2)
        outcome = lines.intercept[:, :, None] + lines.slope[:, :, None] * ends[None]
        outcome = setting.sign * outcome
        mean = jnp.where(setting.allowed[:, None], outcome.mean(0), jnp.inf)
        made = _best_made(lines, history, setting)
        best = jnp.where(jnp.isfinite(made), made, mean.min())
        gain = jnp.maximum(best - outcome, 0.0).mean(0)
        # Where no draw improves, the best mean decides.
        return highest(gain - 1e-6 * outcome.mean(0), ends, setting)


def _best_made(
    lines: TargetLines, history: History, setting: Setting
) -> Float[Array, ""]:
    """Best mean outcome among the values already set; infinite without any."""
    intercept, slope = lines.intercept.mean(0), lines.slope.mean(0)
    outcome = setting.sign * (intercept[None] + slope[None] * history.values)
    made = history.intervened & history.row_mask[:, None] & setting.allowed[None]
    return jnp.where(made, outcome, jnp.inf).min()
