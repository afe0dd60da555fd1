"""Linear models drawn from the exact posterior, and their expected outcomes.

An order is drawn from the sums over orders, parents given their predecessors, then
weights and noise of each regression: no chain, every draw is independent and exact.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from acbo.graphs import parent_set_members
from acbo.posterior.dag_sums import set_masks, sum_orders_into, sum_parent_sets
from acbo.posterior.scores import (
    ScorePrior,
    Statistics,
    constrained_scores,
    gather_statistics,
    pivots,
    regression_matrix,
)
from acbo.types import Index


class SampledModel(eqx.Module):
    """A linear-Gaussian model in the units of the data; entry [i, j] is about i -> j.

    x_j = intercept[j] + sum_i weight[i, j] x_i + noise_scale[j] N(0, 1).
    """

    adjacency: Bool[Array, "*batch d d"]
    weight: Float[Array, "*batch d d"]
    intercept: Float[Array, "*batch d"]
    noise_scale: Float[Array, "*batch d"]


class TargetLines(eqx.Module):
    """E[target | do(X_i = v)] = intercept[i] + slope[i] v for every variable i."""

    intercept: Float[Array, "*batch d"]
    slope: Float[Array, "*batch d"]


class _Regression(NamedTuple):
    intercept: Float[Array, ""]
    weights: Float[Array, " d"]
    noise: Float[Array, ""]


class _Randomness(NamedTuple):
    """All that is random about one model, drawn at once: fewer programs to compile."""

    order: Float[Array, "d d"]  # Gumbel
    parents: Float[Array, "d sets"]  # Gumbel
    weights: Float[Array, "d slots"]  # normal
    noise: Float[Array, " d"]  # gamma


def _draw_randomness(
    key: PRNGKeyArray,
    scores: Float[Array, "d sets"],
    shapes: Float[Array, " d"],
    max_parents: int,
) -> _Randomness:
    order, parents, weights, noise = jax.random.split(key, 4)
    d, dtype = len(shapes), scores.dtype
    return _Randomness(
        jax.random.gumbel(order, (d, d), dtype),
        jax.random.gumbel(parents, scores.shape, dtype),
        jax.random.normal(weights, (d, max_parents + 1), dtype),
        jax.random.gamma(noise, shapes, dtype=dtype),
    )


def _sample_predecessors(
    randomness: Float[Array, "d d"], sums: Float[Array, "d subsets"]
) -> Int[Array, " d"]:
    """Draw an order from the posterior; return the variables before each, as bits."""
    d, subsets = sums.shape
    into = sum_orders_into(sums)
    bits = jnp.left_shift(1, jnp.arange(d))

    def take_last(left: Int[Array, ""], randomness: Float[Array, " d"]):
        there = jnp.bitwise_and(left, bits) > 0
        before = jnp.where(there, jnp.bitwise_xor(left, bits), 0)
        terms = into[before] + sums[jnp.arange(d), before] + randomness
        # Gumbel-max: the largest perturbed log weight is a draw by weight.
        last = jnp.argmax(jnp.where(there, terms, -jnp.inf))
        return before[last], (last, before[last])

    full = jnp.asarray(subsets - 1, bits.dtype)
    _, (order, before) = jax.lax.scan(take_last, full, randomness)
    return jnp.zeros(d, bits.dtype).at[order].set(before)


def _sample_parents(
    randomness: Float[Array, "d sets"],
    scores: Float[Array, "d sets"],
    predecessors: Int[Array, " d"],
    max_parents: int,
) -> Int[Array, " d"]:
    """Draw a parent set of each variable within its predecessors, by index."""
    masks = jnp.asarray(set_masks(scores.shape[0], max_parents), predecessors.dtype)
    outside = jnp.bitwise_and(masks, ~predecessors[:, None]) > 0
    return jnp.argmax(jnp.where(outside, -jnp.inf, scores + randomness), axis=1)


def _sample_regression(
    randomness: tuple[Float[Array, " slots"], Float[Array, ""]],
    statistics: Statistics,
    node: Int[Array, ""],
    chosen: Int[Array, ""],
    max_parents: int,
    prior: ScorePrior,
) -> _Regression:
    """Draw intercept, weights and noise of one variable in z-scored units."""
    normal, gamma = randomness
    d = statistics.count.shape[0]
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
    return _Regression(weights[0], spread, deviation)


def sample_model(
    key: PRNGKeyArray,
    values: Float[Array, "rows d"],
    intervened: Bool[Array, "rows d"],
    row_mask: Bool[Array, " rows"],
    var_mask: Bool[Array, " d"],
    required: Bool[Array, "d d"] | None = None,
    forbidden: Bool[Array, "d d"] | None = None,
    *,
    max_parents: int = 3,
    score_prior: ScorePrior | None = None,
) -> SampledModel:
    """Draw one model from the posterior under the order prior, for jit and vmap.

    Mapped over keys alone, the sums over orders are computed once for all draws.
    """
    prior = score_prior or ScorePrior()
    statistics = gather_statistics(values, intervened, row_mask, var_mask)
    scores = constrained_scores(
        statistics,
        var_mask,
        required,
        forbidden,
        max_parents=max_parents,
        score_prior=prior,
    )
    shapes = prior.noise_shape + statistics.count / 2
    randomness = _draw_randomness(key, scores, shapes, max_parents)
    predecessors = _sample_predecessors(
        randomness.order, sum_parent_sets(scores, max_parents)
    )
    chosen = _sample_parents(randomness.parents, scores, predecessors, max_parents)
    draw = lambda randomness, j, c: _sample_regression(
        randomness, statistics, j, c, max_parents, prior
    )
    nodes = jnp.arange(var_mask.shape[0])
    found = jax.vmap(draw)((randomness.weights, randomness.noise), nodes, chosen)
    return _in_units_of_the_data(found, statistics, var_mask)


def _in_units_of_the_data(
    found: _Regression, statistics: Statistics, var_mask: Bool[Array, " d"]
) -> SampledModel:
    mean, scale = statistics.mean, statistics.scale
    weight = found.weights.T * (scale[None, :] / scale[:, None])
    weight = jnp.where(var_mask[:, None] & var_mask[None, :], weight, 0)
    shift = jnp.matmul(mean, weight, precision="highest")
    intercept = mean + scale * found.intercept - shift
    return SampledModel(
        weight != 0,
        weight,
        jnp.where(var_mask, intercept, 0),
        jnp.where(var_mask, scale * found.noise, 0),
    )


def expected_target(model: SampledModel, target: Index) -> TargetLines:
    """Return E[target | do(X_i = v)] of a model, for each variable i, in closed form.

    Setting a variable moves the target by its total effect times the distance from the
    variable's own mean.
    """
    d = model.intercept.shape[0]
    start = (jnp.arange(d) == target).astype(model.weight.dtype)

    def spread(_: Index, found: tuple[Array, Array]) -> tuple[Array, Array]:
        effect, mean = found
        apply = lambda a, b: jnp.matmul(a, b, precision="highest")
        return (
            start + apply(model.weight, effect),
            model.intercept + apply(mean, model.weight),
        )

    # A path has fewer than d edges, so d rounds are exact.
    effect, mean = jax.lax.fori_loop(0, d, spread, (start, model.intercept))
    return TargetLines(mean[target] - effect * mean, effect)
