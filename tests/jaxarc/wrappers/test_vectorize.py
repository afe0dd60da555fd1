"""Many environments at once are the single ones, bit for bit, over one buffer."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arc_environments import (
    auto_reset,
    clipping,
    no_weak_types,
    reset,
    sample_actions,
    small_buffer,
    small_env,
    step,
)
from arc_play import row
from arc_states import assert_same
from jaxarc.wrappers import (
    AutoReset,
    ContextualObservationWrapper,
    FlattenActionWrapper,
    MetricsWrapper,
    PointActionWrapper,
    Vectorize,
)
from jaxrig.testing import assert_one_trace

pytestmark = pytest.mark.slow  # many programs to compile

COUNT = 5


def layered(**kw):
    env = small_env(clipping(steps=4), **kw)
    env = ContextualObservationWrapper(FlattenActionWrapper(PointActionWrapper(env)), 2)
    return AutoReset(MetricsWrapper(env))


@pytest.mark.parametrize("augment", [False, True])
def test_rows_equal_single_environments(augment):
    one = layered(augment=augment)
    env = Vectorize(one)
    keys = jax.random.split(jax.random.key(0), COUNT)
    states, steps = reset(env, keys)
    singles = [reset(one, key) for key in keys]
    for number in range(9):
        for index, (state, single) in enumerate(singles):
            assert_same(row((states, steps), index), (state, single))
        actions = sample_actions(env, jax.random.key(number), COUNT)
        states, steps = step(env, states, actions)
        singles = [
            step(one, state, actions[index]) for index, (state, _) in enumerate(singles)
        ]
    assert no_weak_types((states, steps))


def test_equal_keys_make_equal_starts():
    env = Vectorize(small_env())
    keys = jnp.stack([jax.random.key(3)] * COUNT)
    states, _ = reset(env, keys)
    for index in range(1, COUNT):
        assert_same(row(states, index), row(states, 0))


def test_a_start_has_a_value_for_each():
    env = Vectorize(small_env())
    keys = jax.random.split(jax.random.key(0), 3)
    tasks, pairs = jnp.asarray([2, 1, 0]), jnp.asarray([2, 1, 0])
    states, _ = env.reset(keys, task=tasks, pair=pairs)
    np.testing.assert_array_equal(states.episode.task_row, tasks)
    np.testing.assert_array_equal(states.episode.current_example_idx, pairs)
    with pytest.raises(ValueError, match="there are"):
        env.reset(keys, task=tasks + 2)
    with pytest.raises(ValueError, match="there are"):
        env.reset(keys, task=tasks, pair=pairs + 1)


def test_only_those_that_are_done_begin_anew():
    env = Vectorize(small_env())
    states, _ = reset(env, jax.random.split(jax.random.key(0), 3))
    done = jnp.asarray([False, True, False])
    after = auto_reset(env, states, done)
    for index in (0, 2):
        assert_same(row(after, index), row(states, index))
    assert_same(row(after, 1), env.env.auto_reset(row(states, 1), jnp.asarray(True)))


def test_the_tasks_exist_once():
    """The compiled step takes the buffer as it is and returns nothing of its size."""
    buffer = small_buffer(64)
    env = Vectorize(small_env(buffer=buffer))
    keys = jax.random.split(jax.random.key(0), 256)
    states, _ = reset(env, keys)
    actions = sample_actions(env, jax.random.key(0), 256)
    shape = buffer.pairs.shape
    leaves = [leaf.shape for leaf in jax.tree.leaves((env, states))]
    assert leaves.count(shape) == 1
    assert (256, *shape[1:]) not in leaves
    text = step.lower(env, states, actions).as_text()
    mapped = "x".join(map(str, (256, *shape[1:])))
    assert f"tensor<{mapped}x" not in text


def test_documented_views_of_a_batch():
    env = Vectorize(MetricsWrapper(small_env()))
    states, first = reset(env, jax.random.split(jax.random.key(0), 3))
    arc = env.arc_state(states)
    np.testing.assert_array_equal(arc.working_grid, first.observation)
    assert arc.tasks.pairs.shape[0] == 1
    for index in range(3):
        one = env.env.arc_state(row(states, index))
        np.testing.assert_array_equal(arc.target_grid[index], one.target_grid)
    pictures = env.render(states, "rgb_array")
    assert len(pictures) == 3
    np.testing.assert_array_equal(
        pictures[1], env.env.render(row(states, 1), "rgb_array")
    )


def test_one_trace_for_all_steps():
    env = Vectorize(layered())
    states, _ = reset(env, jax.random.split(jax.random.key(0), COUNT))
    calls = [
        (env, states, sample_actions(env, jax.random.key(n), COUNT)) for n in range(3)
    ]
    results = assert_one_trace(lambda e, s, a: e.step(s, a), *calls)
    after = (env, results[0][0], calls[1][2])
    assert_one_trace(lambda e, s, a: e.step(s, a), calls[0], after)
