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

from acbo.graphs import enumerate_possible_parent_sets, parent_set_membership
from acbo.posterior.dag_sums import parent_set_probs
from acbo.posterior.distribution import ParentSetPosterior, create_parent_set_posterior
from acbo.posterior.inputs import CheckedData, check_data, edge_rules
from acbo.posterior.scores import constrained_scores, gather_statistics
from acbo.types import Index, check_known
from jaxrig.compile_guard import compile_once

# Above these sizes the tables (3**d and 2**d entries) outgrow memory and time.
MAX_VARIABLES = {"dag": 13, "order": 16}
MIN_ROWS = 16  # rows; longer tables are padded to the next power of two


def check_structure_prior(prior: str, d: int) -> None:
    """Raise ValueError if the prior is unknown, or if d is too many for it."""
    check_known(prior, MAX_VARIABLES, "prior")
    if d > MAX_VARIABLES[prior]:
        raise ValueError(
            f"{d} variables are too many to sum over all structures: prior={prior!r} "
            f"takes up to {MAX_VARIABLES[prior]} (dag 13, order 16), drop some columns"
        )


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
) -> Float[Array, "d sets"]:
    """Return P(parents of j = S | data) over variables and sets, for jit and vmap.

    The sets are those of `acbo.graphs.bucket_parent_sets`. `prior` is "order" (graphs
    count once for each order they fit; fit for single precision) or "dag" (each graph
    counts once; rounding grows with d).
    """
    check_structure_prior(prior, var_mask.shape[0])
    statistics = gather_statistics(values, intervened, row_mask, var_mask)
    rules = required, forbidden
    scores = constrained_scores(statistics, var_mask, *rules, max_parents=max_parents)
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
    table = check_data(values, intervened, target, names)
    found = _solve(table, max_parents, required, forbidden, tiers, prior)
    name = table.names[table.target]
    return create_parent_set_posterior(
        name,
        enumerate_possible_parent_sets(table.names, name, max_parents),
        found[table.target],
        {
            "all_variables": table.names,
            "method": f"exact-{prior}",
            "max_parents": max_parents,
            "n_rows": len(table.values),
        },
    )


def exact_edge_posterior(
    values: Any,
    intervened: Any = None,
    *,
    max_parents: int = 3,
    names: Iterable[Any] | None = None,
    **options: Any,
) -> np.ndarray:
    """Return P(i causes j) for all pairs of columns, averaged over every graph.

    The arguments are those of `exact_parent_posterior`.
    """
    table = check_data(values, intervened, None, names)
    chances, d = _solve(table, max_parents, **options), len(table.names)
    held = [parent_set_membership(d, max_parents, j) for j in range(d)]
    return np.einsum("jk,jki->ij", chances, held)


def _solve(
    table: CheckedData,
    max_parents: int,
    required: Iterable[Any] = (),
    forbidden: Iterable[Any] = (),
    tiers: Iterable[Any] | None = None,
    prior: str = "dag",
) -> Float[np.ndarray, "d sets"]:
    """Check what is known of the edges, then run in double precision."""
    rules = edge_rules(table.names, required, forbidden, tiers, max_parents)
    rows, d = table.values.shape
    check_structure_prior(prior, d)
    # Padded, so that most tables share a program.
    room = max(MIN_ROWS, 1 << (rows - 1).bit_length())
    pad = lambda array: np.pad(array, ((0, room - rows), (0, 0)))
    masks = np.arange(room) < rows, np.ones(d, bool)
    # Inclusion-exclusion cancels: see the error bound of `sum_graphs`.
    with jax.enable_x64(True):
        given = pad(table.values), pad(table.intervened), *masks, *rules
        arrays = (jnp.asarray(each) for each in given)
        return np.asarray(_compiled(*arrays, max_parents=max_parents, prior=prior))
