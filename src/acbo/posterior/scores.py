"""Scores of parent sets: exact marginal likelihoods, and baselines from them.

Each variable is a linear function of its parents with an intercept and Gaussian noise
of unknown scale. Weights and noise are integrated out in closed form under a
normal-inverse-gamma prior, and rows in which the variable was set say nothing about
its causes and are left out of its score (several variables may be set in one row).
"""

import math
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln
from jaxtyping import Array, Bool, Float, Int

from acbo.graphs import bucket_parent_sets, parent_set_members, parent_set_membership
from acbo.types import Index
from jaxrig.settings import Checked, Positive

# A finite stand-in for log 0: differences of it are 0, where those of -inf are NaN.
LOG_ZERO = -1e30


@dataclass(frozen=True)
class ScorePrior(Checked):
    """Prior of one regression in z-scored units.

    noise variance ~ InverseGamma(noise_shape, noise_scale); given it, weights are
    N(0, weight_variance * noise variance) and the intercept likewise. The default is
    weak: a cause may well move its effect by three times the noise.
    """

    weight_variance: Positive = 10.0
    intercept_variance: Positive = 1.0
    noise_shape: Positive = 1.0
    noise_scale: Positive = 0.25


class Statistics(eqx.Module):
    """All that the scores need of a data set, whatever its number of rows.

    `gram[j]` is the sum over the rows in which j was not set of the outer products of
    (1, z); `count[j]` is their number. `mean` and `scale` undo the z-scoring.
    """

    gram: Float[Array, "*batch d e e"]
    count: Float[Array, "*batch d"]
    mean: Float[Array, "*batch d"]
    scale: Float[Array, "*batch d"]


def column_scale(
    values: Float[Array, "rows d"],
    intervened: Bool[Array, "rows d"],
    row_mask: Bool[Array, " rows"],
) -> tuple[Float[Array, " d"], Float[Array, " d"]]:
    """Return mean and standard deviation of each column over the observational rows.

    A data set with fewer than two such rows is scaled by all of its rows. A column
    that does not vary keeps its unit.
    """
    observed = row_mask & ~intervened.any(axis=1)
    used = jnp.where(observed.sum() >= 2, observed, row_mask)[:, None]
    used = jnp.broadcast_to(used, values.shape)
    mean = jnp.where(row_mask.any(), jnp.mean(values, axis=0, where=used), 0.0)
    # In parts of the largest: the squares of small units would vanish.
    away = jnp.where(used, values - mean[None], 0)
    most = jnp.abs(away).max(axis=0)
    parts = away / jnp.where(most > 0, most, 1)[None]
    spread = most * jnp.std(parts, axis=0, where=used)
    # What is left of a constant after rounding is no spread.
    least = 8 * jnp.finfo(values.dtype).eps * jnp.abs(mean)
    return mean, jnp.where(spread > least, spread, 1)


def gather_statistics(
    values: Float[Array, "rows d"],
    intervened: Bool[Array, "rows d"],
    row_mask: Bool[Array, " rows"],
    var_mask: Bool[Array, " d"],
) -> Statistics:
    """Gather sufficient statistics of z-scored rows; padding counts zero."""
    mean, scale = column_scale(values, intervened, row_mask)
    there = row_mask[:, None] & var_mask[None, :]
    z = jnp.where(there, (values - mean[None, :]) / scale[None, :], 0)
    ones = jnp.ones((z.shape[0], 1), z.dtype)
    design = jnp.concatenate([ones, z], axis=1)
    used = (there & ~intervened).astype(z.dtype)
    # Accelerators multiply in half precision by default, which would lose the small
    # eigenvalues of nearly dependent parents.
    gram = jnp.einsum("nj,na,nb->jab", used, design, design, precision="highest")
    return Statistics(gram, used.sum(axis=0), mean, scale)


