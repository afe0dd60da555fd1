"""Operations that would change nothing, found by trying every one of them."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arc_environments import clipping, reset, small_env, step
from arc_play import random_move
from jaxarc.envs import possible_operations, useful_operations
from jaxarc.ops.operations import NUM_OPERATIONS
from jaxarc.ops.operations import ARCLEOperationType as Op
from jaxarc.wrappers import MetricsWrapper

pytestmark = pytest.mark.slow  # many programs to compile

VIEWS = ("working_grid", "clipboard", "clipboard_mask", "current_example_idx")
useful, possible = jax.jit(useful_operations), jax.jit(possible_operations)


@jax.jit
def seen(env, state, action):
    """The documented views of a state, and after every operation on a selection."""
    views = lambda s: {view: getattr(env.arc_state(s), view) for view in VIEWS}

    def after(operation):
        tried = dataclasses.replace(action, operation=operation)
        return views(env.step(state, tried)[0])

    operations = jnp.arange(NUM_OPERATIONS, dtype=jnp.int32)
    return views(state), jax.vmap(after)(operations)


def changed(env, state, action):
    """Whether each operation changes a documented view."""
    before, after = jax.device_get(seen(env, state, action))
    found = [
        any(not np.array_equal(before[view], after[view][index]) for view in VIEWS)
        for index in range(NUM_OPERATIONS)
    ]
    found[Op.SUBMIT] = True
    return np.array(found)


@pytest.mark.parametrize("kind", ["point", "mask"])
def test_exactly_what_changes_something_is_useful(kind):
    env = small_env()
    rng = np.random.default_rng(3)
    state, _ = reset(env, jax.random.key(1))
    for _ in range(6):
        move = random_move(rng, (5, 5), kind)
        wanted = changed(env, state, move.action())
        np.testing.assert_array_equal(useful(env, state, move.action()), wanted)
        move.operation = int(rng.choice(np.flatnonzero(wanted)))
        if move.operation != Op.SUBMIT:
            state, _ = step(env, state, move.action())


def test_nothing_selected_on_a_fresh_grid():
    env = small_env()
    state, _ = reset(env, jax.random.key(0))
    nothing = {"operation": jnp.int32(0), "selection": jnp.zeros((5, 5), bool)}
    found = useful(env, state, nothing)
    assert not found[: int(Op.FLOOD_FILL_0)].any()
    assert not found[Op.PASTE]
    assert not found[Op.RESIZE]
    assert not found[Op.RESET_CURRENT_PAIR]
    assert found[Op.SUBMIT]


def test_what_is_not_allowed_is_neither_possible_nor_useful():
    listed = (0, 3, 28, 34)
    env = small_env(clipping(action={"allowed_operations": listed}))
    state, _ = reset(env, jax.random.key(0))
    allowed = possible(env.params, state)
    assert np.flatnonzero(allowed).tolist() == list(listed)
    everything = {"operation": jnp.int32(0), "selection": jnp.ones((5, 5), bool)}
    found = np.flatnonzero(useful(env, state, everything)).tolist()
    assert set(found) <= set(listed)
    assert {28, 34} <= set(found)


def random_action():
    return random_move(np.random.default_rng(0), (5, 5), "point").action()


def test_wrapped_states_and_documented_states_are_taken():
    env = small_env()
    wrapped = MetricsWrapper(env)
    state, _ = reset(wrapped, jax.random.key(0))
    action = random_action()
    wanted = useful(env, state.inner, action)
    np.testing.assert_array_equal(useful(wrapped, state, action), wanted)
    arc = env.arc_state(state.inner)
    np.testing.assert_array_equal(useful(env, arc, action), wanted)
    np.testing.assert_array_equal(useful(env.params, arc, action), wanted)


def test_many_states_at_once_and_no_dictionary_of_other_things():
    env = small_env()
    keys = jax.random.split(jax.random.key(0), 5)
    states, _ = jax.vmap(env.reset)(keys)
    action = random_action()
    mapped = jax.jit(jax.vmap(lambda s: useful_operations(env, s, action)))(states)
    for index in range(5):
        state, _ = reset(env, keys[index])
        np.testing.assert_array_equal(mapped[index], useful(env, state, action))
    with pytest.raises(TypeError, match=r"missing or not known: .selection."):
        useful_operations(env, reset(env, keys[0])[0], {"operation": 1})
