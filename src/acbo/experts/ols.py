"""The one-line baseline: regress the target on everything, keep what is significant."""

from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from acbo.experts.scores import gather_statistics
from acbo.experts.tables import padded_arrays, read_problem
from acbo.types import Index
from jaxrig.tracing import compile_once

THRESHOLD = 3.0


def regression_t(
    values: Float[Array, "rows d"],
    intervened: Bool[Array, "rows d"],
    row_mask: Bool[Array, " rows"],
    var_mask: Bool[Array, " d"],
    target: Index,
) -> Float[Array, " d"]:
    """t statistic of every variable in the regression of the target on all others.

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
    inverse = jnp.linalg.inv(jnp.where(pairs, gram, unit))
    moments = jnp.where(usable, gram[:, target + 1], 0)
    weights = jnp.matmul(inverse, moments, precision="highest")
    residual = gram[target + 1, target + 1] - (weights * moments).sum()
    variance = jnp.maximum(residual, 0) / jnp.maximum(degrees, 1)
    error = jnp.sqrt(variance * jnp.diagonal(inverse))
    found = weights / jnp.where(error > 0, error, jnp.finfo(error.dtype).tiny)
    return jnp.where(usable & chosen, found, 0)[1:]


def ols_inclusion(
    values: Float[Array, "rows d"],
    intervened: Bool[Array, "rows d"],
    row_mask: Bool[Array, " rows"],
    var_mask: Bool[Array, " d"],
    target: Index,
    threshold: float = THRESHOLD,
) -> Float[Array, " d"]:
    """1 for the variables with |t| above the threshold and 0 for others."""
    found = regression_t(values, intervened, row_mask, var_mask, target)
    return (jnp.abs(found) > threshold).astype(values.dtype)


_compiled = compile_once(regression_t, max_traces=None)


def ols_parents(
    values: Any,
    intervened: Any,
    target: Any,
    *,
    threshold: float = THRESHOLD,
    names: Iterable[Any] | None = None,
) -> dict[str, float]:
    """The variables with |t| above the threshold, with their t statistics.

    The arguments are those of `acbo.experts.exact.exact_parent_posterior`.
    """
    table = read_problem(values, intervened, target, names)
    with jax.enable_x64(True):
        found = _compiled(*padded_arrays(table), jnp.asarray(table.target))
    listed = zip(table.names, np.asarray(found).tolist(), strict=True)
    return {name: t for name, t in listed if abs(t) > threshold}
