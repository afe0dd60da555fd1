"""Data sets as the network sees them: scaled by column, padded to a bucket, with
closed-form statistics of each ordered pair of variables.

Linear models leave all their evidence in second moments; given these, the network need
not learn them row by row. Every statistic of i -> j leaves out the rows in which j was
set, where j tells nothing about its causes.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from acbo.posterior.scores import column_scale

VARIABLE_BUCKETS = (4, 8, 16, 32, 64, 128)
# One data set is read once: a program more is worth less work in each reading, which
# grows with the square of the variables, and with their cube where pairs meet.
READING_BUCKETS = (4, 8, 12, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128)
ROW_BUCKETS = (32, 128, 512)


def variable_bucket(d: int, buckets: tuple[int, ...] = VARIABLE_BUCKETS) -> int:
    """Return the smallest bucket that holds d variables."""
    for bucket in buckets:
        if d <= bucket:
            return bucket
    raise ValueError(
        f"{d} variables are more than the largest bucket of {buckets[-1]}: "
        "leave out variables that cannot matter"
    )


def row_bucket(rows: int) -> int:
    """Return the smallest bucket of so many rows; past the last, a multiple of it."""
    for bucket in ROW_BUCKETS:
        if rows <= bucket:
            return bucket
    return -(-rows // ROW_BUCKETS[-1]) * ROW_BUCKETS[-1]


def pad_rows(array: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """Return the array padded with zeros to this number of rows and columns."""
    extra = [(0, rows - array.shape[0]), (0, columns - array.shape[1])]
    return np.pad(array, extra + [(0, 0)] * (array.ndim - 2))


def centered(values: np.ndarray) -> np.ndarray:
    """Return the columns less their means, rounded to single precision only then."""
    values = np.asarray(values, np.float64)
    return (values - values.mean(axis=0)).astype(np.float32)


def standardize(
    values: Float[Array, "n d"],
    intervened: Bool[Array, "n d"],
    row_mask: Bool[Array, " n"],
    var_mask: Bool[Array, " d"],
) -> Float[Array, "n d"]:
    """Return z-scores by column, 0 in the padding."""
    there = row_mask[:, None] & var_mask[None, :]
    mean, spread = column_scale(values, intervened & there, row_mask)
    return jnp.where(there, (values - mean[None]) / spread[None], 0.0)


CERTAIN = 1e6  # t value of a variable explained by itself


def squash(x: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """Sign and logarithm: large evidence stays large without ruling the rest."""
    return jnp.sign(x) * jnp.log1p(jnp.abs(x))


def sweep_out(
    matrix: Float[Array, "*b k k"],
) -> tuple[Float[Array, "*b k k"], Float[Array, "*b"]]:
    """Return inverse and log determinant of positive definite matrices, one pivot at a
    time.

    Batches of small matrices: a scan of rank-one updates runs everywhere at the
    memory's speed, where a library call would take them one by one.
    """
    size = matrix.shape[-1]

    # Sweep operator (Goodnight, 1979): after all pivots the matrix is minus its
    # inverse, in its own place, and the pivots multiply to the determinant.
    def sweep(a: Float[Array, "*b k k"], pivot: Int[Array, ""]):
        row = jnp.take(a, pivot, axis=-2)
        column = jnp.take(a, pivot, axis=-1)
        corner = jnp.take(row, pivot, axis=-1)[..., None, None]
        here = jnp.arange(size) == pivot
        rest = a - column[..., :, None] * row[..., None, :] / corner
        edge = jnp.where(here[:, None], row[..., None, :], column[..., :, None])
        cross = here[:, None] ^ here[None, :]
        both = here[:, None] & here[None, :]
        a = jnp.where(cross, edge / corner, rest)
        return jnp.where(both, -1.0 / corner, a), corner[..., 0, 0]

    swept, pivots = jax.lax.scan(sweep, matrix, jnp.arange(size))
    return -swept, jnp.log(pivots).sum(axis=0)


def moments_by_effect(
    z: Float[Array, "n d"], free: Float[Array, "n d"]
) -> Float[Array, "d k k"]:
    """Second moments of all variables and 1 over the rows where each was free."""
    ones = jnp.ones((z.shape[0], 1), z.dtype)
    wide = jnp.concatenate([z, ones], axis=1)
    return jnp.einsum("nj,na,nb->jab", free, wide, wide)


def _regressions(
    z: Float[Array, "n d"], free: Float[Array, "n d"]
) -> tuple[Float[Array, "d d"], Float[Array, "d d"]]:
    """Return each variable on all others over the rows where it was free, with a unit
    ridge: coefficients and t values, both [cause, effect].
    """
    d = z.shape[1]
    gram = moments_by_effect(z, free)
    inverse = sweep_out(gram + jnp.eye(d + 1)[None])[0][:, :d, :d]
    pivot = jnp.einsum("jjj->j", inverse)
    toward = jnp.einsum("jaj->aj", inverse)  # [cause, effect]
    # From the inverse P of the joint moments: column j regressed on all others has
    # slopes -P_aj / P_jj and residual sum of squares 1 / P_jj, so that one inverse per
    # effect serves all of its causes.
    slope = -toward / pivot[None]
    count = jnp.maximum(free.sum(axis=0), 1.0)
    noise = 1.0 / (pivot * count)
    diagonal = jnp.einsum("jaa->aj", inverse)
    # The inverse of the moments without j, by the Schur complement.
    variance = noise[None] * (diagonal - jnp.square(toward) / pivot[None])
    t = slope / jnp.sqrt(jnp.maximum(variance, 1e-12))
    own = jnp.eye(d, dtype=bool)  # on itself: certain, and rounding must not decide
    return jnp.where(own, -1.0, slope), jnp.where(own, -CERTAIN, t)


def _correlations(
    z: Float[Array, "n d"], free: Float[Array, "n d"]
) -> tuple[Float[Array, "d d"], Float[Array, " d"]]:
    """Return correlations [i, j] over the rows where j was free, and their count."""
    count = jnp.maximum(free.sum(axis=0), 1.0)
    mean = jnp.einsum("ni,nj->ij", z, free) / count[None]
    square = jnp.einsum("ni,nj->ij", jnp.square(z), free) / count[None]
    product = jnp.einsum("ni,nj->ij", z, free * z) / count[None]
    own = jnp.diagonal(mean)
    spread_i = jnp.sqrt(jnp.maximum(square - jnp.square(mean), 1e-6))
    spread_j = jnp.diagonal(spread_i)
    covariance = product - mean * own[None]
    return jnp.clip(covariance / (spread_i * spread_j[None]), -0.9999, 0.9999), count


class PairFeatures(NamedTuple):
    """What the rows say about whether i causes j, each [i, j]; "back" is of j -> i.

    Large numbers are squashed.
    """

    correlation: Float[Array, "d d"]  # over observational rows
    correlation_z: Float[Array, "d d"]  # Fisher's z of it, in standard errors
    correlation_free: Float[Array, "d d"]  # over all rows where j was free
    log_evidence: Float[Array, "d d"]  # log(1 + log likelihood ratio) of it
    slope: Float[Array, "d d"]  # of i in the regression of j on all others
    t_value: Float[Array, "d d"]
    slope_back: Float[Array, "d d"]
    t_value_back: Float[Array, "d d"]
    effect: Float[Array, "d d"]  # regression of j on i over rows where i was set
    effect_t: Float[Array, "d d"]
    effect_back: Float[Array, "d d"]
    effect_t_back: Float[Array, "d d"]
    times_cause_set: Float[Array, "d d"]  # log(1 + rows where i was set)
    times_effect_set: Float[Array, "d d"]
    observational_rows: Float[Array, "d d"]
    interventional_rows: Float[Array, "d d"]
    is_itself: Float[Array, "d d"]  # 1 where i is j


PAIR_FEATURES = len(PairFeatures._fields)


def pair_statistics(
    z: Float[Array, "n d"],
    intervened: Bool[Array, "n d"],
    row_mask: Bool[Array, " n"],
    var_mask: Bool[Array, " d"],
) -> Float[Array, "d d f"]:
    """Return features [i, j, :] of whether i causes j; 0 in the padding."""
    d = z.shape[1]
    rows = row_mask[:, None]
    observed = row_mask & ~intervened.any(axis=1)
    free = (rows & ~intervened).astype(z.dtype)
    seen = jnp.broadcast_to(observed[:, None], z.shape).astype(z.dtype)
    passive, n_observed = _correlations(z, seen)
    active, n_free = _correlations(z, free)
    slope, t = _regressions(z, free)
    acted = (rows & intervened).astype(z.dtype)
    power = jnp.einsum("ni,nj->ij", acted * jnp.square(z), free)
    effect = jnp.einsum("ni,nj->ij", acted * z, free * z)
    effect_t = effect / jnp.sqrt(power + 1e-3)
    effect = effect / (power + 0.1)
    times = jnp.log1p(acted.sum(axis=0))
    # -n/2 log(1 - r^2): what a Gaussian likelihood gains by the one regressor.
    gain = -0.5 * n_free[None] * jnp.log1p(-jnp.square(active))
    whole = jnp.ones((d, d), z.dtype)
    set_rows = jnp.log1p((row_mask & ~observed).sum().astype(z.dtype))
    features = PairFeatures(
        correlation=passive,
        correlation_z=squash(jnp.arctanh(passive) * jnp.sqrt(n_observed)[None]),
        correlation_free=active,
        log_evidence=jnp.log1p(gain),
        slope=squash(slope),
        t_value=squash(t),
        slope_back=squash(slope.T),
        t_value_back=squash(t.T),
        effect=squash(effect),
        effect_t=squash(effect_t),
        effect_back=squash(effect.T),
        effect_t_back=squash(effect_t.T),
        times_cause_set=whole * times[:, None],
        times_effect_set=whole * times[None, :],
        observational_rows=whole * (jnp.log1p(observed.sum().astype(z.dtype)) - 3.5),
        interventional_rows=whole * set_rows / 3.0,
        is_itself=jnp.eye(d, dtype=z.dtype),
    )
    there = (var_mask[:, None] & var_mask[None, :])[..., None]
    return jnp.where(there, jnp.stack(features, axis=-1), 0.0)
