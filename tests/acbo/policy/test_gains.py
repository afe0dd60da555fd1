"""Oracle: many draws of the curves' Gaussian processes in NumPy (causal_curves)."""

import jax
import numpy as np
import pytest

from acbo.policy.curves import DRAWS, expected_improvement, fit_curves
from causal_curves import DATA, LINES, MADE, RANDOM, D, M, all_curves, single

MANY = 40_000


def run(data, line, draws=DRAWS):
    made = lambda s, x: expected_improvement(fit_curves(s, x), s, x, draws)
    return np.asarray(jax.jit(made)(data, line))


def drawn():
    """Curves at candidates and rows [variable, draw, place], each kind by its share."""
    share, made = all_curves()
    found = []
    for i in range(D):
        counts = RANDOM.multinomial(MANY, share[i])
        parts = [
            RANDOM.multivariate_normal(mean, cov, n, method="eigh")
            for n, (_, _, mean, cov) in zip(counts, made[i], strict=True)
        ]
        found.append(RANDOM.permutation(np.concatenate(parts)))
    return np.stack(found)


def test_gains_are_over_the_best_experiment_made():
    curves = drawn()
    at_rows = np.where(MADE.T[:, None], curves[:, :, M:], np.inf)
    best = np.minimum(at_rows.min(axis=(0, 2)), 0.0)
    expected = np.maximum(best[None, :, None] - curves[:, :, :M], 0).mean(axis=1)
    found = run(DATA, single(LINES), MANY)
    np.testing.assert_allclose(found, expected, rtol=0.05, atol=0.02)
    few = run(DATA, single(LINES))
    np.testing.assert_allclose(few, expected, rtol=0.3, atol=0.1)


def test_to_do_the_same_again_gains_nothing():
    """Even where one noisy row leaves the curve as uncertain as before."""
    middle = DATA._replace(  # the only row that set variable 2
        place=DATA.place.at[0, 2].set(0.5), line=DATA.line.at[0, 2].set(LINES[2, 2])
    )
    found = run(middle, single(LINES))
    assert found[2, 2] < 1e-5
    assert (np.delete(found[2], 2) > 1e-2).all()


@pytest.mark.parametrize("columns", [[3, 1, 0, 2]])
def test_the_order_of_rows_and_variables_changes_nothing(columns):
    rows = RANDOM.permutation(len(MADE))
    turn = lambda x: x[rows][:, columns]
    moved = DATA._replace(
        place=turn(DATA.place),
        outcome=DATA.outcome[rows],
        line=turn(DATA.line),
        weight=turn(DATA.weight),
        made=turn(DATA.made),
    )
    found = run(moved, single(LINES[columns]))
    np.testing.assert_allclose(found, run(DATA, single(LINES))[columns], atol=2e-3)
