"""Allowed operations and the four ways to deal with one that is not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arc_episode_reference import nearest_allowed
from arc_play import make_config
from arc_states import small_state, small_task
from jaxarc.envs.rules import (
    NO_OPERATION,
    allowed_words,
    filter_operation,
)
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
        jax.vmap(lambda o, words: filter_operation(o, words, policy), (0, None))
    )
    for mask in masks():
        allowed = set(np.nonzero(mask)[0].tolist())
        got, replaced = jax.device_get(step(every, jnp.asarray(pack_flags(mask))))
        for operation in OPERATIONS:
            fine = operation in allowed or policy == "passthrough"
            other = (
                NO_OPERATION
                if policy == "reject"
                else nearest_allowed(operation, allowed)
            )
            assert got[operation] == (operation if fine else other)
            assert replaced[operation] == (not fine)


def allowed_at(config, mode=0, steps=1, demos=2, tests=2, permitted=None):
    permitted = np.ones(42, bool) if permitted is None else permitted
    task = small_task(demos=demos, tests=tests)
    state = small_state(mode, task=task).replace(
        step_count=steps, allowed_operations_mask=permitted
    )
    words = allowed_words(task, state.episode, config)
    return set(np.nonzero(unpack_flags(words, 42))[0].tolist())


def test_the_configured_list_holds_always():
    config = make_config(action={"allowed_operations": (3, 34, 41)})
    assert allowed_at(config) == {3, 34, 41}


def test_max_operations_cuts_the_list():
    assert allowed_at(make_config(action={"max_operations": 35})) == set(range(35))


def test_the_mask_of_the_state_holds_always():
    permitted = np.arange(42) % 2 == 0
    config = make_config(action={"allowed_operations": (1, 2, 3, 4)})
    assert allowed_at(config, permitted=permitted) == {2, 4}


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
