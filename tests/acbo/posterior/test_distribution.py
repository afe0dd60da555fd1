import copy
import pickle

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acbo.graphs import enumerate_possible_parent_sets
from acbo.posterior.distribution import (
    GraphPosterior,
    ParentSetPosterior,
    create_parent_set_posterior,
)

NAMES = ["A", "B", "C", "Y"]
SETS = enumerate_possible_parent_sets(NAMES, "Y", 3)
A, AB = frozenset("A"), frozenset("AB")


def example(**metadata):
    sets = [frozenset(), A, AB]
    return create_parent_set_posterior("Y", sets, [0.1, 0.3, 0.6], metadata)


def test_fields_of_a_created_posterior():
    post = example(source="test")
    assert post.target_variable == "Y"
    assert dict(post.parent_set_probs) == {frozenset(): 0.1, A: 0.3, AB: 0.6}
    assert post.uncertainty == pytest.approx(0.8979457, abs=1e-7)
    assert post.entropy == post.uncertainty
    assert list(post.top_k_sets) == [(AB, 0.6), (A, 0.3), (frozenset(), 0.1)]
    assert post.metadata["source"] == "test"
    assert post.metadata["n_parent_sets"] == 3
    assert post.metadata["probability_sum"] == pytest.approx(1)
    assert post.metadata["max_probability"] == 0.6
    assert post.metadata["min_probability"] == 0.1


def test_nothing_can_be_changed_and_copies_are_equal():
    post = example(note=1)
    with pytest.raises(AttributeError):
        post.uncertainty = 0.0  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(TypeError):
        post.parent_set_probs[A] = 1.0  # pyright: ignore[reportIndexIssue]
    with pytest.raises(ValueError, match="read-only"):
        post.probabilities[0] = 1.0
    assert pickle.loads(pickle.dumps(post)) == post
    assert copy.deepcopy(post) == post


weights = st.lists(st.integers(0, 9), min_size=len(SETS), max_size=len(SETS))


@given(weights.filter(any))
def test_marginals_are_sums_over_sets(counts):
    chances = np.array(counts) / sum(counts)
    post = create_parent_set_posterior("Y", SETS, chances)
    assert sum(post.parent_set_probs.values()) == pytest.approx(1)
    found = post.parent_probs(NAMES)
    assert list(found) == ["A", "B", "C"]
    for name, chance in found.items():
        wanted = sum(p for s, p in zip(SETS, chances, strict=True) if name in s)
        assert chance == pytest.approx(wanted)
    assert [p for _, p in post.top_sets(99)] == sorted(chances, reverse=True)


def test_variables_outside_the_sets():
    assert example().parent_probs(["Z", "A", "Y"]) == pytest.approx({"Z": 0, "A": 0.9})
    assert list(example().parent_probs()) == ["A", "B"]
    named = example(all_variables=("Z", "A", "B", "Y"))
    assert list(named.parent_probs()) == ["Z", "A", "B"]


def test_log_prob_and_top_sets():
    assert example().log_prob({"A", "B"}) == pytest.approx(np.log(0.6))
    assert example().log_prob({"C"}) == -np.inf
    with pytest.raises(TypeError, match="give a set"):
        example().log_prob("AB")
    with pytest.raises(ValueError, match="k=0"):
        example().top_sets(0)


@pytest.mark.parametrize("chances", [[0.1, 0.3, 0.6], [0, 1, 0]])
def test_sample_frequencies(chances):
    post = create_parent_set_posterior("Y", [[], A, AB], chances)
    drawn = [post.sample(key) for key in jax.random.split(jax.random.key(1), 400)]
    for chosen, chance in post.parent_set_probs.items():
        error = abs(drawn.count(chosen) / 400 - chance)
        assert error <= 4 * np.sqrt(chance * (1 - chance) / 400)


def test_graph_holds_likely_edges():
    graph = example(all_variables=NAMES).to_networkx(threshold=0.7)
    assert set(graph) == set(NAMES)
    ((parent, child, chance),) = graph.edges(data="probability")
    assert (parent, child) == ("A", "Y")
    assert chance == pytest.approx(0.9)
    assert len(example().to_networkx().edges) == 2


def test_probabilities_are_scaled():
    post = create_parent_set_posterior("Y", [[], ["A"]], [0.5, 0.51])
    assert sum(post.parent_set_probs.values()) == pytest.approx(1, abs=1e-12)
    assert post.metadata["probability_sum"] == pytest.approx(1.01)


@pytest.mark.parametrize(
    ("target", "sets", "chances", "message"),
    [
        ("", [[]], [1.0], "target_variable is empty"),
        ("Y", [], [], "no parent set"),
        ("Y", [[], ["A"]], [0.5, 0.4], "sum to 0.9"),
        ("Y", [[], ["A"]], [0.5, np.nan], "sum to nan"),
        ("Y", [[], ["A"]], [1.1, -0.1], r"\['A'\] has negative probability"),
        ("Y", [["A", "Y"]], [1.0], "nothing causes itself"),
        ("Y", [[], ["A"]], [1.0], "one number for each"),
        ("Y", [["A"], ["A"]], [0.5, 0.5], "given twice"),
    ],
)
def test_refusals(target, sets, chances, message):
    with pytest.raises(ValueError, match=message):
        create_parent_set_posterior(target, sets, chances)


@pytest.mark.parametrize("entropy", [-0.1, 0.72, np.nan])
def test_impossible_entropies_are_refused(entropy):
    with pytest.raises(ValueError, match="not an entropy of 2 sets"):
        ParentSetPosterior("Y", {A: 0.5, AB: 0.5}, entropy, [(A, 0.5), (AB, 0.5)])


@pytest.mark.parametrize("d", [1, 7, 70])
def test_ancestors_are_the_powers_of_the_graphs(d):
    draw = np.random.default_rng(d)
    graphs = np.triu(draw.random((5, d, d)) < 3 / d, 1)
    order = draw.permutation(d)
    graphs = graphs[:, order][:, :, order]
    names, none = tuple(f"X{i}" for i in range(d)), np.zeros((d, d))
    sets = np.zeros((d, 0), int), np.ones((d, 1))
    found = GraphPosterior(names, graphs, graphs.mean(axis=0), none, *sets)
    reached = np.linalg.matrix_power(np.eye(d) + graphs, d) > 0
    expected = reached.mean(axis=0) - np.eye(d)
    np.testing.assert_allclose(found.ancestor_probs, expected, atol=1e-12)
