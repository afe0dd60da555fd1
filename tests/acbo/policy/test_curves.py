"""Oracle: Gaussian processes over rows and candidates, in NumPy (causal_curves)."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.policy.features import (
    AMPLITUDES,
    DRAWS,
    LINE,
    NOISE,
    SLOPE,
    RegressionRows,
    average_curve,
    expected_improvement,
    fit_curves,
)
from causal_curves import DATA, KINDS, LINES, MADE, RANDOM, D, M, all_curves, single


@jax.jit
def run(data, line):
    fit = fit_curves(data, line)
    return fit, average_curve(fit, line)


@pytest.fixture(scope="module")
def oracle():
    return all_curves()


@pytest.fixture(scope="module")
def found():
    return jax.device_get(run(DATA, single(LINES)))


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=2e-3, atol=5e-4)


def test_every_curve_is_a_gaussian_process_with_unknown_noise(found, oracle):
    fit, share = found[0], oracle[0]
    for i, (k, (t, w, h)) in itertools.product(range(D), enumerate(KINDS)):
        _, noise, mean, _ = oracle[1][i][k]
        close(fit.share[t, i, w, h], share[i, k])
        close(fit.noise[t, i, w, h], noise)
        close(fit.mean[t, i, w, h], mean[:M])


def test_the_average_has_the_moments_of_the_mixture(found, oracle):
    curve = found[1]
    share, made = oracle
    for i in range(D):
        means = np.array([each[2][:M] for each in made[i]])
        variances = np.array([np.diag(each[3])[:M] for each in made[i]])
        mean = share[i] @ means
        close(curve.mean[i], mean)
        close(curve.std[i] ** 2, share[i] @ (variances + means**2) - mean**2)
        straight = sum(p for p, (t, _, _) in zip(share[i], KINDS, strict=True) if t)
        close(curve.linear_prob[i], straight)


def test_without_rows_a_curve_is_the_prior(found):
    fit, curve = found
    close(curve.mean[3], LINE * LINES[3])
    assert curve.linear_prob[3] == pytest.approx(LINE, abs=1e-5)
    between = LINE * (1 - LINE) * LINES[3] ** 2
    noise = NOISE[1] / (NOISE[0] - 1)
    rbf_basis, slope = np.mean(AMPLITUDES), SLOPE * LINES[3] ** 2
    close(curve.std[3] ** 2, noise * (rbf_basis + slope) + between)
    np.testing.assert_array_equal(fit.near[3], 0.0)


def test_many_rows_of_a_wave_are_followed():
    """A period of a quarter of the range, which the line knows nothing of."""
    rows, candidates = 60, 17
    place = RANDOM.uniform(0, 1, (rows, 1))
    wave = lambda x: np.cos(8 * np.pi * x)
    outcome = wave(place[:, 0]) + 0.1 * RANDOM.normal(size=rows)
    line = single(3 * np.linspace(0, 1, candidates)[None])
    made = jnp.asarray(np.ones((rows, 1), bool))
    weight = single(np.ones((rows, 1)))
    data = RegressionRows(
        single(place), single(outcome), single(3 * place), weight, made
    )
    _, curve = jax.device_get(run(data, line))
    assert abs(curve.mean[0] - wave(np.linspace(0, 1, candidates))).max() < 0.3


MANY = 40_000


@partial(jax.jit, static_argnums=2)
def run_gains(data, line, draws=DRAWS):
    return expected_improvement(fit_curves(data, line), data, line, draws)


def drawn(share, made):
    """Curves at candidates and rows [variable, draw, place], each kind by its share."""
    found = []
    for i in range(D):
        counts = RANDOM.multinomial(MANY, share[i])
        parts = [
            RANDOM.multivariate_normal(mean, cov, n, method="eigh")
            for n, (_, _, mean, cov) in zip(counts, made[i], strict=True)
        ]
        found.append(RANDOM.permutation(np.concatenate(parts)))
    return np.stack(found)


def test_gains_are_over_the_best_experiment_made(oracle):
    curves = drawn(*oracle)
    at_rows = np.where(MADE.T[:, None], curves[:, :, M:], np.inf)
    best = np.minimum(at_rows.min(axis=(0, 2)), 0.0)
    expected = np.maximum(best[None, :, None] - curves[:, :, :M], 0).mean(axis=1)
    found = run_gains(DATA, single(LINES), MANY)
    np.testing.assert_allclose(found, expected, rtol=0.05, atol=0.02)
    few = run_gains(DATA, single(LINES))
    np.testing.assert_allclose(few, expected, rtol=0.3, atol=0.1)


def test_to_do_the_same_again_gains_nothing():
    """Even where one noisy row leaves the curve as uncertain as before."""
    middle = DATA._replace(  # the only row that set variable 2
        place=DATA.place.at[0, 2].set(0.5), line=DATA.line.at[0, 2].set(LINES[2, 2])
    )
    found = np.asarray(run_gains(middle, single(LINES)))
    assert found[2, 2] < 1e-5
    assert (np.delete(found[2], 2) > 1e-2).all()


def test_the_order_of_rows_and_variables_changes_nothing():
    columns, rows = [3, 1, 0, 2], RANDOM.permutation(len(MADE))
    turn = lambda x: x[rows][:, columns]
    moved = DATA._replace(
        place=turn(DATA.place),
        outcome=DATA.outcome[rows],
        line=turn(DATA.line),
        weight=turn(DATA.weight),
        made=turn(DATA.made),
    )
    found = run_gains(moved, single(LINES[columns]))
    plain = np.asarray(run_gains(DATA, single(LINES)))
    np.testing.assert_allclose(found, plain[columns], atol=2e-3)
