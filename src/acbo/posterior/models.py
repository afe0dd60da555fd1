"""Linear models drawn from the exact posterior, and their expected outcomes.

An order is drawn from the sums over orders, parents given their predecessors, then
weights and noise of each regression: no chain, every draw is independent and exact.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from acbo.graphs import parent_set_members
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
    return SampledModel(
        weight != 0,
        weight,
        jnp.where(var_mask, intercept, 0),
        jnp.where(var_mask, scale * noise, 0),
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
