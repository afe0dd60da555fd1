"""Which tasks a curriculum draws, against the definitions in NumPy."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arc_environments import clipping, small_buffer, small_params
from jaxarc.envs.environment import Environment
from jaxarc.learning import curriculum
from jaxarc.wrappers import AutoReset, Vectorize

KEY = jax.random.key(0)


def test_every_concept_is_as_likely():
    ids = ["Center/Center1", "Copy/Copy1", "Center/Center2", "Center/Center10", None]
    groups = curriculum.concepts(ids)
    weights = np.asarray(curriculum.by_concept(jnp.asarray(groups)))
    sums = [weights[groups == group].sum() for group in range(3)]
    np.testing.assert_allclose(sums, 1.0, rtol=1e-6)


def test_tasks_beyond_a_size_are_left_out():
    tasks = small_buffer(6)
    largest = np.asarray(tasks.sizes).prod(-1).max((-2, -1))
    limit = int(np.median(largest))
    found = jax.jit(curriculum.by_size)(tasks, limit)
    np.testing.assert_array_equal(found, largest <= limit)


def test_progress_counts_the_episodes_that_ended():
    progress = curriculum.begin_progress(3)
    rows = jnp.array([0, 0, 0, 1, 2])
    solved = jnp.array([True, True, False, True, True])
    ended = jnp.array([True, True, True, True, False])
    count = jax.jit(lambda p, *episodes: curriculum.record(p, *episodes, rate=0.5))
    after = count(progress, rows, solved, ended)
    wanted = [0.5 + 0.5 * (2 / 3 - 0.5), 0.75, 0.5]
    np.testing.assert_allclose(after.solve_rate, wanted, rtol=1e-6)
    np.testing.assert_array_equal(after.last_seen, [1, 1, 0])


def test_priorities_are_those_of_the_paper():
    progress = curriculum.Progress(
        jnp.array([0.5, 0.75, 0.0, 0.25]), jnp.array([4, 4, 1, 2]), jnp.array(4)
    )
    found = jax.jit(lambda p: curriculum.prioritized(p, 0.5, 0.2))(progress)
    by_rank = np.array([1, 2, 4, 2.0]) ** -2
    wanted = 0.8 * by_rank / by_rank.sum() + 0.2 * np.array([0, 0, 3, 2]) / 5
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    fresh = jax.jit(curriculum.prioritized)(curriculum.begin_progress(4))
    np.testing.assert_allclose(fresh, 0.25, rtol=1e-6)


@pytest.mark.slow  # compiles steps and automatic resets
def test_a_compiled_loop_changes_its_tasks():
    params = small_params(clipping(steps=1))
    env = Vectorize(AutoReset(Environment(params=params)))

    @jax.jit
    def play(params, keys, weights):
        def turn(state, inputs):
            key, weights = inputs
            focused = curriculum.focus(key, params, weights, 8)
            actions = env.action_space().sample(key, (16,))
            state, _ = env.step(state, actions, focused)
            return state, state.episode.task_row

        state, _ = env.reset(jax.random.split(keys[0], 16), params)
        return jax.lax.scan(turn, state, (keys, weights))[1]

    chosen = [3, 1]
    rows = play(params, jax.random.split(KEY, 2), jax.nn.one_hot(jnp.array(chosen), 4))
    np.testing.assert_array_equal(rows, np.repeat(chosen, 16).reshape(2, 16))


@pytest.mark.parametrize("weight", [0.0, -1.0, np.nan, np.inf])
def test_weights_without_a_task_to_draw_are_refused(weight):
    """Drawn from, they would all give row 0."""
    with pytest.raises(RuntimeError, match="leaves no task to draw"):
        curriculum.focus(KEY, small_params(), jnp.full(4, weight))
    with pytest.raises(ValueError, match="the buffer holds 4 tasks: give one weight"):
        curriculum.focus(KEY, small_params(), jnp.full(2, 1.0))


def test_tasks_in_order_are_refused():
    params = small_params()
    dataset = dataclasses.replace(params.config.dataset, shuffle_tasks=False)
    config = dataclasses.replace(params.config, dataset=dataset)
    with pytest.raises(ValueError, match="shuffle_tasks is off"):
        curriculum.focus(KEY, small_params(config), jnp.ones(4))
