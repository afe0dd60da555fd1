"""Random models and data sets: legal, as configured, one program for all sizes."""

import dataclasses

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest

from acbo.mechanisms import LAPLACE, UNIFORM
from acbo.random_models import (
    DataConfig,
    SCMConfig,
    draw_dataset,
    draw_graph,
    random_scm,
    random_scms,
)
from jaxrig.testing import assert_one_trace

D, COPIES = 4, 64
CONFIG = SCMConfig(
    families=("chain", "star", "star", "star"),
    noises=("laplace", "uniform"),
    weights=(0.5, 2.0),
    noise=(0.2, 1.0),
    equal_noise=0.5,
    any_target=0.25,
)
SIZES = np.tile([2, 3, 4, 4], COPIES // 4)


@pytest.fixture(scope="module")
def scms():
    """Models of three sizes in a bucket of four, from one program."""
    draw = jax.jit(random_scms, static_argnums=(1, 3))
    return jax.tree.map(np.asarray, draw(jax.random.key(2), CONFIG, SIZES, D))


def weights(scms, i):
    return scms.features.inner[i, :, 0, :].T


def test_a_model_has_its_size_and_the_padding_is_untouched(scms):
    for i, size in enumerate(SIZES):
        there = np.arange(D) < size
        np.testing.assert_array_equal(scms.mask[i], there)
        assert not scms.adjacency[i, ~there].any()
        assert not scms.adjacency[i][:, ~there].any()
        assert scms.target[i] < size


def test_causes_come_first_in_the_order(scms):
    for graph, order, size in zip(scms.adjacency, scms.order, SIZES, strict=True):
        assert nx.is_directed_acyclic_graph(nx.DiGraph(graph.astype(int)))
        place = np.argsort(order)
        causes, effects = np.nonzero(graph)
        assert (place[causes] < place[effects]).all()
        assert sorted(order.tolist()) == list(range(D))
        assert order[size:].tolist() == list(range(size, D))


def test_columns_are_shuffled(scms):
    orders = {tuple(o) for o, size in zip(scms.order, SIZES, strict=True) if size == D}
    assert len(orders) > 10


def test_weights_lie_where_the_edges_are(scms):
    signs = []
    for i, graph in enumerate(scms.adjacency):
        found = weights(scms, i)
        np.testing.assert_array_equal(found != 0, graph)
        size = abs(found[graph])
        assert ((size >= 0.5) & (size <= 2.0)).all()
        signs += np.sign(found[graph]).tolist()
    assert abs(np.mean(signs)) < 4 / np.sqrt(len(signs))


def test_families_are_drawn_as_often_as_they_are_named(scms):
    """Three stars to one chain; with two variables they are the same."""
    large = [g for g, size in zip(scms.adjacency, SIZES, strict=True) if size == D]
    stars = np.mean([g.sum(axis=0).max() == D - 1 for g in large])
    assert abs(stars - 0.75) < 4 * np.sqrt(0.75 * 0.25 / len(large))


def test_targets_are_effects_except_for_the_free_ones(scms):
    """A free target is a root with a chance of about one in two to four."""
    caused = [g[:, t].any() for g, t in zip(scms.adjacency, scms.target, strict=True)]
    assert 0.6 < np.mean(caused) < 1


def test_noise_is_within_its_bounds_and_equal_for_half_of_the_models(scms):
    scale = scms.noise_scale
    assert ((scale >= 0.2) & (scale <= 1.0)).all()
    equal = (scale == scale[:, :1]).all(axis=1)
    assert abs(equal.mean() - 0.5) < 4 * 0.5 / np.sqrt(COPIES)
    assert (scms.noise_kind == scms.noise_kind[:, :1]).all()
    assert set(scms.noise_kind[:, 0].tolist()) == {LAPLACE, UNIFORM}


def test_ranges_follow_the_benchmark(scms):
    scale = np.sqrt(SIZES / 5)[:, None]
    high, low = scms.high / scale, -scms.low / scale
    assert ((high >= 1 - 1e-5) & (high <= 5 + 1e-4)).all()
    assert ((low >= 0.5 - 1e-5) & (low <= 2 * high + 1e-4)).all()
    assert 0.35 < (low > high).mean() < 0.65


def test_a_given_graph_is_used():
    config = SCMConfig(families=("star",))
    graph = lambda: draw_graph(jax.random.key(0), ("chain",), jnp.asarray(D), D)
    draw = lambda key: random_scm(key, config, D, D, graph())
    scm = jax.jit(draw)(jax.random.key(4))
    assert np.asarray(scm.adjacency).sum(axis=0).max() == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"families": ("tree",)}, "family 'tree' is not known"),
        ({"families": ()}, r"families is \(\): give one name or more"),
        (
            {"mechanisms": ("cubic",)},
            "mechanism 'cubic' is not known; .* There are: linear",
        ),
        (
            {"noises": ("cauchy",)},
            "noise 'cauchy' is not known; .* There are: gaussian",
        ),
        ({"weights": (2.0, 1.0)}, r"weights is \(2.0, 1.0\): give 0 <= low <= high"),
        ({"noise": (-1.0, 1.0)}, r"noise is \(-1.0, 1.0\)"),
        ({"any_target": 1.5}, "any_target is 1.5: give a number from 0 to 1"),
    ],
)
def test_bad_configurations_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(CONFIG, **change)


