"""Inputs of the posteriors, checked: arrays or frames, names, edges, tiers."""

from collections.abc import Collection, Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple

import numpy as np

from acbo.graphs import check_max_parents
from acbo.types import find_column


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
    own: Any = [f"X{i}" for i in range(array.shape[1])] if columns is None else columns
    known = tuple(map(str, own if names is None else names))
    if len(known) != array.shape[1] or len(set(known)) != len(known):
        raise ValueError(
            f"the names {list(known)} do not go with {array.shape[1]} columns: give "
            "one for each, all different"
        )
    changed = _flags(soft, array.shape, "soft")
    flags = _flags(intervened, array.shape, "intervened") | changed
    for row, place in np.argwhere(~np.isfinite(array))[:1]:
        raise ValueError(
            f"row {row} holds {array[row, place]} in column {known[place]!r}: drop "
            "such rows or fill them"
        )
    # Scales are those of observational rows, as in `column_scale`.
    observed = ~flags.any(axis=1)
    scaled = array[observed] if observed.sum() >= 2 else array
    constant = [] if constants else np.flatnonzero(np.ptp(scaled, axis=0) == 0)
    for place in constant[:1]:
        raise ValueError(
            f"column {known[place]!r} is constant over the observational rows "
            "and cannot be scaled: drop it or add rows in which it varies"
        )
    column = -1 if target is None else find_column(target, known)
    if target is not None and flags[:, column].all():
        raise ValueError(
            f"the target {known[column]!r} is intervened in every row, which says "
            "nothing about its causes: add rows in which it is free"
        )
    return CheckedData(array, flags, known, column, changed)


def _numbers(values: Any, columns: Any) -> np.ndarray:
    for name, kind in () if columns is None else values.dtypes.items():
        if getattr(kind, "kind", "O") not in "biuf":
            raise ValueError(
                f"column {str(name)!r} is not numeric: drop it, or convert it to "
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


def _flags(given: Any, shape: tuple[int, ...], what: str) -> np.ndarray:
    flags = np.zeros(shape, bool) if given is None else np.asarray(given)
    if flags.shape != shape:
        raise ValueError(
            f"{what} of shape {flags.shape} does not go with values of shape "
            f"{shape}: give one flag for each cell"
        )
    if not np.isin(flags, (0, 1)).all():
        raise ValueError(f"{what} must contain only True and False")
    return flags.astype(bool)


def edge_rules(
    names: Sequence[str],
    required: Iterable[Any],
    forbidden: Iterable[Any],
    tiers: Iterable[Any] | None,
    max_parents: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return edges that must be there and those that must not, [cause, effect];
    ValueError if no graph has all of the first and none of the second.
    """
    check_max_parents(max_parents)
    wanted = _edge_matrix(required, names)
    banned = _edge_matrix(forbidden, names) | _tier_matrix(tiers, names)
    for both in np.argwhere(wanted & banned)[:1]:
        edge = " -> ".join(names[int(i)] for i in both)
        raise ValueError(f"the edge {edge} is required and forbidden: drop one")
    for crowded in np.flatnonzero(wanted.sum(axis=0) > max_parents)[:1]:
        raise ValueError(
            f"{names[crowded]!r} has {wanted[:, crowded].sum()} required "
            f"parents: raise max_parents={max_parents}"
        )
    causes = {j: np.flatnonzero(wanted[:, j]).tolist() for j in range(len(names))}
    try:
        TopologicalSorter(causes).prepare()
    except CycleError as error:
        circle = " -> ".join(names[int(i)] for i in error.args[1])
        raise ValueError(
            f"the required edges form a cycle, {circle}: drop one of them"
        ) from None
    return wanted, banned


def _edge_matrix(pairs: Iterable[Any], names: Sequence[str]) -> np.ndarray:
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


def _tier_matrix(tiers: Iterable[Any] | None, names: Sequence[str]) -> np.ndarray:
    """Return the edges from a later tier to an earlier one; a variable in no tier is
    free.
    """
    place = np.full(len(names), -1)
    for number, group in enumerate(tiers or ()):
        for name in [group] if isinstance(group, str | int) else group:
            column = find_column(name, names)
            if place[column] >= 0:
                raise ValueError(f"{names[column]!r} is in two tiers: put it in one")
            place[column] = number
    return (place[:, None] > place[None, :]) & (place >= 0)[None, :]
