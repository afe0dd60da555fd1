import numpy as np
import pytest
from scipy.stats import entropy

from acbo.posterior import (
    compare_posteriors,
    compute_posterior_concentration,
    compute_posterior_entropy,
    create_parent_set_posterior,
    filter_parent_sets_by_probability,
    get_marginal_parent_probabilities,
    get_most_likely_parents,
    get_parent_set_probability,
    summarize_posterior,
)

A, AB = frozenset("A"), frozenset("AB")
POST = create_parent_set_posterior("Y", [[], A, AB], [0.1, 0.3, 0.6])


def test_likeliest_sets_and_probabilities():
    assert get_most_likely_parents(POST) == [AB]
    assert get_most_likely_parents(POST, 2) == [AB, A]
    with pytest.raises(ValueError, match="k=-1"):
        get_most_likely_parents(POST, -1)
    assert get_parent_set_probability(POST, {"A"}) == 0.3
    assert get_parent_set_probability(POST, {"C"}) == 0.0
    marginals = get_marginal_parent_probabilities(POST, ["A", "B", "C", "Y"])
    assert marginals == pytest.approx({"A": 0.9, "B": 0.6, "C": 0.0})


def test_concentration_is_one_for_a_point_mass():
    point = create_parent_set_posterior("Y", [[], A, AB], [0, 0, 1])
    even = create_parent_set_posterior("Y", [[], A, AB, ["C"]], np.full(4, 0.25))
    assert compute_posterior_concentration(point) == 1
    assert compute_posterior_concentration(even) == pytest.approx(0.25)
    assert compute_posterior_entropy(even) == pytest.approx(np.log(4))


def test_filter_scales_what_is_left():
    found = filter_parent_sets_by_probability(POST, 0.2)
    assert dict(found.parent_set_probs) == pytest.approx({A: 1 / 3, AB: 2 / 3})
    assert found.metadata["filtered_mass"] == pytest.approx(0.9)
    with pytest.raises(ValueError, match=r"the likeliest has 0\.6"):
        filter_parent_sets_by_probability(POST, 0.7)


def test_comparison_of_posteriors_with_common_sets():
    other = create_parent_set_posterior("Y", [AB, [], A], [0.2, 0.5, 0.3])
    found = compare_posteriors(POST, other)
    p, q = np.array([0.1, 0.3, 0.6]), np.array([0.5, 0.3, 0.2])
    assert found["kl_divergence_1_to_2"] == pytest.approx(entropy(p, q))
    assert found["kl_divergence_2_to_1"] == pytest.approx(entropy(q, p))
    mean = (entropy(p, q) + entropy(q, p)) / 2
    assert found["symmetric_kl_divergence"] == pytest.approx(mean)
    assert found["total_variation_distance"] == pytest.approx(0.4)
    assert found["overlap"] == pytest.approx(0.6)
    assert found["n_common_parent_sets"] == 3


def test_comparison_of_posteriors_without_common_sets():
    other = create_parent_set_posterior("Y", [["C"]], [1.0])
    found = compare_posteriors(other, POST)
    assert found["kl_divergence_1_to_2"] == pytest.approx(-np.log(1e-12))
    assert compare_posteriors(other, POST, floor=0)["kl_divergence_1_to_2"] == np.inf
    assert (found["overlap"], found["total_variation_distance"]) == (0, 1)
    stranger = create_parent_set_posterior("Z", [["C"]], [1.0])
    with pytest.raises(ValueError, match="'Y' and 'Z' differ"):
        compare_posteriors(POST, stranger)


def test_summary():
    found = summarize_posterior(POST)
    assert found["uncertainty_nats"] == pytest.approx(0.8979457, abs=1e-7)
    assert found["uncertainty_bits"] == pytest.approx(1.2954618, abs=1e-7)
    assert found["effective_n_parent_sets"] == pytest.approx(2.4546, abs=1e-4)
    assert found["most_likely_parents"] == {"A", "B"}
    assert found["most_likely_probability"] == 0.6
    assert found["probability_mass_top_3"] == pytest.approx(1)
    assert found["marginal_parent_probabilities"] == pytest.approx({"A": 0.9, "B": 0.6})
    assert found["concentration"] == pytest.approx(1 / 2.4546, abs=1e-4)
