"""Channels equal the documented views of a state, cell for cell."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arc_environments import (
    clipping,
    described,
    play,
    reset,
    sample_actions,
    small_buffer,
    small_env,
    small_params,
    small_puzzles,
    step,
)
from arc_play import row
from arc_states import point
from jaxarc.envs.environment import Environment
from jaxarc.tasks.augment import augment_task
from jaxarc.wrappers import (
    AnswerObservationWrapper,
    ClipboardObservationWrapper,
    ContextualObservationWrapper,
    InputGridObservationWrapper,
    MetricsWrapper,
    Vectorize,
)

pytestmark = pytest.mark.slow  # many programs to compile

COPY = 28
PLAIN = (
    ClipboardObservationWrapper,
    InputGridObservationWrapper,
    AnswerObservationWrapper,
)


def shown_task(state, puzzles):
    """The task as the episode shows it, by the function for whole tasks."""
    task = puzzles[int(state.episode.task_row)].as_task()
    shown = state.episode.augmentation
    if shown is None:
        return task
    return augment_task(task, shown.symmetry, shown.permutation)


@pytest.mark.parametrize(("mode", "augment"), [(0, True), (1, False)])
def test_input_and_answer_are_those_of_the_pair(mode, augment):
    env = AnswerObservationWrapper(
        InputGridObservationWrapper(small_env(episode_mode=mode, augment=augment))
    )
    puzzles = small_puzzles()
    for number in range(6):
        state, first = reset(env, jax.random.key(number))
        task = shown_task(state, puzzles)
        pair = int(state.episode.current_example_idx)
        given = (task.input_grids_examples, task.test_input_grids)[mode][pair]
        wanted = (task.output_grids_examples, task.true_test_output_grids)[mode][pair]
        np.testing.assert_array_equal(first.observation[..., 0], given)
        np.testing.assert_array_equal(first.observation[..., 1], given)
        np.testing.assert_array_equal(first.observation[..., 2], wanted)
        _, after = step(env, state, point(33, 1, 1))
        np.testing.assert_array_equal(after.observation[..., 1], given)
        assert (np.asarray(after.observation[..., 0]) >= 0).sum() == 4


def test_a_hidden_answer_is_an_empty_channel():
    env = AnswerObservationWrapper(small_env(), hidden=True)
    _, first = reset(env, jax.random.key(0))
    assert (np.asarray(first.observation[..., 1]) == -1).all()
    shown = AnswerObservationWrapper(small_env())
    assert env.observation_space() == shown.observation_space()


def test_the_clipboard_shows_its_content_alone():
    env = ClipboardObservationWrapper(small_env())
    state, first = reset(env, jax.random.key(1))
    assert (np.asarray(first.observation[..., 1]) == -1).all()
    cells = jnp.zeros((5, 5), bool).at[0, 0].set(True)
    state, after = step(env, state, {"operation": jnp.int32(COPY), "selection": cells})
    wanted = np.full((5, 5), -1)
    wanted[0, 0] = first.observation[0, 0, 0]
    np.testing.assert_array_equal(after.observation[..., 1], wanted)
    arc = env.arc_state(state)
    content = np.where(arc.clipboard_mask, arc.clipboard, -1)
    np.testing.assert_array_equal(after.observation[..., 1], content)


def context_by_hand(task, skipped, count):
    pairs = [i for i in range(int(task.num_train_pairs)) if i != skipped]
    channels = np.full((5, 5, 2 * count), -1, np.int32)
    for place, pair in enumerate(pairs[:count]):
        channels[..., 2 * place] = task.input_grids_examples[pair]
        channels[..., 2 * place + 1] = task.output_grids_examples[pair]
    return channels


@pytest.mark.parametrize(
    ("mode", "augment", "count"), [(0, False, 2), (0, True, 5), (1, True, 1)]
)
def test_the_context_is_the_other_demonstrations(mode, augment, count):
    buffer, puzzles = small_buffer(demos=3), small_puzzles(demos=3)
    inner = small_env(buffer=buffer, episode_mode=mode, augment=augment)
    env = ContextualObservationWrapper(inner, num_context_pairs=count)
    for number in range(5):
        state, first = reset(env, jax.random.key(number))
        skipped = int(state.episode.current_example_idx) if mode == 0 else None
        wanted = context_by_hand(shown_task(state, puzzles), skipped, count)
        np.testing.assert_array_equal(first.observation[..., 1:], wanted)


def test_a_switch_of_pairs_switches_the_context():
    buffer, puzzles = small_buffer(demos=3), small_puzzles(demos=3)
    env = ContextualObservationWrapper(small_env(buffer=buffer), 2)
    state, _ = reset(env, jax.random.key(0), start={"task": 1, "pair": 0})
    state, after = step(env, state, point(35))
    assert int(state.episode.current_example_idx) == 1
    wanted = context_by_hand(puzzles[1].as_task(), 1, 2)
    np.testing.assert_array_equal(after.observation[..., 1:], wanted)


def test_tasks_without_enough_demonstrations_are_padded():
    env = ContextualObservationWrapper(small_env(), 3)
    _, first = reset(env, jax.random.key(0), start={"task": 0})
    assert (np.asarray(first.observation[..., 1:]) == -1).all()


def test_observations_lie_in_their_space():
    env = small_env(clipping(steps=20))
    for wrapper in PLAIN:
        env = wrapper(env)
    actions = sample_actions(env, jax.random.key(0), 12)
    first, _, steps = play(env, jax.random.key(1), actions)
    space = env.observation_space()
    assert space.shape == (5, 5, 4)
    assert space.contains(first[1].observation)
    assert all(space.contains(one) for one in steps.observation)
    assert described(first[1]) == described(row(steps, 3))


def test_channels_add_up_in_the_order_of_the_wrappers():
    env = small_env()
    one = ContextualObservationWrapper(InputGridObservationWrapper(env), 2)
    other = InputGridObservationWrapper(ContextualObservationWrapper(env, 2))
    assert one.observation_space().shape == (5, 5, 6)
    found = reset(one, jax.random.key(3))[1].observation
    swapped = reset(other, jax.random.key(3))[1].observation
    np.testing.assert_array_equal(found[..., [0, 2, 3, 4, 5, 1]], swapped)


def test_channels_come_from_the_parameters_of_the_call():
    other = small_params(buffer=small_buffer(seed=9))
    env = AnswerObservationWrapper(small_env())
    alone = AnswerObservationWrapper(Environment(params=other))
    state, first = reset(env, jax.random.key(0), other)
    _, wanted = reset(alone, jax.random.key(0))
    np.testing.assert_array_equal(first.observation, wanted.observation)
    np.testing.assert_array_equal(env.observe(state, other), alone.observe(state))


def test_wrappers_above_and_vectors_see_the_channels_too():
    inner = MetricsWrapper(InputGridObservationWrapper(small_env()))
    env = Vectorize(inner)
    keys = jax.random.split(jax.random.key(0), 3)
    states, first = reset(env, keys)
    assert first.observation.shape == (3, 5, 5, 2)
    np.testing.assert_array_equal(env.observe(states), first.observation)


def test_at_least_one_pair_is_shown():
    with pytest.raises(ValueError, match="num_context_pairs is 0"):
        ContextualObservationWrapper(small_env(), 0)
    leaves = jax.tree.leaves(ContextualObservationWrapper(small_env(), 2))
    assert all(isinstance(leaf, jax.Array) for leaf in leaves)
