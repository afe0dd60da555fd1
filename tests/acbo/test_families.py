"""Random models: legal, within their configuration, one program for all sizes."""

import dataclasses

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest

from acbo.families import SCMConfig, draw_graph, random_scm, random_scms
from acbo.mechanisms.noise import LAPLACE, UNIFORM

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
        ({"families": ("tree",)}, "family 'tree' is not one of"),
        ({"families": ()}, "need one name at least"),
        ({"mechanisms": ("cubic",)}, "mechanisms: 'cubic' is not one of: linear"),
        ({"noises": ("cauchy",)}, "noises: 'cauchy' is not one of: gaussian"),
        ({"weights": (2.0, 1.0)}, r"weights=\(2.0, 1.0\) must be 0 <= low <= high"),
        ({"noise": (-1.0, 1.0)}, r"noise=\(-1.0, 1.0\)"),
        ({"any_target": 1.5}, "any_target=1.5 must be within 0 and 1"),
    ],
)
def test_bad_configurations_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(CONFIG, **change)
