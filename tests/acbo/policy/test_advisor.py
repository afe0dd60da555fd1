import jax
import numpy as np
import pytest

from acbo.named.tables import Experiments
from acbo.policy.advisor import load_policy, save_policy
from acbo.posterior.distribution import create_parent_set_posterior
from causal_policies import small_policy
from jaxrig.testing import assert_trees_close

NAMES = ("a", "b", "y")


def experiments(direction="MINIMIZE"):
    random = np.random.default_rng(0)
    values = random.normal(size=(20, 3))
    values[:, 2] += 2 * values[:, 0]
    flags = np.zeros((20, 3), bool)
    flags[15:, 0] = True
    ranges = {"a": (-2.0, 3.0), "b": (0.0, 1.0)}
    return Experiments(values, flags, NAMES, "y", ranges, direction)


def test_a_proposal_is_within_its_range_and_never_the_target(key):
    policy, seen = small_policy(), experiments()
    for each in [None, *jax.random.split(key, 6)]:
        name, value = policy.propose(seen, key=each)
        low, high = seen.ranges[name]
        assert low <= value <= high


def test_reasons_come_in_order_and_in_the_users_units():
    policy = small_policy()
    found = policy.explain(experiments())
    assert {each.variable for each in found} == {"a", "b"}
    chances = [each.probability for each in found]
    assert chances == sorted(chances, reverse=True)
    assert sum(chances) == pytest.approx(1.0, abs=1e-4)
    seen = experiments()
    larger = Experiments(
        seen.values * [1, 1, 10], seen.intervened, NAMES, "y", seen.ranges
    )
    for one, ten in zip(found, policy.explain(larger), strict=True):
        assert ten.variable == one.variable
        assert ten.expected == pytest.approx(10 * one.expected, rel=1e-2, abs=1e-2)
        assert ten.std == pytest.approx(10 * one.std, rel=1e-3)


def test_an_offset_changes_nothing_but_the_offset():
    policy, seen = small_policy(), experiments()
    offset = np.array([1e7, -3e6, 5e8])
    ends = {
        name: (low + offset[i], high + offset[i])
        for i, (name, (low, high)) in enumerate(seen.ranges.items())
    }
    moved = Experiments(seen.values + offset, seen.intervened, NAMES, "y", ends)
    found = {each.variable: each for each in policy.explain(moved)}
    for one in policy.explain(seen):
        other = found[one.variable]
        chance = one.parent_probability
        assert other.parent_probability == pytest.approx(chance, abs=1e-3)
        assert other.expected - 5e8 == pytest.approx(one.expected, abs=1e-3)


def test_a_posterior_replaces_what_the_surrogate_says():
    policy, seen = small_policy(), experiments()
    sets = [frozenset(), frozenset("a"), frozenset("b")]
    posterior = create_parent_set_posterior("y", sets, [0.1, 0.7, 0.2])
    found = {each.variable: each for each in policy.explain(seen, posterior)}
    assert found["a"].parent_probability == pytest.approx(0.7)
    same = {each.variable: each for each in policy.explain(seen, {"a": 0.7, "b": 0.2})}
    assert same["b"].parent_probability == pytest.approx(0.2)
    wrong = create_parent_set_posterior("a", [frozenset("b")], [1.0])
    with pytest.raises(ValueError, match="about 'a'"):
        policy.propose(seen, wrong)


def test_a_saved_policy_is_loaded_as_it_was(tmp_path):
    policy = small_policy()
    path = save_policy(tmp_path / "own.ckpt", policy.network)
    assert_trees_close(load_policy(path).network, policy.network, rtol=0, atol=0)


@pytest.mark.parametrize(("direction", "end"), [("MINIMIZE", -2.0), ("MAXIMIZE", 3.0)])
def test_the_shipped_policy_moves_a_plain_cause_to_its_better_end(direction, end):
    name, value = load_policy().propose(experiments(direction))
    assert name == "a"
    assert value == pytest.approx(end, abs=0.7)
