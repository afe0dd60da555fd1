"""Proposers on linear models drawn from the exact posterior.

An order is drawn from the sums over orders, parents given their predecessors, then
weights and noise of each regression: no chain, every draw is independent and exact.
The models ignore that other variables may be clipped to their ranges; the values
proposed are within them. A linear outcome is best at an end of a range, and so is its
expected improvement, which is convex in the value: only ends are tried.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from acbo.baselines.proposers import best_end, highest, value_grid
from acbo.environment import Action, ProblemSpec
from acbo.graphs import parent_set_members
from acbo.history import History
from acbo.posterior.dag_sums import set_masks, sum_orders, sum_parent_sets
from acbo.posterior.scores import (
    ScorePrior,
    Statistics,
    constrained_scores,
    gather_statistics,
    pivots,
    regression_matrix,
)
from acbo.types import Index
from jaxrig.keys import batch_keys


class SampledModel(eqx.Module):
    """A linear-Gaussian model in the units of the data; entry [i, j] is about i -> j.

    x_j = intercept[j] + sum_i weight[i, j] x_i + noise_scale[j] N(0, 1).
    """

    weight: Float[Array, "*batch d d"]
    intercept: Float[Array, "*batch d"]
    noise_scale: Float[Array, "*batch d"]


def _sample_parents(
    key: PRNGKeyArray, scores: Float[Array, "d sets"], max_parents: int
) -> Int[Array, " d"]:
    """Draw an order from the posterior, then a parent set of each variable within its
    predecessors, by index.
    """
    d, dtype = scores.shape[0], scores.dtype
    order_key, set_key = jax.random.split(key)
    sums = sum_parent_sets(scores, max_parents)
    into = sum_orders(sums)
    bits = jnp.left_shift(1, jnp.arange(d))

    def take_last(left: Int[Array, ""], noise: Float[Array, " d"]):
        there = jnp.bitwise_and(left, bits) > 0
        before = jnp.where(there, jnp.bitwise_xor(left, bits), 0)
        terms = into[before] + sums[jnp.arange(d), before] + noise
        # Gumbel-max: the largest perturbed log weight is a draw by weight.
        last = jnp.argmax(jnp.where(there, terms, -jnp.inf))
        return before[last], (last, before[last])

    full = jnp.asarray(2**d - 1, bits.dtype)
    noise = jax.random.gumbel(order_key, (d, d), dtype)
    _, (order, before) = jax.lax.scan(take_last, full, noise)
    predecessors = jnp.zeros(d, bits.dtype).at[order].set(before)
    masks = jnp.asarray(set_masks(d, max_parents), bits.dtype)
    outside = jnp.bitwise_and(masks, ~predecessors[:, None]) > 0
    terms = scores + jax.random.gumbel(set_key, scores.shape, dtype)
    return jnp.argmax(jnp.where(outside, -jnp.inf, terms), axis=1)


def _sample_regression(
    normal: Float[Array, " slots"],
    gamma: Float[Array, ""],
    node: Int[Array, ""],
    chosen: Int[Array, ""],
    statistics: Statistics,
    prior: ScorePrior,
) -> tuple[Float[Array, ""], Float[Array, " d"], Float[Array, ""]]:
    """Return intercept, weights and noise of one variable in z-scored units, from
    standard normal numbers and a gamma variable.
    """
    d, max_parents = statistics.count.shape[0], normal.shape[0] - 1
    members = parent_set_members(d, max_parents, node)[chosen]
    matrix = regression_matrix(statistics.gram[node], members[None], node, prior)
    # The last pivot is 2 b_n, and b_n over a Gamma(a_n) draw is a draw of the variance,
    # InverseGamma(a_n, b_n).
    deviation = jnp.sqrt(pivots(matrix)[0, -1] / 2 / gamma)
    factor = jnp.linalg.cholesky(matrix[0, :-1, :-1])
    solve = jax.scipy.linalg.solve_triangular
    # With precision Ln = L L^T: mean and deviation share the second solve, since
    # L^-T (L^-1 X^T y + s e) has mean Ln^-1 X^T y and covariance s^2 Ln^-1.
    half = solve(factor, matrix[0, :-1, -1], lower=True) + deviation * normal
    weights = solve(factor, half, lower=True, trans=1)
    spread = jnp.zeros(d, weights.dtype).at[members].set(weights[1:], mode="drop")
    return weights[0], spread, deviation


def sample_model(
    key: PRNGKeyArray,
    values: Float[Array, "rows d"],
    intervened: Bool[Array, "rows d"],
    row_mask: Bool[Array, " rows"],
    var_mask: Bool[Array, " d"],
    *,
    max_parents: int = 3,
) -> SampledModel:
    """Draw one model from the posterior under the order prior, for jit and vmap.

    Mapped over keys alone, the sums over orders are computed once for all draws.
    """
    prior = ScorePrior()
    statistics = gather_statistics(values, intervened, row_mask, var_mask)
    scores = constrained_scores(statistics, var_mask, max_parents=max_parents)
    parents_key, normal_key, gamma_key = jax.random.split(key, 3)
    chosen = _sample_parents(parents_key, scores, max_parents)
    d, dtype = var_mask.shape[0], scores.dtype
    shapes = prior.noise_shape + statistics.count / 2
    normal = jax.random.normal(normal_key, (d, max_parents + 1), dtype)
    gamma = jax.random.gamma(gamma_key, shapes, dtype=dtype)
    draw = lambda n, g, j, c: _sample_regression(n, g, j, c, statistics, prior)
    base, weights, noise = jax.vmap(draw)(normal, gamma, jnp.arange(d), chosen)
    # Back to the units of the data.
    mean, scale = statistics.mean, statistics.scale
    weight = weights.T * (scale[None, :] / scale[:, None])
    weight = jnp.where(var_mask[:, None] & var_mask[None, :], weight, 0)
    intercept = mean + scale * base - jnp.matmul(mean, weight, precision="highest")
    there = lambda x: jnp.where(var_mask, x, 0)
    return SampledModel(weight, there(intercept), there(scale * noise))


def expected_target(
    model: SampledModel, target: Index
) -> tuple[Float[Array, " d"], Float[Array, " d"]]:
    """Return intercept and slope of E[target | do(X_i = v)] in v for each variable i.

    Setting a variable moves the target by its total effect times the distance from the
    variable's own mean.
    """
    d = model.intercept.shape[0]
    start = (jnp.arange(d) == target).astype(model.weight.dtype)
    apply = lambda a, b: jnp.matmul(a, b, precision="highest")

    def spread(_: Index, found: tuple[Array, Array]) -> tuple[Array, Array]:
        effect, mean = found
        return (
            start + apply(model.weight, effect),
            model.intercept + apply(mean, model.weight),
        )

    # A path has fewer than d edges, so d rounds are exact.
    effect, mean = jax.lax.fori_loop(0, d, spread, (start, model.intercept))
    return mean[target] - effect * mean, effect


class ExactThompson(eqx.Module):
    """Thompson sampling: draw one model from the posterior, do what is best in it."""

    max_parents: int = eqx.field(static=True, default=3)

    def propose(
        self, key: PRNGKeyArray, history: History, spec: ProblemSpec, truth: Any
    ) -> Action:
        """Return the next intervention."""
        given = *history.rows, spec.mask
        model = sample_model(key, *given, max_parents=self.max_parents)
        return best_end(*expected_target(model, spec.target), spec)


class ExactImprovement(eqx.Module):
    """Expected improvement over models drawn from the posterior.

    Improvement counts from the best mean outcome among the interventions already made,
    or among all ends of ranges where none was made.
    """

    models: int = eqx.field(static=True, default=32)
    max_parents: int = eqx.field(static=True, default=3)

    def propose(
        self, key: PRNGKeyArray, history: History, spec: ProblemSpec, truth: Any
    ) -> Action:
        """Return the next intervention."""
        given = *history.rows, spec.mask
        draw = lambda k: sample_model(k, *given, max_parents=self.max_parents)
        models = jax.vmap(draw)(batch_keys(key, self.models))
        lines = jax.vmap(lambda model: expected_target(model, spec.target))(models)
        at = lambda line, x: spec.sign * (line[0][..., None] + line[1][..., None] * x)
        ends = value_grid(spec, 2)
        outcome = at(lines, ends[None])
        mean = jnp.where(spec.allowed[:, None], outcome.mean(0), jnp.inf)
        tried = at([each.mean(0) for each in lines], history.values.T)
        set_there = history.intervened & history.row_mask[:, None] & spec.allowed[None]
        made = jnp.where(set_there.T, tried, jnp.inf).min()
        best = jnp.where(jnp.isfinite(made), made, mean.min())
        gain = jnp.maximum(best - outcome, 0.0).mean(0)
        # Where no draw improves, the best mean decides.
        return highest(gain - 1e-6 * outcome.mean(0), ends, spec)
