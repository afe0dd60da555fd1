"""Oracle: NumPy over the rows that count."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.surrogate.encode import (
    READING_BUCKETS,
    ROW_BUCKETS,
    VARIABLE_BUCKETS,
    column_scale,
    pad_rows,
    row_bucket,
    standardize,
    variable_bucket,
)

N, D = 8, 4
SCALE = jax.jit(column_scale)
STANDARD = jax.jit(standardize)


@pytest.mark.parametrize(("d", "bucket"), [(1, 4), (4, 4), (5, 8), (128, 128)])
def test_variables_go_to_the_smallest_bucket_that_holds_them(d, bucket):
    assert variable_bucket(d) == bucket


@pytest.mark.parametrize(("d", "bucket"), [(8, 8), (10, 12), (13, 16), (17, 32)])
def test_one_data_set_has_a_closer_bucket(d, bucket):
    assert variable_bucket(d, READING_BUCKETS) == bucket


def test_too_many_variables_are_refused():
    assert VARIABLE_BUCKETS[-1] == 128
    with pytest.raises(ValueError, match=r"129 variables .* largest bucket of 128"):
        variable_bucket(129)


@pytest.mark.parametrize(
    ("rows", "bucket"),
    [(0, 32), (32, 32), (33, 128), (512, 512), (513, 1024), (1025, 1536)],
)
def test_rows_go_to_a_bucket_or_a_multiple_of_the_last(rows, bucket):
    assert row_bucket(rows) == bucket
    assert bucket in ROW_BUCKETS or bucket % ROW_BUCKETS[-1] == 0


def test_padding_is_zero_behind_the_rows():
    padded = pad_rows(np.ones((2, 3)), 4, 5)
    assert padded.shape == (4, 5)
    np.testing.assert_array_equal(padded[:2, :3], 1)
    assert padded.sum() == 6


def make(seed, filled, observed):
    random = np.random.default_rng(seed)
    values = random.normal(3, 2, (N, D)).astype(np.float32)
    intervened = np.zeros((N, D), bool)
    intervened[np.arange(observed, N), random.integers(0, D - 1, N - observed)] = True
    return values, intervened, np.arange(N) < filled


@pytest.mark.parametrize(("filled", "observed"), [(8, 8), (6, 4), (6, 2)])
def test_scores_use_the_observational_rows(filled, observed):
    values, intervened, mask = make(0, filled, observed)
    there = np.array([True, True, True, False])
    used = values[: min(filled, observed)]
    mean, spread = SCALE(values, intervened, mask)
    np.testing.assert_allclose(mean, used.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(spread, used.std(axis=0), rtol=1e-4)
    expected = (values - used.mean(axis=0)) / used.std(axis=0)
    expected = np.where(mask[:, None] & there, expected, 0)
    found = STANDARD(values, intervened, mask, there)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("observed", [0, 1])
def test_without_two_observational_rows_all_rows_are_used(observed):
    values, intervened, mask = make(1, 6, observed)
    mean, spread = SCALE(values, intervened, mask)
    np.testing.assert_allclose(mean, values[:6].mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(spread, values[:6].std(axis=0), rtol=1e-4)


def test_a_column_that_does_not_vary_keeps_its_unit():
    values, intervened, mask = make(2, 8, 8)
    values[:, 1] = 1234.5
    _, spread = SCALE(values, intervened, mask)
    assert float(spread[1]) == 1.0
    found = STANDARD(values, intervened, mask, np.ones(D, bool))
    np.testing.assert_allclose(found[:, 1], 0.0, atol=1e-3)


def test_scores_forget_units_and_places():
    values, intervened, mask = make(3, 7, 5)
    there = np.ones(D, bool)
    scale = np.array([[1e-3, 1.0, 50.0, 7.0]], np.float32)
    moved = values * scale + np.array([[5.0, -100.0, 0.0, 1.0]], np.float32)
    one = STANDARD(values, intervened, mask, there)
    np.testing.assert_allclose(
        STANDARD(jnp.asarray(moved), intervened, mask, there), one, atol=2e-2
    )
