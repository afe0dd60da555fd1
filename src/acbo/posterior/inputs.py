"""Inputs of the posteriors, checked: arrays or frames, names, edges, tiers; and how
well the rows fit linear mechanisms with Gaussian noise.
"""

from collections.abc import Collection, Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import ndtr

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


def standardized(table: CheckedData) -> Float[np.ndarray, "n d"]:
    """Return z-scores by the observational rows, or by all if fewer than two are.

    A column that only experiments vary has the scale of all rows.
    """
    observed = ~table.intervened.any(axis=1)
    chosen = table.values[observed] if observed.sum() >= 2 else table.values
    mean = chosen.mean(axis=0)
    whole = np.sqrt(((table.values - mean) ** 2).mean(axis=0))
    scale = np.where(np.ptp(chosen, axis=0) > 0, chosen.std(axis=0), whole)
    return (table.values - mean) / np.where(scale > 0, scale, 1)


def free_moments(
    z: Float[np.ndarray, "n d"], intervened: Bool[np.ndarray, "n d"]
) -> Float[np.ndarray, "d e e"]:
    """Return for every variable the moments of (1, z) over rows where it was free."""
    design = np.concatenate([np.ones((len(z), 1)), z], axis=1)
    whole = design.T @ design
    grams = np.empty((z.shape[1], *whole.shape))
    for j, was_set in enumerate(intervened.T):
        # Few rows are set, so they are taken out of the sum over all.
        grams[j] = whole - design[was_set].T @ design[was_set]
    return grams


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


FEWEST = 20  # rows; fewer do not tell
SURE = 5.0  # standard errors of moments of a Gaussian
LEAN, EVEN = 3.5, 2.0  # standard errors of the median of even noise


class Fit(NamedTuple):
    """A check of one variable on rows that were left out, one at a time.

    `gain` is the share of its variance that its likeliest causes foretell, and
    `calibration` the largest gap between the quantiles of what is left and those of a
    Gaussian: 0 is perfect. `misfits` names what is off beyond doubt.
    """

    gain: float
    calibration: float
    misfits: tuple[str, ...] = ()


def check_fits(
    table: CheckedData,
    candidates: Int[np.ndarray, "d slots"],
    set_probs: Float[np.ndarray, "d subsets"],
) -> tuple[Fit, ...]:
    """Return a check of every variable given its likeliest causes."""
    slots = np.arange(candidates.shape[1])
    best = set_probs.argmax(axis=1)
    resting = ~table.intervened.any(axis=1)
    found = []
    for j, own in enumerate(candidates):
        rows = resting if resting.sum() >= FEWEST else ~table.intervened[:, j]
        causes = own[(best[j] >> slots & 1 == 1) & (own < len(candidates))]
        found.append(_check(table.values[rows][:, causes], table.values[rows, j]))
    return tuple(found)


def _check(x: Float[np.ndarray, "n k"], y: Float[np.ndarray, " n"]) -> Fit:
    n, k = x.shape
    if n < max(FEWEST, 3 * k) or len(np.unique(y)) < 3:
        return Fit(0.0, 0.0)
    x = (x - x.mean(axis=0)) / np.where(np.ptp(x, axis=0) > 0, x.std(axis=0), 1)
    y = (y - y.mean()) / y.std()
    root = np.linalg.qr(np.column_stack([np.ones(n), x]))[0]
    # What is left of a row by a fit to all others (Allen's PRESS residuals).
    left = (y - root @ (root.T @ y)) / np.maximum(1 - (root**2).sum(axis=1), 0.1)
    u = (left - left.mean()) / max(left.std(), 1e-9)
    gap = np.abs(ndtr(np.sort(u)) - (np.arange(n) + 0.5) / n).max()
    bent = (np.clip(x, -3, 3)[:, :, None] ** (2, 3)).reshape(n, -1)
    # Long tails alone make third moments large. Where they are even, the median stays
    # near the mean, by this many standard errors (Miao, Gel & Gastwirth, 2006).
    median = np.median(u)
    lean = -median * np.sqrt(n) / (0.947 * np.abs(u - median).mean() + 1e-9)
    skew = (u**3).mean()
    misfits = []
    if k and _explained(root, bent, u) > 2 * k + 8 * np.sqrt(k) + 8:
        misfits.append("curves")  # which make what is left skewed as well
    elif abs(skew) > SURE * np.sqrt(6 / n) and lean * np.sign(skew) > LEAN:
        misfits.append("skewed noise")
    elif (u**4).mean() - 3 > SURE * np.sqrt(24 / n) and abs(lean) < EVEN:
        misfits.append("heavy-tailed noise")
    # Rows that are sorted by a column without causes have not drifted.
    if k and _explained(root, np.arange(n)[:, None] / n, u) > SURE**2:
        misfits.append("drift over the rows")
    return Fit(float(1 - (left**2).mean()), float(gap), tuple(misfits))


def _explained(
    root: Float[np.ndarray, "n k"],
    more: Float[np.ndarray, "n m"],
    u: Float[np.ndarray, " n"],
) -> float:
    """Return n times the share of u that more columns explain: chi-square if none."""
    rest = more - root @ (root.T @ more)
    fitted = rest @ np.linalg.lstsq(rest, u, rcond=1e-6)[0]
    return float(len(u) * (fitted**2).mean())
