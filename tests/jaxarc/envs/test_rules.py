"""Allowed operations and the four ways to deal with one that is not.

Which pair a control operation leads to, for every place an episode can stand at.

What a step is worth, term by term.
"""

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arc_episode_reference import SWITCHES, nearest_allowed
from arc_play import make_config
from arc_states import small_state, small_task
from jaxarc.envs import rules
from jaxarc.episode import pack_flags, unpack_flags

OPERATIONS = range(42)
CONTEXT = {"dynamic_action_filtering": True, "context_dependent_operations": True}


def masks():
    rng = np.random.default_rng(1)
    yield np.zeros(42, bool)
    yield np.ones(42, bool)
    for only in (0, 20, 31, 32, 41):
        yield np.arange(42) == only
    for density in (0.05, 0.1, 0.3, 0.7):
        for _ in range(10):
            yield rng.random(42) < density


@pytest.mark.parametrize("policy", ["clip", "penalize", "reject", "passthrough"])
def test_filtering_equals_a_search(policy):
    every = jnp.arange(42, dtype=jnp.int32)
    step = jax.jit(
        jax.vmap(lambda o, words: rules.filter_operation(o, words, policy), (0, None))
    )
    for mask in masks():
        allowed = set(np.nonzero(mask)[0].tolist())
        got, replaced = jax.device_get(step(every, jnp.asarray(pack_flags(mask))))
        for operation in OPERATIONS:
            fine = operation in allowed or policy == "passthrough"
            other = (
                rules.NO_OPERATION
                if policy == "reject"
                else nearest_allowed(operation, allowed)
            )
            assert got[operation] == (operation if fine else other)
            assert replaced[operation] == (not fine)


allowed_words = jax.jit(rules.allowed_words, static_argnums=2)


def allowed_at(config, mode=0, steps=1, demos=2, tests=2, permitted=None):
    permitted = np.ones(42, bool) if permitted is None else permitted
    task = small_task(demos=demos, tests=tests)
    state = small_state(mode, task=task).replace(
        step_count=steps, allowed_operations_mask=permitted
    )
    words = np.asarray(allowed_words(task, state.episode, config))
    return set(np.nonzero(unpack_flags(words, 42))[0].tolist())


@pytest.mark.parametrize(
    ("action", "permitted", "wanted"),
    [
        ({"allowed_operations": (3, 34, 41)}, None, {3, 34, 41}),
        ({"max_operations": 35}, None, set(range(35))),
        ({"max_operations": 35, "allowed_operations": (3, 41)}, None, {3}),
        ({"allowed_operations": (1, 2, 3, 4)}, np.arange(42) % 2 == 0, {2, 4}),
    ],
)
def test_configuration_and_state_hold_always(action, permitted, wanted):
    assert allowed_at(make_config(action=action), permitted=permitted) == wanted


@pytest.mark.parametrize(
    ("place", "gone"),
    [
        ({"mode": 0}, {37, 38, 41}),
        ({"mode": 1}, {35, 36, 40}),
        ({"mode": 0, "demos": 1}, {35, 36, 37, 38, 40, 41}),
        ({"mode": 1, "tests": 1}, {35, 36, 37, 38, 40, 41}),
        ({"mode": 0, "steps": 0}, {37, 38, 39, 41}),
    ],
)
def test_context_takes_away_what_has_no_meaning(place, gone):
    assert allowed_at(make_config(action=CONTEXT), **place) == set(OPERATIONS) - gone


@pytest.mark.parametrize("missing", CONTEXT)
def test_context_needs_both_switches(missing):
    config = make_config(action=CONTEXT | {missing: False})
    assert allowed_at(config, steps=0, demos=1, tests=1) == set(OPERATIONS)


DEMO_SLOTS, TEST_SLOTS = 4, 3


def wanted(operation, mode, pair, count, solved, allowed):
    if not allowed or operation not in SWITCHES[mode]:
        return pair
    kind = SWITCHES[mode].index(operation)
    if kind < 2:
        return (pair + (1, -1)[kind]) % count
    unsolved = [index for index in range(count) if index not in solved]
    return min(unsolved, default=pair)


def cases():
    rng = np.random.default_rng(0)
    for mode, operation in itertools.product((0, 1), range(-1, 42)):
        for count in range(1, (DEMO_SLOTS, TEST_SLOTS)[mode] + 1):
            for pair in range(count):
                yield mode, operation, count, pair, rng.random(7) < 0.5


@pytest.mark.parametrize("demos", [False, True])
@pytest.mark.parametrize("tests", [False, True])
def test_every_place_and_operation(demos, tests):
    config = make_config(
        episode={"allow_demo_switching": demos, "allow_test_switching": tests}
    )
    found = list(cases())
    columns = map(np.array, zip(*found, strict=True))
    mode, operation, count, pair, completed = columns
    numbers = [
        values.astype(np.int32)
        for values in (operation, mode, pair, count, mode * DEMO_SLOTS)
    ]
    step = lambda flags, o, *place: rules.next_pair(
        o, rules.Place(*place), flags, config
    )
    got = np.asarray(jax.jit(jax.vmap(step))(completed, *numbers))
    for (mode, operation, count, pair, flags), after in zip(found, got, strict=True):
        solved = np.nonzero(flags[mode * DEMO_SLOTS :])[0]
        allowed = (demos, tests)[mode]
        assert after == wanted(operation, mode, pair, count, solved, allowed)


def test_a_mode_without_pairs_stays_where_it_is():
    place = rules.Place(*map(jnp.int32, (0, 0, 0, 0)))
    flags = jnp.zeros(4, bool)
    go = jax.jit(lambda o, p: rules.next_pair(o, p, flags, make_config()))
    after = go(jnp.int32(35), place)
    assert after == 0


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
    return rules.Outcome(**{name: jnp.asarray(value) for name, value in facts.items()})


def paid(terms, frequency: Any = "step", policy: Any = "clip", **facts):
    config = make_config(
        reward=terms,
        episode={"training_reward_frequency": frequency},
        action={"invalid_operation_policy": policy},
    )
    reward = rules.reward_of(outcome(**facts), config)
    assert reward.dtype == jnp.float32
    return float(reward)


SOLVED = {"solved": True, "newly_solved": True}


def test_documented_figures_of_the_default_rewards():
    gain = jnp.float32(0.25)
    assert paid({}, improvement=gain) == pytest.approx(0.25 - 0.01)
    solving = paid({}, improvement=gain, **SOLVED)
    assert solving == pytest.approx(0.25 - 0.01 + 10 + 1 + 1)
