"""Oracle of the policy's curves: Gaussian processes over rows and places in NumPy, the
noise's variance integrated out on a grid.
"""

import itertools

import jax.numpy as jnp
import numpy as np
from scipy import integrate, stats

from acbo.policy.features import (
    AMPLITUDES,
    LENGTH_SCALES,
    LINE,
    NOISE,
    SLOPE,
    RegressionRows,
)

N, D, M = 9, 4, 5
KINDS = list(
    itertools.product(range(2), range(len(LENGTH_SCALES)), range(len(AMPLITUDES)))
)
GRID = np.linspace(0, 1, M)
RANDOM = np.random.default_rng(0)
PLACE = RANDOM.uniform(0, 1, (N, D))
OUTCOME = RANDOM.normal(size=N) - 1.5 * PLACE[:, 0]
AT_ROWS, LINES = RANDOM.normal(size=(N, D)), RANDOM.normal(size=(D, M))
MADE = np.arange(N)[:, None] < np.array([[N, 4, 1, 0]])  # variable 3 was never set
WEIGHT = np.where(MADE, 1.0, np.array([[0.0, 0.4, 0.0, 0.0]]))
VARIANCES = np.exp(np.linspace(-6, 7, 4001))


def single(x):
    return jnp.asarray(x, jnp.float32)


DATA = RegressionRows(
    single(PLACE), single(OUTCOME), single(AT_ROWS), single(WEIGHT), jnp.asarray(MADE)
)


def rbf_basis(x, width):
    made = np.exp(-0.5 * ((np.asarray(x)[:, None] - GRID) / width) ** 2)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def naive(i: int, around: int, width: float, height: float):
    """Log evidence, noise, then mean and covariance at candidates and rows together.

    A row of weight w counts as w of a row: its likelihood to the power of w.
    """
    used = WEIGHT[:, i] > 0
    share = WEIGHT[used, i]
    rows = rbf_basis(PLACE[used, i], width)
    at = rbf_basis(np.concatenate([GRID, PLACE[:, i]]), width)
    left = (OUTCOME - around * AT_ROWS[:, i])[used]
    line = np.concatenate([LINES[i], AT_ROWS[:, i]])
    seen = AT_ROWS[used, i]  # the line, whose factor is uncertain too
    inner = np.diag(1 / share) + height * rows @ rows.T + SLOPE * np.outer(seen, seen)
    solve = lambda b: np.linalg.solve(inner, b)
    misfit, volume = left @ solve(left), np.linalg.slogdet(inner)[1]
    # In units of the noise; the last two turn rows of noise 1 / w into shares of rows.
    logs = -0.5 * (misfit / VARIANCES + volume + len(rows) * np.log(VARIANCES))
    logs += 0.5 * (len(rows) - share.sum()) * np.log(VARIANCES)
    logs -= 0.5 * np.log(share).sum()
    logs += stats.invgamma.logpdf(VARIANCES, NOISE[0], scale=NOISE[1])
    density = np.exp(logs - logs.max())
    total = integrate.simpson(density, VARIANCES)
    noise = integrate.simpson(density * VARIANCES, VARIANCES) / total
    gain = height * at @ rows.T + SLOPE * np.outer(line, seen)
    mean = around * line + gain @ solve(left)
    before = height * at @ at.T + SLOPE * np.outer(line, line)
    covariance = noise * (before - gain @ solve(gain.T))
    evidence = np.log(total) + logs.max() + np.log([1 - LINE, LINE][around])
    return evidence, noise, mean, covariance


def all_curves():
    """Share of each kind [variable, kind], and what `naive` says of it."""
    made = [
        [naive(i, t, LENGTH_SCALES[w], AMPLITUDES[h]) for t, w, h in KINDS]
        for i in range(D)
    ]
    logs = np.array([[each[0] for each in row] for row in made])
    return np.exp(logs - np.logaddexp.reduce(logs, axis=1, keepdims=True)), made
