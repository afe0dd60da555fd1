"""Oracle: the same numbers from loops and np.linalg in double precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.posterior.scores import column_scale
from acbo.surrogate.encode import (
    PAIR_FEATURES,
    READING_BUCKETS,
    moments_by_effect,
    pad_rows,
    pair_statistics,
    row_bucket,
    squash,
    standardize,
    sweep_out,
    variable_bucket,
)

N, D = 8, 4
SCALE = jax.jit(column_scale)
STANDARD = jax.jit(standardize)


def test_tables_go_to_the_smallest_bucket_that_holds_them():
    assert [variable_bucket(d) for d in (1, 4, 5, 10, 128)] == [4, 4, 8, 16, 128]
    reading = [variable_bucket(d, READING_BUCKETS) for d in (8, 10, 13, 17, 50)]
    assert reading == [8, 12, 16, 24, 56]
    with pytest.raises(ValueError, match=r"129 variables .* largest bucket of 128"):
        variable_bucket(129)
    rows = [row_bucket(n) for n in (0, 32, 33, 512, 513, 1025)]
    assert rows == [32, 32, 128, 512, 1024, 1536]
    padded = pad_rows(np.ones((2, 3)), 4, 5)
    np.testing.assert_array_equal(padded[:2, :3], 1)
    assert (padded.shape, padded.sum()) == ((4, 5), 6)


def make(seed, filled, observed):
    random = np.random.default_rng(seed)
    values = random.normal(3, 2, (N, D)).astype(np.float32)
    intervened = np.zeros((N, D), bool)
    intervened[np.arange(observed, N), random.integers(0, D - 1, N - observed)] = True
    return values, intervened, np.arange(N) < filled


@pytest.mark.parametrize("filled", [8, 6])
@pytest.mark.parametrize("observed", [8, 4, 2, 1, 0])
def test_scores_use_the_observational_rows_or_all_if_fewer_than_two(filled, observed):
    values, intervened, mask = make(0, filled, observed)
    values[:, 1] = 12.5  # a column that does not vary keeps its unit
    there = np.array([True, True, True, False])
    used = values[: min(filled, observed if observed > 1 else filled)]
    spread_used = np.where(np.arange(D) == 1, 1.0, used.std(axis=0))
    mean, spread = SCALE(values, intervened, mask)
    np.testing.assert_allclose(mean, used.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(spread, spread_used, rtol=1e-4)
    expected = (values - used.mean(axis=0)) / spread_used
    expected = np.where(mask[:, None] & there, expected, 0)
    found = STANDARD(values, intervened, mask, there)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


def test_scores_forget_units_and_places():
    values, intervened, mask = make(3, 7, 5)
    there = np.ones(D, bool)
    scale = np.array([[1e-3, 1.0, 50.0, 7.0]], np.float32)
    moved = values * scale + np.array([[5.0, -100.0, 0.0, 1.0]], np.float32)
    one = STANDARD(values, intervened, mask, there)
    np.testing.assert_allclose(
        STANDARD(jnp.asarray(moved), intervened, mask, there), one, atol=2e-2
    )
    for unit in (1e-9, 1e-30, 1e30):  # whose squares single precision does not hold
        tiny = jnp.asarray(values * np.float32(unit))
        np.testing.assert_allclose(
            STANDARD(tiny, intervened, mask, there), one, rtol=1e-3, atol=1e-4
        )


ROWS = 10
PAIRS = jax.jit(pair_statistics)


def make_statistics(seed=0, filled=ROWS, observed=6):
    """Scores with interventions in the last rows; the target, 3, is never set."""
    random = np.random.default_rng(seed)
    z = random.normal(size=(ROWS, D)).astype(np.float32)
    z[:, 1] += 0.8 * z[:, 0]
    z[:, 3] -= 1.5 * z[:, 1]
    intervened = np.zeros((ROWS, D), bool)
    intervened[
        np.arange(observed, ROWS),
        random.integers(0, D - 1, ROWS - observed),
    ] = True
    row_mask = np.arange(ROWS) < filled
    intervened &= row_mask[:, None]
    return (
        np.where(row_mask[:, None], z, 0),
        intervened,
        row_mask,
        np.ones(D, bool),
    )


def shrink(x):
    return np.sign(x) * np.log1p(np.abs(x))


def correlation(x, y):
    spread = np.sqrt(max(x.var(), 1e-6) * max(y.var(), 1e-6))
    return np.clip(((x - x.mean()) * (y - y.mean())).mean() / spread, -0.9999, 0.9999)


def ridge(z, j):
    """Coefficients and t values of j on the others and 1, with a unit ridge."""
    others = [i for i in range(z.shape[1]) if i != j]
    x = np.column_stack([z[:, others], np.ones(len(z))])
    gram = x.T @ x + np.eye(x.shape[1])
    coefficient = np.linalg.solve(gram, x.T @ z[:, j])
    # What is left, with the ridge of all coefficients and of j itself.
    left = z[:, j] @ z[:, j] + 1 - coefficient @ (x.T @ z[:, j])
    error = np.sqrt(left / max(len(z), 1) * np.diag(np.linalg.inv(gram)))
    slope, t = np.zeros(z.shape[1]), np.zeros(z.shape[1])
    slope[others], t[others] = coefficient[:-1], (coefficient / error)[:-1]
    return slope, t


def expected_features(z, intervened, row_mask, i, j, slope, t):
    """The seventeen features of i -> j in their order."""
    free = row_mask & ~intervened[:, j]
    seen = row_mask & ~intervened.any(axis=1)
    passive = correlation(z[seen, i], z[seen, j])
    active = correlation(z[free, i], z[free, j])

    def effect(a, b):
        rows = row_mask & intervened[:, a] & ~intervened[:, b]
        power, product = (z[rows, a] ** 2).sum(), (z[rows, a] * z[rows, b]).sum()
        return product / (power + 0.1), product / np.sqrt(power + 1e-3)

    there, back = effect(i, j), effect(j, i)
    times = lambda k: np.log1p((row_mask & intervened[:, k]).sum())
    return [
        passive,
        shrink(np.arctanh(passive) * np.sqrt(seen.sum())),
        active,
        np.log1p(-0.5 * free.sum() * np.log1p(-(active**2))),
        *shrink([slope[i, j], t[i, j], slope[j, i], t[j, i]]),
        *shrink([*there, *back]),
        times(i),
        times(j),
        np.log1p(seen.sum()) - 3.5,
        np.log1p((row_mask & ~seen).sum()) / 3,
        float(i == j),
    ]


def test_sweeping_inverts_and_squashing_keeps_order_and_sign():
    half = np.random.default_rng(0).normal(size=(3, 5, 4))
    matrix = np.einsum("bka,bkc->bac", half, half) + 0.1 * np.eye(4)
    found, log_det = jax.jit(sweep_out)(jnp.asarray(matrix, jnp.float32))
    np.testing.assert_allclose(found, np.linalg.inv(matrix), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(log_det, np.linalg.slogdet(matrix)[1], rtol=1e-3)
    x = np.array([-100.0, -1.0, 0.0, 0.5, 1e6], np.float32)
    np.testing.assert_allclose(squash(jnp.asarray(x)), shrink(x), rtol=1e-6)


def test_moments_leave_out_the_rows_where_the_effect_was_set():
    z, intervened, row_mask, _ = make_statistics()
    free = (row_mask[:, None] & ~intervened).astype(np.float32)
    found = moments_by_effect(jnp.asarray(z), jnp.asarray(free))
    for j in range(D):
        rows = np.column_stack([z, np.ones(ROWS)])[free[:, j] > 0]
        np.testing.assert_allclose(found[j], rows.T @ rows, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("filled", "observed"),
    [(ROWS, ROWS), (ROWS, 6), (7, 4), (5, 0)],
)
def test_every_feature_of_every_pair(filled, observed):
    z, intervened, row_mask, there = make_statistics(filled, filled, observed)
    found = np.asarray(PAIRS(z, intervened, row_mask, there))
    assert found.shape == (D, D, PAIR_FEATURES)
    double = z.astype(float)
    fits = [ridge(double[row_mask & ~intervened[:, j]], j) for j in range(D)]
    slope, t = (np.stack(part, axis=1) for part in zip(*fits, strict=True))
    for i in range(D):
        for j in range(D):
            if observed == 0 or i == j:  # correlations of nothing or of oneself
                continue
            expected = expected_features(double, intervened, row_mask, i, j, slope, t)
            np.testing.assert_allclose(found[i, j], expected, rtol=2e-3, atol=2e-3)
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found[..., -1], np.eye(D))


def test_order_and_padding_change_nothing():
    """Padded rows hold anything, a padded column is zero."""
    z, intervened, row_mask, _ = make_statistics(4, 7, 4)
    there = np.array([True, True, False, True])
    z, intervened = np.where(there, z, 0), intervened & there
    plain = np.asarray(PAIRS(z, intervened, row_mask, there))
    assert not plain[2].any()
    assert not plain[:, 2].any()
    filled = np.where(row_mask[:, None] | ~there, z, 9.0).astype(np.float32)
    rows, order = np.random.default_rng(1).permutation(ROWS), np.array([2, 0, 3, 1])
    turn = lambda cells: cells[rows][:, order]
    moved = PAIRS(turn(filled), turn(intervened), row_mask[rows], there[order])
    np.testing.assert_allclose(moved, plain[order][:, order], atol=1e-4)
