"""Exact posteriors of linear-Gaussian structure: parent sets and edges, on the device.

They average over every graph of bounded in-degree, so that a child of the target is not
taken for a cause, and use interventional rows node by node.
"""

from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from acbo.posterior import dag_sums, inputs
from acbo.posterior.distribution import ParentSetPosterior
from acbo.posterior.scores import (
    LOG_ZERO,
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


def parent_set_log_probs(
    scores: Float[Array, "d sets"], target: Index, max_parents: int, prior: str
) -> Float[Array, " sets"]:
    """Return log P(parents of the target = S) for every candidate set, from scores."""
    check_structure_prior(prior, scores.shape[0])
    sums = dag_sums.sum_parent_sets(scores, max_parents)
    masks = jnp.asarray(dag_sums.set_masks(scores.shape[0], max_parents))[target]
    # P(S) sums over the predecessor sets W that hold S, each weighed by S's share in W.
    spread = lambda logs: dag_sums.sum_supersets((logs - sums[target])[None])[0, masks]
    if prior == "order":
        found = scores[target] + spread(dag_sums.predecessor_weights(sums)[target])
    else:
        weights = dag_sums.layer_weights(sums)[target]
        logs = jnp.log(jnp.where(weights == 0, 1, jnp.abs(weights)))
        # Gains and losses apart, each as logs of positive terms, subtracted once.
        gain = spread(jnp.where(weights > 0, logs, LOG_ZERO))
        loss = spread(jnp.where(weights < 0, logs, LOG_ZERO))
        chance = jnp.exp(scores[target] + gain) - jnp.exp(scores[target] + loss)
        found = jnp.where(
            chance > 0, jnp.log(jnp.where(chance > 0, chance, 1)), LOG_ZERO
        )
    return jnp.where(found > LOG_ZERO / 2, found, -jnp.inf)


def edge_probs(
    scores: Float[Array, "d sets"], max_parents: int, prior: str
) -> Float[Array, "d d"]:
    """Return P(i causes j) for all pairs [i, j], from scores."""
    d = scores.shape[0]
    check_structure_prior(prior, d)
    sums = dag_sums.sum_parent_sets(scores, max_parents)
    if prior == "order":
        weights = jnp.exp(dag_sums.predecessor_weights(sums))
    else:
        weights = dag_sums.layer_weights(sums)
    rows = []
    for parent in range(d):
        without, holding = dag_sums.split_on_element(sums, parent)
        # The sets within W that leave a variable out are those within W less it.
        share = -jnp.expm1(jnp.minimum(without - holding, 0))
        rows.append((dag_sums.split_on_element(weights, parent)[1] * share).sum(axis=1))
    return jnp.clip(jnp.stack(rows), 0, 1)


def parent_posterior(
    values: Float[Array, "rows d"],
    intervened: Bool[Array, "rows d"],
    row_mask: Bool[Array, " rows"],
    var_mask: Bool[Array, " d"],
    target: Index,
    required: Bool[Array, "d d"] | None = None,
    forbidden: Bool[Array, "d d"] | None = None,
    *,
    max_parents: int = 3,
    prior: str = "order",
    score_prior: ScorePrior | None = None,
) -> Float[Array, " sets"]:
    """Return log P(parents of the target = S | data) over sets, for jit and vmap.

    The sets are those of `acbo.graphs.bucket_parent_sets`; sets that cannot
    be have -inf. `prior` is "order" (graphs count once for each order they fit; fit for
    single precision) or "dag" (each graph counts once; rounding grows with d).
    """
    statistics = gather_statistics(values, intervened, row_mask, var_mask)
    options: dict[str, Any] = {"max_parents": max_parents, "score_prior": score_prior}
    scores = constrained_scores(statistics, var_mask, required, forbidden, **options)
    return parent_set_log_probs(scores, target, max_parents, prior)


def edge_posterior(
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
) -> Float[Array, "d d"]:
    """Return P(i causes j | data) for all pairs [i, j]; see `parent_posterior`."""
    statistics = gather_statistics(values, intervened, row_mask, var_mask)
    options: dict[str, Any] = {"max_parents": max_parents, "score_prior": score_prior}
    scores = constrained_scores(statistics, var_mask, required, forbidden, **options)
    return edge_probs(scores, max_parents, prior)


# Rows are padded to powers of two and d is at most 16, so even a sweep over data sets
# stays far below this; more means that a number is passed where an array belongs.
_compiled_parents = compile_once(parent_posterior, max_traces=256)
_compiled_edges = compile_once(edge_posterior, max_traces=256)


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
    edges = required, forbidden, tiers
    column = jnp.asarray(table.target)
    options = {"max_parents": max_parents, "prior": prior, "score_prior": score_prior}
    logs = _solve(_compiled_parents, table, (column,), edges, options)
    return inputs.make_posterior(table, logs, max_parents, f"exact-{prior}")


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
    edges = required, forbidden, tiers
    options = {"max_parents": max_parents, "prior": prior, "score_prior": score_prior}
    return _solve(_compiled_edges, table, (), edges, options)


def _solve(
    compiled: Callable[..., Array],
    table: inputs.CheckedData,
    target: tuple[Array, ...],
    edges: tuple[Iterable[Any], Iterable[Any], Iterable[Any] | None],
    options: dict[str, Any],
) -> np.ndarray:
    """Check required and forbidden edges and tiers, then run in double precision."""
    names = table.names
    wanted = inputs.edge_matrix(edges[0], names)
    banned = inputs.edge_matrix(edges[1], names) | inputs.tier_matrix(edges[2], names)
    inputs.check_constraints(wanted, banned, names, options["max_parents"])
    check_structure_prior(options["prior"], len(names))
    # Inclusion-exclusion cancels: see the error bound of `layer_weights`.
    with jax.enable_x64(True):
        both = jnp.asarray(wanted), jnp.asarray(banned)
        return np.asarray(compiled(*inputs.pad_rows(table), *target, *both, **options))
