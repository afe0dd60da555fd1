"""Inputs of the exact posteriors, checked: arrays or frames, names, edges, tiers."""

from collections.abc import Collection, Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple, cast

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from acbo.graphs import check_max_parents, enumerate_possible_parent_sets
from acbo.posterior.distribution import ParentSetPosterior, create_parent_set_posterior
from acbo.types import find_column

MIN_ROWS = 16  # rows; longer tables are padded to the next power of two


class CheckedData(NamedTuple):
    """A data set with names; `target` is a column, or -1 where there is none.

    `intervened` marks cells that were set or changed, `soft` those of them that were
    only changed: they keep their causes.
    """

    values: np.ndarray
    intervened: np.ndarray
    names: tuple[str, ...]
    target: int
    soft: np.ndarray


def check_data(
    values: Any,
    intervened: Any,
    target: Any,
    names: Iterable[Any] | None = None,
    *,
    constants: bool = False,
    soft: Any = None,
) -> CheckedData:
    """Return checked data; ValueError says what is wrong with it.

    With `constants`, columns may be constant over the observational rows.
    """
    columns = getattr(values, "columns", None)  # of a pandas frame
    array = _numbers(values, columns)
    if names is None:
        names = [f"X{i}" for i in range(array.shape[1])] if columns is None else columns
    known = tuple(str(name) for name in cast(Iterable[Any], names))
    if len(known) != array.shape[1] or len(set(known)) != len(known):
        raise ValueError(
            f"the names {list(known)} do not go with {array.shape[1]} columns: give "
            "one for each, all different"
        )
    changed = _flags(soft, array.shape, "soft")
    flags = _flags(intervened, array.shape) | changed
    for row, place in np.argwhere(~np.isfinite(array))[:1]:
        raise ValueError(
            f"row {row} holds {array[row, place]} in column {known[place]!r}: drop "
            "such rows or fill them"
        )
    if not constants:
        _check_constants(array, flags, known)
    column = -1 if target is None else find_column(target, known)
    if target is not None and flags[:, column].all():
        raise ValueError(
            f"the target {known[column]!r} is intervened in every row, which says "
            "nothing about its causes: add rows in which it is free"
        )
    return CheckedData(array, flags, known, column, changed)


def _numbers(values: Any, columns: Any) -> np.ndarray:
    if columns is not None:
        words = [
            str(name)
            for name, kind in zip(columns, values.dtypes, strict=True)
            if getattr(kind, "kind", "O") not in "biuf"
        ]
        if words:
            raise ValueError(
                f"column {words[0]!r} is not numeric: drop it, or convert it to "
                "the mask `intervened` if it tells what was set"
            )
    array = np.asarray(values, np.float64)
    if array.ndim != 2:
        raise ValueError(
            f"values of shape {array.shape} are not a table: give [rows, variables]"
        )
    if array.shape[0] < 2 or array.shape[1] < 1:
        raise ValueError(
            f"values of shape {array.shape} are too few: give two rows or more"
        )
    return array


def _flags(given: Any, shape: tuple[int, ...], what: str = "intervened") -> np.ndarray:
    if given is None:
        return np.zeros(shape, bool)
    flags = np.asarray(given)
    if flags.shape != shape:
        raise ValueError(
            f"{what} of shape {flags.shape} does not go with values of shape "
            f"{shape}: give one flag for each cell"
        )
    if not np.isin(flags, (0, 1)).all():
        raise ValueError(f"{what} must contain only True and False")
    return flags.astype(bool)


def _check_constants(
    values: np.ndarray, flags: np.ndarray, names: Sequence[str]
) -> None:
    # Scales are those of observational rows, as in `column_scale`.
    observed = ~flags.any(axis=1)
    some = values[observed] if observed.sum() >= 2 else values
    constant = np.flatnonzero(np.ptp(some, axis=0) == 0)
    if len(constant):
        raise ValueError(
            f"column {names[constant[0]]!r} is constant over the observational rows "
            "and cannot be scaled: drop it or add rows in which it varies"
        )


