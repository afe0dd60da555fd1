"""Scoring the parent sets of the target alone: quick, but blind to acyclicity.

On observational data a child explains the target as well as a cause does, so this is a
baseline, not a posterior over graphs.
"""

from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from acbo.experts.scores import ScorePrior, gather_statistics, node_scores
from acbo.experts.tables import padded_arrays, parent_posterior_of, read_problem
from acbo.graphs.parent_sets import bucket_parent_sets, check_max_parents
from acbo.posterior import ParentSetPosterior
from acbo.types import Index
from jaxrig.tracing import compile_once


def local_posterior(
    values: Float[Array, "rows d"],
    intervened: Bool[Array, "rows d"],
    row_mask: Bool[Array, " rows"],
    var_mask: Bool[Array, " d"],
    target: Index,
    *,
    max_parents: int = 3,
    score_prior: ScorePrior | None = None,
) -> Float[Array, " sets"]:
    """Log probability of every parent set by its score alone, for jit and vmap."""
    statistics = gather_statistics(values, intervened, row_mask, var_mask)
    scores = node_scores(statistics, target, max_parents, score_prior or ScorePrior())
    allowed, _ = bucket_parent_sets(var_mask, target, max_parents)
    return jax.nn.log_softmax(jnp.where(allowed, scores, -jnp.inf))


def marginals_of(
    logs: Float[Array, " sets"],
    var_mask: Bool[Array, " d"],
    target: Index,
    *,
    max_parents: int = 3,
) -> Float[Array, " d"]:
    """P(i is a parent) for every variable from log probabilities of parent sets."""
    _, held = bucket_parent_sets(var_mask, target, max_parents)
    return jnp.where(held, jnp.exp(logs)[:, None], 0).sum(axis=0)


_compiled = compile_once(local_posterior, max_traces=None)


def local_parent_posterior(
    values: Any,
    intervened: Any,
    target: Any,
    *,
    max_parents: int = 3,
    names: Iterable[Any] | None = None,
    score_prior: ScorePrior | None = None,
) -> ParentSetPosterior:
    """Parent sets of the target weighed by their own score, ignoring all else.

    The arguments are those of `acbo.experts.exact.exact_parent_posterior`.
    """
    check_max_parents(max_parents)
    table = read_problem(values, intervened, target, names)
    with jax.enable_x64(True):
        logs = _compiled(
            *padded_arrays(table),
            jnp.asarray(table.target),
            max_parents=max_parents,
            score_prior=score_prior,
        )
    return parent_posterior_of(table, np.asarray(logs), max_parents, "local")
