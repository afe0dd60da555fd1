"""What a step is worth, term by term."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from arc_play import make_config
from jaxarc.envs.rules import Outcome, reward_of

TERMS = {
    "step_penalty": 0.0,
    "success_bonus": 0.0,
    "control_operation_penalty": 0.0,
    "demo_completion_bonus": 0.0,
    "test_completion_bonus": 0.0,
    "efficiency_bonus": 0.0,
    "training_similarity_weight": 0.0,
}


def outcome(**changes):
    facts = {
        "operation": jnp.int32(3),
        "testing": False,
        "submitted": False,
        "settled": False,
        "solved": False,
        "newly_solved": False,
        "others_solved": False,
        "improvement": jnp.float32(0.0),
        "similarity": jnp.float32(0.0),
        "step_count": jnp.int32(7),
        "replaced": False,
    } | changes
    return Outcome(**{name: jnp.asarray(value) for name, value in facts.items()})


def paid(terms, frequency: Any = "step", policy: Any = "clip", **facts):
    config = make_config(
        reward=terms,
        episode={"training_reward_frequency": frequency},
        action={"invalid_operation_policy": policy},
    )
    reward = reward_of(outcome(**facts), config)
    assert reward.dtype == jnp.float32
    return float(reward)


SOLVED = {"solved": True, "newly_solved": True}
SUBMITTED = {"operation": jnp.int32(34), "submitted": True, "settled": True}


def test_documented_figures_of_the_default_rewards():
    gain = jnp.float32(0.25)
    assert paid({}, improvement=gain) == pytest.approx(0.25 - 0.01)
    solving = paid({}, improvement=gain, **SOLVED)
    assert solving == pytest.approx(0.25 - 0.01 + 10 + 1 + 1)


@pytest.mark.parametrize(
    ("term", "facts"),
    [
        ("step_penalty", {}),
        ("success_bonus", SOLVED),
        ("demo_completion_bonus", SOLVED),
        ("test_completion_bonus", SOLVED | SUBMITTED | {"testing": True}),
        ("efficiency_bonus", SOLVED),
        ("consecutive_success_bonus", SOLVED | {"others_solved": True}),
        ("progress_bonus", {"improvement": jnp.float32(0.1)}),
        ("control_operation_penalty", {"operation": jnp.int32(35)}),
        ("pair_switching_bonus", {"operation": jnp.int32(41)}),
        ("unsolved_submission_penalty", SUBMITTED),
        ("unsolved_submission_penalty", SUBMITTED | {"testing": True}),
    ],
)
def test_a_term_is_paid_alone(term, facts):
    assert paid(TERMS | {term: -0.5}, **facts) == pytest.approx(-0.5)


@pytest.mark.parametrize(
    ("term", "facts"),
    [
        ("success_bonus", {"solved": True}),
        ("demo_completion_bonus", SOLVED | SUBMITTED | {"testing": True}),
        ("test_completion_bonus", SOLVED),
        ("efficiency_bonus", SOLVED | {"step_count": jnp.int32(51)}),
        ("efficiency_bonus", {"solved": True}),
        ("consecutive_success_bonus", SOLVED),
        ("progress_bonus", {"improvement": jnp.float32(-0.1)}),
        ("control_operation_penalty", {"operation": jnp.int32(34)}),
        ("pair_switching_bonus", {"operation": jnp.int32(-1)}),
        ("unsolved_submission_penalty", SUBMITTED | SOLVED),
        ("invalid_action_penalty", {"replaced": True}),
        ("evaluation_similarity_weight", {"testing": True, "similarity": 1.0}),
    ],
)
def test_a_term_is_not_paid_without_its_reason(term, facts):
    assert paid(TERMS | {term: 0.5}, **facts) == 0.0


def test_the_last_efficient_step():
    facts = SOLVED | {"step_count": jnp.int32(50)}
    assert paid(TERMS | {"efficiency_bonus": 0.5}, **facts) == 0.5


def test_a_replaced_operation_costs_under_penalize():
    terms = TERMS | {"invalid_action_penalty": -0.5}
    assert paid(terms, policy="penalize", replaced=True) == -0.5
    assert paid(terms, policy="penalize") == 0.0


def test_similarity_weights_multiply():
    weights = {"similarity_weight": 3.0, "training_similarity_weight": 0.5}
    gained = paid(TERMS | weights, improvement=jnp.float32(0.25))
    assert gained == pytest.approx(3.0 * 0.5 * 0.25)
    weights = {"similarity_weight": 3.0, "evaluation_similarity_weight": 0.5}
    facts = SUBMITTED | {"testing": True, "similarity": jnp.float32(0.75)}
    assert paid(TERMS | weights, **facts) == pytest.approx(3.0 * 0.5 * 0.75)


def test_delayed_rewards_fall_due_when_settled():
    facts = SOLVED | {"improvement": jnp.float32(0.5)}
    waiting = paid({}, "submit", **facts)
    assert waiting == pytest.approx(-0.01)
    due = paid({}, "submit", **facts, settled=True)
    assert due == pytest.approx(paid({}, "step", **facts))


def test_control_operations_cost_while_rewards_wait():
    assert paid({}, "submit", operation=jnp.int32(36)) == pytest.approx(-0.02)


def test_nothing_but_the_step_counts_before_a_test_answer():
    facts = SOLVED | {"improvement": jnp.float32(0.5), "testing": True}
    assert paid({}, **facts) == pytest.approx(-0.01)


def test_terms_add_up():
    rng = np.random.default_rng(0)
    names = [n for n in TERMS if n != "test_completion_bonus"]
    terms = TERMS | {name: float(rng.uniform(-1, 1)) for name in names}
    terms["training_similarity_weight"] = 0.3
    facts = SOLVED | {"operation": jnp.int32(39), "improvement": jnp.float32(0.5)}
    wanted = sum(terms[name] for name in names) - 0.5 * 0.3
    assert paid(terms, **facts) == pytest.approx(wanted, abs=1e-6)
