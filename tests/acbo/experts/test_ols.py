import jax.numpy as jnp
import numpy as np
import pytest

from acbo.experts.ols import ols_inclusion, ols_parents, regression_t
from causal_graphs import linear_rows, linear_weights
from jaxrig.testing import assert_one_trace


def example():
    rng = np.random.default_rng(0)
    values, flags = linear_rows(linear_weights(4, rng, 0.7), rng, 30, 10, 2)
    flags[3, 2] = True  # a row that says nothing of the target
    return 3 * values - 1, flags


def reference_t(values, flags, target):
    rows = ~flags[:, target]
    others = np.delete(values, target, axis=1)[rows]
    design = np.column_stack([np.ones(rows.sum()), others])
    y = values[rows, target]
    weights, residual, *_ = np.linalg.lstsq(design, y, rcond=None)
    variance = residual[0] / (len(y) - design.shape[1])
    found = weights / np.sqrt(variance * np.diag(np.linalg.inv(design.T @ design)))
    return np.insert(found[1:], target, 0)


@pytest.mark.parametrize("target", [0, 2])
def test_statistics_are_those_of_least_squares(target):
    values, flags = example()
    wanted = reference_t(values, flags, target)
    found = ols_parents(values, flags, target, threshold=0)
    full = [found.get(f"X{i}", 0) for i in range(4)]
    np.testing.assert_allclose(full, wanted, rtol=1e-8)
    kept = ols_parents(values, flags, target)
    assert set(kept) == {f"X{i}" for i in range(4) if abs(wanted[i]) > 3}


def test_padding_and_too_few_rows():
    values, flags = example()
    wanted = np.append(reference_t(values, flags, 2), 0)
    x = jnp.asarray(np.pad(values, ((0, 2), (0, 1)), constant_values=4.0), float)
    f = jnp.asarray(np.pad(flags, ((0, 2), (0, 1))))
    there = jnp.asarray([True] * 4 + [False])
    count = jnp.arange(42)
    calls = [(x, f, count < n, there, jnp.asarray(2)) for n in (40, 4)]
    both = lambda x, f, r, v, t: (
        regression_t(x, f, r, v, t),
        ols_inclusion(x, f, r, v, t),
    )
    (found, kept), (few, _) = assert_one_trace(both, *calls)
    np.testing.assert_allclose(found, wanted, rtol=1e-3)
    assert few.tolist() == [0] * 5
    assert kept.tolist() == (np.abs(wanted) > 3).tolist()
