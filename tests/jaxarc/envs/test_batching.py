"""Keys of batches, and whole episodes of them against a plain loop."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arc_states import assert_same, point, small_config, small_task
from jaxarc.data.buffer import stack_task_list
from jaxarc.envs.batching import (
    analyze_batch_performance,
    create_batch_episode_runner,
    create_batch_keys,
    ensure_deterministic_batch_keys,
    group_keys,
    random_action,
    split_key_for_batch_step,
    validate_batch_keys,
)
from jaxarc.envs.functional import arc_reset, arc_step, batch_reset
from jaxarc.envs.structured_actions import BboxAction, MaskAction, PointAction
from jaxarc.validation import action_in_range

pytestmark = pytest.mark.slow  # many programs to compile

MAKERS = pytest.mark.parametrize("make", [jax.random.key, jax.random.PRNGKey])


def data(keys):
    return np.asarray(
        jax.random.key_data(keys) if keys.dtype != np.uint32 else keys
    ).tolist()


@MAKERS
def test_keys(make):
    key = make(3)
    assert data(create_batch_keys(key, 4)) == data(jax.random.split(key, 4))
    following, keys = split_key_for_batch_step(key, 4)
    assert validate_batch_keys(keys, 4)
    assert data(following) not in data(keys)
    first = ensure_deterministic_batch_keys(key, 4)
    assert data(first) == data(ensure_deterministic_batch_keys(key, 4, 0))
    assert data(first) != data(ensure_deterministic_batch_keys(key, 4, 1))
    assert not validate_batch_keys(keys, 5)
    assert not validate_batch_keys(key, 4)
    assert not validate_batch_keys(jnp.zeros((4, 2)), 4)
    assert not validate_batch_keys([1, 2], 2)


@MAKERS
def test_a_group_shares_its_start_and_groups_differ(make):
    keys = group_keys(make(0), groups=5, size=3)
    assert validate_batch_keys(keys, 15)
    rows = data(keys)
    assert all(rows[i] == rows[3 * (i // 3)] for i in range(15))
    assert len({str(row) for row in rows}) == 5
    tasks = stack_task_list([small_task(demos=n) for n in (1, 2, 3)])
    states, _ = batch_reset(keys, small_config(), tasks)
    starts = np.stack([states.episode.task_row, states.current_example_idx], axis=-1)
    assert (starts.reshape(5, 3, 2) == starts.reshape(5, 3, 2)[:, :1]).all()
    assert len(np.unique(starts, axis=0)) > 1


@pytest.mark.parametrize(
    ("selection_format", "kind"),
    [("point", PointAction), ("bbox", BboxAction), ("mask", MaskAction)],
)
def test_random_actions_are_of_the_format_and_in_range(selection_format, kind):
    config = small_config(selection_format)
    state, _ = arc_reset(jax.random.key(0), config, small_task())
    draw = jax.vmap(lambda key: random_action(key, state, config))
    actions = draw(jax.random.split(jax.random.key(1), 200))
    assert isinstance(actions, kind)
    assert action_in_range(actions, config).all()
    assert len(np.unique(actions.operation)) > 30


def fill_then_submit(key, state):
    """Fill by chance; submit at the third step."""
    submit = state.step_count == 2
    operation = jax.random.randint(key, (), 0, 10)
    action = point(0, 0, 0)
    return PointAction(jnp.where(submit, 34, operation), action.row, action.col)


def naive_episode(key, config, task, steps, policy):
    start, rest = jax.random.split(key)
    state, _ = arc_reset(start, config, task)
    total, length = 0.0, 0
    for step_key in jax.random.split(rest, steps):
        if bool(state.episode_done):
            break
        action = policy(step_key, state)
        state, _, reward, _, _ = arc_step(state, action, config)
        total, length = total + float(reward), length + 1
    return state, total, length


def test_episodes_equal_a_plain_loop():
    config, task = small_config(steps=8), small_task()
    keys = create_batch_keys(jax.random.key(7), 4)
    runner = create_batch_episode_runner(config, task, 6, fill_then_submit)
    states, rewards, lengths = runner(keys, 5)
    for row in range(4):
        state, total, length = naive_episode(
            keys[row], config, task, 5, fill_then_submit
        )
        assert_same(jax.tree.map(lambda x, r=row: x[r], states.episode), state.episode)
        assert float(rewards[row]) == pytest.approx(total, abs=1e-6)
        assert int(lengths[row]) == length <= 3
    assert states.tasks.pairs.shape[0] == 1, "the task is shared"


def test_a_runner_has_a_longest_run():
    runner = create_batch_episode_runner(small_config(), small_task(), 3)
    _, _, lengths = runner(create_batch_keys(jax.random.key(0), 2), 0)
    assert lengths.tolist() == [0, 0]
    with pytest.raises(ValueError, match="made for 0 to 3"):
        runner(create_batch_keys(jax.random.key(0), 2), 4)


def test_performance_by_batch_size():
    found = analyze_batch_performance(small_config(), small_task(), (1, 4), 2)
    assert list(found["batch_metrics"]) == [1, 4]
    for size, metrics in found["batch_metrics"].items():
        assert metrics["batch_size"] == size
        seconds = metrics["total_time"]
        assert metrics["time_per_env"] == pytest.approx(seconds / size)
        assert metrics["steps_per_second"] == pytest.approx(2 * size / seconds)
        assert 0 < metrics["avg_length"] <= 2
    best = found["batch_metrics"][found["optimal_batch_size"]]
    assert found["peak_throughput"] == best["steps_per_second"]
    with pytest.raises(ValueError, match="give sizes and steps"):
        analyze_batch_performance(small_config(), small_task(), ())
