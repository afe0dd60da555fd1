"""How well the rows fit linear mechanisms with Gaussian noise, variable by variable."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import ndtr

from acbo.posterior.inputs import CheckedData

FEWEST = 20  # rows; fewer do not tell
SURE = 5.0  # standard errors


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
    misfits = []
    if k and _explained(root, bent, u) > 2 * k + 8 * np.sqrt(k) + 8:
        misfits.append("curves")  # which make what is left skewed as well
    elif abs((u**3).mean()) > SURE * np.sqrt(6 / n):
        misfits.append("skewed noise")
    elif (u**4).mean() - 3 > SURE * np.sqrt(24 / n):
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