def regression_matrix(
    gram: Float[Array, "e e"],
    members: Int[Array, "sets slots"],
    response: Int[Array, ""],
    prior: ScorePrior,
) -> Float[Array, "sets slots+2 slots+2"]:
    """Return the posterior precision of intercept and weights, with the response.

    Slots whose member is d are unused: they stand alone with precision 1.
    """
    sets, slots = members.shape
    own = jnp.full((sets, 1), response + 1, members.dtype)
    index = jnp.concatenate([jnp.zeros_like(own), members + 1, own], axis=1)
    picked = jnp.pad(gram, (0, 1))[index[:, :, None], index[:, None, :]]
    used = members + 1 < gram.shape[0]
    # 2 b in the corner: eliminating all rows before it leaves 2 b_n there, the prior
    # and the residual sum of squares in one, and no system is solved.
    corners = 1 / prior.intercept_variance, 2 * prior.noise_scale
    weights = jnp.where(used, 1 / prior.weight_variance, 1.0).astype(gram.dtype)
    diagonal = jnp.pad(weights, ((0, 0), (1, 1)), constant_values=((0, 0), corners))
    return picked + diagonal[:, :, None] * jnp.eye(slots + 2, dtype=gram.dtype)[None]


def pivots(matrix: Float[Array, "sets m m"]) -> Float[Array, "sets m"]:
    """Return the pivots of Gaussian elimination: their product is the determinant.

    The last one of a bordered regression is the residual sum of squares. Matrices here
    are tiny and positive definite, so plain elimination is stable, and it runs on all
    of them at once where a Cholesky routine takes one after the other.
    """
    found = []
    for step in range(matrix.shape[1]):
        pivot = matrix[:, step, step]
        found.append(pivot)
        row = matrix[:, step, :]
        matrix = matrix - row[:, :, None] * (row / pivot[:, None])[:, None, :]
    return jnp.stack(found, axis=1)


def node_scores(
    statistics: Statistics, node: Int[Array, ""], max_parents: int, prior: ScorePrior
) -> Float[Array, " sets"]:
    """Return log p(column `node` | parents = S) for every candidate set S.

    With n rows, prior InverseGamma(a, b) and precisions L0 of the k + 1 weights before
    and Ln after the data: log Gamma(a + n/2) - log Gamma(a) + a log b - n/2 log(2 pi)
    + log(|L0| / |Ln|) / 2 - (a + n/2) log(b_n), b_n = b + half the residual sum of
    squares: the evidence of a conjugate normal-inverse-gamma regression.
    """
    gram, count = statistics.gram[node], statistics.count[node]
    d = statistics.count.shape[0]
    members = parent_set_members(d, max_parents, node)
    found = pivots(regression_matrix(gram, members, node, prior))
    size = (members < d).sum(axis=1).astype(gram.dtype)
    shape = prior.noise_shape + count / 2
    # log |Ln| - log |L0|: pivots of unused slots are 1 on both sides and drop out.
    determinants = (
        math.log(prior.intercept_variance)
        + size * math.log(prior.weight_variance)
        + jnp.log(found[:, :-1]).sum(axis=1)
    )
    constant = (
        gammaln(shape)
        - math.lgamma(prior.noise_shape)
        + prior.noise_shape * math.log(prior.noise_scale)
        - count / 2 * math.log(2 * math.pi)
    )
    return constant - determinants / 2 - shape * jnp.log(found[:, -1] / 2)


def local_scores(
    statistics: Statistics, max_parents: int = 3, prior: ScorePrior = ScorePrior()
) -> Float[Array, "d sets"]:
    """Return log p(x_j | parents = S) for every variable j and candidate set S.

    Sets are those of `acbo.graphs`, in that order.
    """
    d = statistics.count.shape[0]
    each = eqx.filter_vmap(node_scores, in_axes=(None, 0, None, None))
    return each(statistics, jnp.arange(d), max_parents, prior)