def edge_matrix(pairs: Iterable[Any], names: Sequence[str]) -> np.ndarray:
    """Return pairs (parent, child) as a matrix [parent, child]."""
    matrix = np.zeros((len(names), len(names)), bool)
    for pair in pairs:
        if isinstance(pair, str) or not isinstance(pair, Collection) or len(pair) != 2:
            raise ValueError(f"{pair!r} is not an edge: pass a pair (parent, child)")
        parent, child = (find_column(each, names) for each in pair)
        if parent == child:
            raise ValueError(f"the edge {pair!r} is a loop: nothing causes itself")
        matrix[parent, child] = True
    return matrix


def tier_matrix(tiers: Iterable[Any] | None, names: Sequence[str]) -> np.ndarray:
    """Return edges forbidden by tiers: those from a later group to an earlier one.

    A variable in no tier is free.
    """
    place = np.full(len(names), -1)
    for number, group in enumerate(tiers or ()):
        for name in [group] if isinstance(group, str | int) else group:
            column = find_column(name, names)
            if place[column] >= 0:
                raise ValueError(f"{names[column]!r} is in two tiers: put it in one")
            place[column] = number
    return (place[:, None] > place[None, :]) & (place >= 0)[None, :]


def edge_rules(
    names: Sequence[str],
    required: Iterable[Any] = (),
    forbidden: Iterable[Any] = (),
    tiers: Iterable[Any] | None = None,
    *,
    max_parents: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return edges that must be there and those that must not, [cause, effect]."""
    wanted = edge_matrix(required, names)
    banned = edge_matrix(forbidden, names) | tier_matrix(tiers, names)
    check_constraints(wanted, banned, names, max_parents)
    return wanted, banned


def check_constraints(
    required: np.ndarray,
    forbidden: np.ndarray,
    names: Sequence[str],
    max_parents: int,
) -> None:
    """Raise ValueError if no graph has all required edges and no forbidden one."""
    check_max_parents(max_parents)
    both = np.argwhere(required & forbidden)
    if len(both):
        edge = " -> ".join(names[int(i)] for i in both[0])
        raise ValueError(f"the edge {edge} is required and forbidden: drop one")
    crowded = np.flatnonzero(required.sum(axis=0) > max_parents)
    if len(crowded):
        raise ValueError(
            f"{names[crowded[0]]!r} has {required[:, crowded[0]].sum()} required "
            f"parents: raise max_parents={max_parents}"
        )
    causes = {j: np.flatnonzero(required[:, j]).tolist() for j in range(len(names))}
    try:
        TopologicalSorter(causes).prepare()
    except CycleError as error:
        circle = " -> ".join(names[int(i)] for i in error.args[1])
        raise ValueError(
            f"the required edges form a cycle, {circle}: drop one of them"
        ) from None


def pad_rows(
    table: CheckedData,
) -> tuple[
    Float[Array, "rows d"],
    Bool[Array, "rows d"],
    Bool[Array, " rows"],
    Bool[Array, " d"],
]:
    """Return values, flags and masks, padded so that most tables share a program."""
    rows, d = table.values.shape
    room = max(MIN_ROWS, 1 << (rows - 1).bit_length()) - rows
    grow = lambda array: jnp.asarray(np.pad(array, ((0, room), (0, 0))))
    row_mask = jnp.asarray(np.arange(rows + room) < rows)
    return grow(table.values), grow(table.intervened), row_mask, jnp.ones(d, bool)


def make_posterior(
    table: CheckedData, chances: np.ndarray, max_parents: int, method: str
) -> ParentSetPosterior:
    """Return probabilities of the candidate sets of the target as a posterior."""
    target = table.names[table.target]
    sets = enumerate_possible_parent_sets(table.names, target, max_parents)
    metadata = {
        "all_variables": table.names,
        "method": method,
        "max_parents": max_parents,
        "n_rows": len(table.values),
    }
    return create_parent_set_posterior(target, sets, chances, metadata)
