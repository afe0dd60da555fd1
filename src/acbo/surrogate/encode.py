"""Data sets as the network sees them: scaled by column, padded to a bucket."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

VARIABLE_BUCKETS = (4, 8, 16, 32, 64, 128)
# One data set is read once: a program more is worth less work in each reading.
READING_BUCKETS = (4, 8, 12, *VARIABLE_BUCKETS[2:])
ROW_BUCKETS = (32, 128, 512)


def variable_bucket(d: int, buckets: tuple[int, ...] = VARIABLE_BUCKETS) -> int:
    """The smallest bucket that holds d variables."""
    for bucket in buckets:
        if d <= bucket:
            return bucket
    raise ValueError(
        f"{d} variables are more than the largest bucket of {buckets[-1]}: "
        "leave out variables that cannot matter"
    )


def row_bucket(rows: int) -> int:
    """The smallest bucket that holds so many rows; past the last, a multiple of it."""
    for bucket in ROW_BUCKETS:
        if rows <= bucket:
            return bucket
    return -(-rows // ROW_BUCKETS[-1]) * ROW_BUCKETS[-1]


def pad_rows(array: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """Room for so many rows and columns, zeros where there was nothing."""
    extra = ((0, rows - array.shape[0]), (0, columns - array.shape[1]))
    return np.pad(array, extra)


def column_scale(
    values: Float[Array, "n d"],
    intervened: Bool[Array, "n d"],
    row_mask: Bool[Array, " n"],
) -> tuple[Float[Array, " d"], Float[Array, " d"]]:
    """Mean and deviation of each column over its observational rows.

    A data set with fewer than two such rows is scaled by all of its rows. A column
    that does not vary keeps its unit.
    """
    observed = row_mask & ~intervened.any(axis=1)
    used = jnp.where(observed.sum() >= 2, observed, row_mask)[:, None]
    used = jnp.broadcast_to(used, values.shape)
    mean = jnp.where(row_mask.any(), jnp.mean(values, axis=0, where=used), 0.0)
    spread = jnp.std(values, axis=0, where=used)
    return mean, jnp.where(spread > 1e-6 * (1 + jnp.abs(mean)), spread, 1.0)


def standardize(
    values: Float[Array, "n d"],
    intervened: Bool[Array, "n d"],
    row_mask: Bool[Array, " n"],
    var_mask: Bool[Array, " d"],
) -> Float[Array, "n d"]:
    """Z-scores by column, 0 in the padding."""
    mean, spread = column_scale(values, intervened, row_mask)
    there = row_mask[:, None] & var_mask[None, :]
    return jnp.where(there, (values - mean[None]) / spread[None], 0.0)