DATA_SETS = 48
CHAIN = SCMConfig(families=("chain",))
DATA = DataConfig(
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
    draw = lambda keys: jax.lax.map(lambda key: draw_dataset(key, DATA), keys)
    keys = [(jax.random.split(jax.random.key(i), DATA_SETS),) for i in range(2)]
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
    for i in range(DATA_SETS):
        assert not data.intervened[i, :, data.target[i]].any()
        assert not data.intervened[i][:, ~data.var_mask[i]].any()


def test_sizes_and_padding(data):
    sizes = data.var_mask.sum(axis=1)
    assert set(sizes.tolist()) == {2, 3, 4}
    for i in range(DATA_SETS):
        there = data.var_mask[i]
        assert there[data.target[i]]
        assert not data.values[i][:, ~there].any()
        assert not data.adjacency[i][~there].any()
        assert not data.adjacency[i][:, ~there].any()


def test_values_vary_and_are_finite(data):
    assert np.isfinite(data.values).all()
    for i in range(DATA_SETS):
        assert (data.values[i][:, data.var_mask[i]].std(axis=0) > 0).all()


def test_edges_explain_the_rows(data):
    """What is left of an effect after its cause is no longer than the effect itself."""
    slopes = []
    for i in range(DATA_SETS):
        for cause, effect in np.argwhere(data.adjacency[i]):
            free = data.row_mask[i] & ~data.intervened[i, :, effect]
            x, y = data.values[i, free, cause], data.values[i, free, effect]
            slopes.append(abs(np.corrcoef(x, y)[0, 1]))
    assert np.median(slopes) > 0.5


@pytest.mark.slow
def test_squares_of_squares_stay_finite(key):
    """Quadratic mechanisms in a long chain grow without end."""
    steep = SCMConfig(families=("chain",), mechanisms=("quadratic",))
    config = DataConfig(scms=(steep,), variables=16, sizes=(16, 16), clipped=0.0)
    draw = jax.vmap(lambda key: draw_dataset(key, config))
    found = jax.jit(draw)(jax.random.split(key, 20))
    values = np.asarray(found.values)
    assert np.isfinite(values).all()
    assert abs(values).max() > 1e9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scms": ()}, r"scms is \(\): give one SCMConfig"),
        ({"sizes": (1, 4)}, r"sizes=\(1, 4\) must lie in 2 to 4"),
        ({"sizes": (2, 5)}, r"sizes=\(2, 5\) must lie in 2 to 4"),
        ({"observational": (3, 2)}, r"observational is \(3, 2\): give 0 <= low"),
        ({"interventional": (0, 20)}, "30 rows do not fit into a bucket of 24"),
        ({"clipped": -0.1}, "clipped is -0.1: give a number from 0 to 1"),
    ],
)
def test_bad_data_configurations_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(DATA, **change)
