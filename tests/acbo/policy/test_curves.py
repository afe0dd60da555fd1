"""Oracle: Gaussian processes over rows and candidates together, in NumPy and SciPy."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from acbo.policy.curves import (
    HEIGHTS,
    LINE,
    NOISE,
    TRIED,
    WIDTHS,
    Sight,
    average_curve,
    expected_gains,
    fit_curves,
    read_curves,
)

N, D, M = 9, 4, 5
KINDS = list(itertools.product(range(2), range(len(WIDTHS)), range(len(HEIGHTS))))
GRID = np.linspace(0, 1, M)
RANDOM = np.random.default_rng(0)
PLACE = RANDOM.uniform(0, 1, (N, D))
OUTCOME = RANDOM.normal(size=N) - 1.5 * PLACE[:, 0]
AT_ROWS, LINES = RANDOM.normal(size=(N, D)), RANDOM.normal(size=(D, M))
USED = np.arange(N)[:, None] < np.array([[N, 4, 1, 0]])  # variable 3 was never tried


def single(x):
    return jnp.asarray(x, jnp.float32)


def bumps(x, width):
    made = np.exp(-0.5 * ((np.asarray(x)[:, None] - GRID) / width) ** 2)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def naive(i: int, around: int, width: float, height: float):
    """Evidence, noise, mean and covariance at the candidates of one kind of curve."""
    rows, at = bumps(PLACE[USED[:, i], i], width), bumps(GRID, width)
    left = (OUTCOME - around * AT_ROWS[:, i])[USED[:, i]]
    inner = np.eye(len(rows)) + height * rows @ rows.T
    shape, scale = NOISE
    evidence = 0.0
    if len(rows):
        spread = inner * scale / shape
        evidence = stats.multivariate_t.logpdf(left, shape=spread, df=int(2 * shape))
    solve = lambda b: np.linalg.solve(inner, b)
    noise = (scale + left @ solve(left) / 2) / (shape + len(rows) / 2 - 1)
    gain = height * at @ rows.T
    mean = around * LINES[i] + gain @ solve(left)
    covariance = noise * (height * at @ at.T - gain @ solve(gain.T))
    return evidence + np.log([1 - LINE, LINE][around]), noise, mean, covariance


@pytest.fixture(scope="module")
def oracle():
    made = [[naive(i, t, WIDTHS[w], HEIGHTS[h]) for t, w, h in KINDS] for i in range(D)]
    logs = np.array([[each[0] for each in row] for row in made])
    share = np.exp(logs - np.logaddexp.reduce(logs, axis=1, keepdims=True))
    return share, made


@pytest.fixture(scope="module")
def found():
    sight = Sight(single(PLACE), single(OUTCOME), single(AT_ROWS), jnp.asarray(USED))

    def run(sight, line):
        fit = fit_curves(sight, line)
        curve = average_curve(fit)
        return fit, curve, expected_gains(fit, curve)

    return jax.tree.map(np.asarray, jax.jit(run)(sight, single(LINES)))


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-4)


def test_every_curve_is_a_gaussian_process_with_unknown_noise(found, oracle):
    fit, share = found[0], oracle[0]
    for i, (k, (t, w, h)) in itertools.product(range(D), enumerate(KINDS)):
        _, noise, mean, _ = oracle[1][i][k]
        close(fit.share[t, i, w, h], share[i, k])
        close(fit.noise[t, i, w, h], noise)
        close(fit.mean[t, i, w, h], mean)


def test_the_average_has_the_moments_of_the_mixture(found, oracle):
    curve = found[1]
    share, made = oracle
    for i in range(D):
        means = np.array([each[2] for each in made[i]])
        variances = np.array([np.diag(each[3]) for each in made[i]])
        mean = share[i] @ means
        close(curve.mean[i], mean)
        close(curve.deviation[i] ** 2, share[i] @ (variances + means**2) - mean**2)
        straight = sum(p for p, (t, _, _) in zip(share[i], KINDS, strict=True) if t)
        close(curve.straight[i], straight)


def improvement(ahead, variance):
    spread = np.sqrt(np.maximum(variance, 0) + 1e-9)
    unit = ahead / spread
    return spread * (unit * stats.norm.cdf(unit) + stats.norm.pdf(unit))


def test_gains_count_from_what_was_tried(found, oracle):
    fit, curve, gains = found
    share, made = oracle
    known = np.where(fit.near > TRIED, curve.mean, np.inf)
    assert not np.isfinite(known[3]).any()
    best = min(known.min(), 0.0)
    for i in range(D):
        own, over_all = np.zeros(M), np.zeros(M)
        b = int(np.argmin(known[i]))
        for p, (_, _, mean, cov) in zip(share[i], made[i], strict=True):
            apart = np.diag(cov) + cov[b, b] - 2 * cov[:, b]
            own += p * improvement(mean[b] - mean, apart)
            over_all += p * improvement(best - mean, np.diag(cov))
        tried = np.isfinite(known[i]).any()
        close(gains[i], np.minimum(own, over_all) if tried else over_all)
        if tried:
            assert gains[i, b] < 1e-4  # to do it again gains nothing


def test_without_rows_a_curve_is_the_prior(found):
    fit, curve, _ = found
    close(curve.mean[3], LINE * LINES[3])
    assert curve.straight[3] == pytest.approx(LINE, abs=1e-5)
    between = LINE * (1 - LINE) * LINES[3] ** 2
    noise = NOISE[1] / (NOISE[0] - 1)
    close(curve.deviation[3] ** 2, noise * np.mean(HEIGHTS) + between)
    np.testing.assert_array_equal(fit.near[3], 0.0)


def test_many_rows_of_a_wave_are_followed():
    """A period of a quarter of the range, which the line knows nothing of."""
    rows, candidates = 60, 17
    place = RANDOM.uniform(0, 1, (rows, 1))
    wave = lambda x: np.cos(8 * np.pi * x)
    outcome = wave(place[:, 0]) + 0.1 * RANDOM.normal(size=rows)
    used = jnp.ones((rows, 1), bool)
    line = single(3 * np.linspace(0, 1, candidates)[None])
    sight = Sight(single(place), single(outcome), single(3 * place), used)
    fit = fit_curves(sight, line)
    curve = average_curve(fit)
    assert abs(curve.mean[0] - wave(np.linspace(0, 1, candidates))).max() < 0.3


def test_reading_between_candidates():
    mean = single([[0.0, 1, 4, 9, 16], [2.0, 2, 2, 2, 2]])
    place = single([[0.125, 0.3], [-1.0, 2.0], [2.0, 0.5]])
    expected = [[0.5, 2], [0, 2], [16, 2]]
    np.testing.assert_allclose(read_curves(mean, place), expected, rtol=1e-6)