def constrained_scores(
    statistics: Statistics,
    var_mask: Bool[Array, " d"],
    required: Bool[Array, "d d"] | None = None,
    forbidden: Bool[Array, "d d"] | None = None,
    *,
    max_parents: int = 3,
) -> Float[Array, "d sets"]:
    """Return scores relative to the best allowed set; sets not allowed are `LOG_ZERO`.

    Padded variables are nobody's parent and have no parents, so that they change no
    posterior.
    """
    d = var_mask.shape[0]
    padding = ~(var_mask[:, None] & var_mask[None, :])
    wanted = jnp.zeros((d, d), bool) if required is None else required & ~padding
    banned = padding if forbidden is None else forbidden | padding
    scores = local_scores(statistics, max_parents)
    held = jnp.asarray([parent_set_membership(d, max_parents, j) for j in range(d)])
    wrong = jnp.where(held, banned.T[:, None, :], wanted.T[:, None, :])
    allowed = ~wrong.any(axis=2)
    # Relative to the best, exp of a sum over variables stays within range.
    best = jnp.max(jnp.where(allowed, scores, LOG_ZERO), axis=1, keepdims=True)
    return jnp.where(allowed, scores - best, LOG_ZERO)


def local_posterior(
    values: Float[Array, "rows d"],
    intervened: Bool[Array, "rows d"],
    row_mask: Bool[Array, " rows"],
    var_mask: Bool[Array, " d"],
    target: Index,
    *,
    max_parents: int = 3,
) -> Float[Array, " sets"]:
    """Return the log probability of every parent set by its score alone.

    Quick, but blind to acyclicity: on observational data a child explains the target as
    well as a cause does, so this is a baseline, not a posterior over graphs.
    """
    statistics = gather_statistics(values, intervened, row_mask, var_mask)
    scores = node_scores(statistics, target, max_parents, ScorePrior())
    allowed, _ = bucket_parent_sets(var_mask, target, max_parents)
    return jax.nn.log_softmax(jnp.where(allowed, scores, -jnp.inf))


def parent_marginals(
    logs: Float[Array, " sets"],
    var_mask: Bool[Array, " d"],
    target: Index,
    *,
    max_parents: int = 3,
) -> Float[Array, " d"]:
    """Return P(i is a parent) from log probabilities of parent sets."""
    _, held = bucket_parent_sets(var_mask, target, max_parents)
    return jnp.where(held, jnp.exp(logs)[:, None], 0).sum(axis=0)


THRESHOLD = 3.0  # |t| that counts as significant


def regression_t(
    values: Float[Array, "rows d"],
    intervened: Bool[Array, "rows d"],
    row_mask: Bool[Array, " rows"],
    var_mask: Bool[Array, " d"],
    target: Index,
) -> Float[Array, " d"]:
    """Return t statistics of the regression of the target on all other variables.

    Rows in which the target was set are left out. The target and padded variables have
    0, and so has everything when there are no more rows than unknowns.
    """
    statistics = gather_statistics(values, intervened, row_mask, var_mask)
    gram, count = statistics.gram[target], statistics.count[target]
    places = jnp.arange(var_mask.shape[0])
    free = var_mask & (places != target)
    chosen = jnp.concatenate([jnp.ones(1, bool), free])
    degrees = count - chosen.sum().astype(count.dtype)
    usable = chosen & (degrees > 0)
    pairs = usable[:, None] & usable[None, :]
    unit = jnp.eye(len(chosen), dtype=gram.dtype)
    # Unused rows and columns become those of the identity: fixed shapes, same inverse.
    inverse = jnp.linalg.inv(jnp.where(pairs, gram, unit))
    moments = jnp.where(usable, gram[:, target + 1], 0)
    weights = jnp.matmul(inverse, moments, precision="highest")
    residual = gram[target + 1, target + 1] - (weights * moments).sum()
    variance = jnp.maximum(residual, 0) / jnp.maximum(degrees, 1)
    error = jnp.sqrt(variance * jnp.diagonal(inverse))
    found = weights / jnp.where(error > 0, error, jnp.finfo(error.dtype).tiny)
    return jnp.where(usable & chosen, found, 0)[1:]
