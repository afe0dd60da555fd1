"""Data sets: legal rows, the promised numbers of them, linear ones as their model."""

import dataclasses

import jax
import numpy as np
import pytest

from acbo.datasets import DataConfig, draw_dataset
from acbo.families import SCMConfig
from jaxrig.testing import assert_one_trace

COPIES = 48
CHAIN = SCMConfig(families=("chain",))
CONFIG = DataConfig(
    scms=(CHAIN, CHAIN, SCMConfig(families=("chain",), mechanisms=("tanh",))),
    variables=4,
    rows=24,
    sizes=(2, 4),
    observational=(6, 10),
    interventional=(0, 14),
    clipped=0.5,
)


@pytest.fixture(scope="module")
def data():
    """A batch of data sets; another key draws from the same trace."""
    draw = lambda keys: jax.lax.map(lambda key: draw_dataset(key, CONFIG), keys)
    keys = [(jax.random.split(jax.random.key(i), COPIES),) for i in range(2)]
    batch, other = assert_one_trace(draw, *keys)
    assert (batch.values != other.values).any()
    return jax.tree.map(np.asarray, batch)


def test_rows_are_filled_from_the_front_and_as_many_as_promised(data):
    counts = data.row_mask.sum(axis=1)
    for mask, count in zip(data.row_mask, counts, strict=True):
        np.testing.assert_array_equal(mask, np.arange(24) < count)
    acted = data.intervened.any(axis=2)
    observed = counts - acted.sum(axis=1)
    assert (observed.min(), observed.max()) == (6, 10)
    assert acted.sum(axis=1).min() < 3
    assert acted.sum(axis=1).max() > 11


def test_observational_rows_come_first(data):
    for acted, mask in zip(data.intervened.any(axis=2), data.row_mask, strict=True):
        assert (np.diff(acted[mask].astype(int)) >= 0).all()


def test_one_variable_is_set_never_the_target_nor_the_padding(data):
    assert data.intervened.sum(axis=2).max() == 1
    assert not data.intervened[~data.row_mask].any()
    for i in range(COPIES):
        assert not data.intervened[i, :, data.target[i]].any()
        assert not data.intervened[i][:, ~data.var_mask[i]].any()


def test_sizes_and_padding(data):
    sizes = data.var_mask.sum(axis=1)
    assert set(sizes.tolist()) == {2, 3, 4}
    for i in range(COPIES):
        there = data.var_mask[i]
        assert there[data.target[i]]
        assert not data.values[i][:, ~there].any()
        assert not data.adjacency[i][~there].any()
        assert not data.adjacency[i][:, ~there].any()


def test_values_vary_and_are_finite(data):
    assert np.isfinite(data.values).all()
    for i in range(COPIES):
        assert (data.values[i][:, data.var_mask[i]].std(axis=0) > 0).all()


def test_edges_explain_the_rows(data):
    """What is left of an effect after its cause is no longer than the effect itself."""
    slopes = []
    for i in range(COPIES):
        for cause, effect in np.argwhere(data.adjacency[i]):
            free = data.row_mask[i] & ~data.intervened[i, :, effect]
            x, y = data.values[i, free, cause], data.values[i, free, effect]
            slopes.append(abs(np.corrcoef(x, y)[0, 1]))
    assert np.median(slopes) > 0.5


@pytest.mark.slow
def test_squares_of_squares_stay_finite(key):
    """Quadratic mechanisms in a long chain grow without end."""
    steep = SCMConfig(families=("chain",), mechanisms=("quadratic",))
    config = DataConfig(scms=(steep,), variables=32, sizes=(32, 32), clipped=0.0)
    draw = jax.vmap(lambda key: draw_dataset(key, config))
    found = jax.jit(draw)(jax.random.split(key, 50))
    values = np.asarray(found.values)
    assert np.isfinite(values).all()
    assert abs(values).max() > 1e9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scms": ()}, "scms is empty"),
        ({"sizes": (1, 4)}, r"sizes=\(1, 4\) must lie in 2 to 4"),
        ({"sizes": (2, 5)}, r"sizes=\(2, 5\) must lie in 2 to 4"),
        ({"observational": (3, 2)}, r"observational=\(3, 2\) must be 0 <= low <= high"),
        ({"interventional": (0, 20)}, "30 rows do not fit into a bucket of 24"),
        ({"clipped": -0.1}, "clipped=-0.1 must be within 0 and 1"),
    ],
)
def test_bad_configurations_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(CONFIG, **change)
