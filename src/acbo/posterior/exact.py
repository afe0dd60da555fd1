"""Exact posteriors of linear-Gaussian structure: parent sets and edges, on the device.

They average over every graph of bounded in-degree, so that a child of the target is not
taken for a cause, and use interventional rows node by node.
"""

from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from acbo.graphs import parent_set_membership
from acbo.posterior import inputs
from acbo.posterior.dag_sums import parent_set_probs
from acbo.posterior.distribution import ParentSetPosterior
from acbo.posterior.scores import (
    ScorePrior,
    constrained_scores,
    gather_statistics,
)
from acbo.types import Index, check_known
from jaxrig.compile_guard import compile_once

# Above these sizes the tables (3**d and 2**d entries) outgrow memory and time.
MAX_VARIABLES = {"dag": 13, "order": 16}


def check_structure_prior(prior: str, d: int) -> str:
    """Return the prior over structures; ValueError if d is too many for it."""
    check_known(prior, MAX_VARIABLES, "prior")
    if d > MAX_VARIABLES[prior]:
        raise ValueError(
            f"{d} variables are too many to sum over all structures: prior={prior!r} "
            f"takes up to {MAX_VARIABLES[prior]} (dag 13, order 16), drop some columns"
        )
    return prior


def set_posterior(
    values: Float[Array, "rows d"],
    intervened: Bool[Array, "rows d"],
    row_mask: Bool[Array, " rows"],
    var_mask: Bool[Array, " d"],
    required: Bool[Array, "d d"] | None = None,
    forbidden: Bool[Array, "d d"] | None = None,
    *,
    max_parents: int = 3,
    prior: str = "order",
    score_prior: ScorePrior | None = None,
) -> Float[Array, "d sets"]:
    """Return P(parents of j = S | data) over variables and sets, for jit and vmap.

    The sets are those of `acbo.graphs.bucket_parent_sets`. `prior` is "order" (graphs
    count once for each order they fit; fit for single precision) or "dag" (each graph
    counts once; rounding grows with d).
    """
    check_structure_prior(prior, var_mask.shape[0])
    scores = constrained_scores(
        gather_statistics(values, intervened, row_mask, var_mask),
        var_mask,
        required,
        forbidden,
        max_parents=max_parents,
        score_prior=score_prior,
    )
    return parent_set_probs(scores, max_parents, prior)


def parent_posterior(
    values: Float[Array, "rows d"],
    intervened: Bool[Array, "rows d"],
    row_mask: Bool[Array, " rows"],
    var_mask: Bool[Array, " d"],
    target: Index,
    *,
    max_parents: int = 3,
) -> Float[Array, " sets"]:
    """Return log P(parents of the target = S | data); -inf for sets that cannot be."""
    data = values, intervened, row_mask, var_mask
    return jnp.log(set_posterior(*data, max_parents=max_parents)[target])


# Rows are padded to powers of two and d is at most 16, so even a sweep over data sets
# stays far below this; more means that a number is passed where an array belongs.
_compiled = compile_once(set_posterior, max_traces=256)


def exact_parent_posterior(
    values: Any,
    intervened: Any,
    target: Any,
    *,
    max_parents: int = 3,
    required: Iterable[Any] = (),
    forbidden: Iterable[Any] = (),
    tiers: Iterable[Any] | None = None,
    prior: str = "dag",
    names: Iterable[Any] | None = None,
    score_prior: ScorePrior | None = None,
) -> ParentSetPosterior:
    """Return the posterior over parent sets of a target, averaged over every graph.

    `values` is an array [rows, variables] or a pandas frame, whose columns are then the
    names; `intervened` marks the cells that were set by intervention (None: none were);
    `target` is a name or a column. `required` and `forbidden` hold (parent, child)
    pairs, and `tiers` groups of variables none of which is caused by a later group.

    Graphs with at most `max_parents` parents a variable count once each (prior "dag"),
    or once for each order of the variables they fit (prior "order", for more than 13
    variables). Computed in double precision; probabilities are exact to about 1e-9,
    which under "dag" is absolute: rarer sets may show as 0.
    """
    table = inputs.check_data(values, intervened, target, names)
    rules = required, forbidden, tiers
    chances = _solve(table, rules, max_parents, prior, score_prior)[table.target]
    return inputs.make_posterior(table, chances, max_parents, f"exact-{prior}")


def exact_edge_posterior(
    values: Any,
    intervened: Any = None,
    *,
    max_parents: int = 3,
    required: Iterable[Any] = (),
    forbidden: Iterable[Any] = (),
    tiers: Iterable[Any] | None = None,
    prior: str = "dag",
    names: Iterable[Any] | None = None,
    score_prior: ScorePrior | None = None,
) -> np.ndarray:
    """Return P(i causes j) for all pairs of columns, averaged over every graph.

    The arguments are those of `exact_parent_posterior`.
    """
    table = inputs.check_data(values, intervened, None, names)
    rules = required, forbidden, tiers
    chances = _solve(table, rules, max_parents, prior, score_prior)
    d = len(table.names)
    held = [parent_set_membership(d, max_parents, j) for j in range(d)]
    return np.einsum("jk,jki->ij", chances, held)


def _solve(
    table: inputs.CheckedData,
    rules: tuple[Iterable[Any], Iterable[Any], Iterable[Any] | None],
    max_parents: int,
    prior: str,
    score_prior: ScorePrior | None,
) -> Float[np.ndarray, "d sets"]:
    """Check required and forbidden edges and tiers, then run in double precision."""
    wanted, banned = inputs.edge_rules(table.names, *rules, max_parents=max_parents)
    check_structure_prior(prior, len(table.names))
    # Inclusion-exclusion cancels: see the error bound of `sum_graphs`.
    with jax.enable_x64(True):
        chances = _compiled(
            *inputs.pad_rows(table),
            jnp.asarray(wanted),
            jnp.asarray(banned),
            max_parents=max_parents,
            prior=prior,
            score_prior=score_prior,
        )
        return np.asarray(chances)
