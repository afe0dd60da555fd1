"""Logs hold what the states say, as plain data."""

import jax
import numpy as np
import pytest

from arc_environments import reset, small_buffer, small_env, step
from arc_logs import MOVES, start_log, step_logs
from arc_states import point, small_config, small_state, small_task
from jaxarc.data.buffer import gather_task
from jaxarc.envs.functional import batch_reset
from jaxarc.utils.logging.payloads import (
    create_episode_summary,
    create_start_log,
    create_step_log,
)


def test_a_start_is_the_task_and_the_first_grid():
    log, state = start_log(7), small_state()
    assert (log["episode_num"], log["pair_index"], log["episode_mode"]) == (7, 0, 0)
    assert log["task_id"] is None
    np.testing.assert_array_equal(log["grid"], state.working_grid)
    np.testing.assert_array_equal(log["target"], state.target_grid)


def test_of_a_stack_the_row_of_the_state_is_taken():
    env, buffer = small_env(), small_buffer()
    state, _ = reset(env, jax.random.key(1))
    log = create_start_log(env.params, state=state)
    task = gather_task(buffer, state.episode.task_row)
    np.testing.assert_array_equal(log["task"].pairs, task.pairs)
    second = create_start_log(buffer, 1)
    np.testing.assert_array_equal(second["task"].pairs, gather_task(buffer, 1).pairs)
    assert "grid" not in second
    with pytest.raises(ValueError, match="say which with task_idx"):
        create_start_log(buffer)
    with pytest.raises(TypeError, match="a dict was given"):
        create_start_log({})


def test_steps_tell_what_happened():
    logs = step_logs(4)
    assert [log["operation"] for log in logs] == [move[0] for move in MOVES]
    assert [log["step_num"] for log in logs] == [1, 2, 3]
    assert [log["success"] for log in logs] == [False, False, True]
    assert logs[0]["grid"][0, 0] == 2
    assert logs[0]["before_grid"][0, 0] == 0
    assert np.argwhere(logs[0]["selection"]).tolist() == [[0, 0]]
    assert logs[1]["previous_similarity"] == logs[0]["similarity"]
    assert all(type(log["reward"]) is float for log in logs)


def test_states_of_an_environment_are_logged_through_their_view():
    env = small_env()
    state, _ = reset(env, jax.random.key(1))
    after, seen = step(env, state, point(3, 1, 1))
    views = env.arc_state(state), env.arc_state(after)
    log = create_step_log(views[0], point(3, 1, 1), views[1], seen.reward)
    np.testing.assert_array_equal(log["grid"], seen.observation)
    assert log["success"] == (log["similarity"] >= 1.0)


def test_a_batch_is_refused():
    keys = jax.random.split(jax.random.key(0), 2)
    states, _ = batch_reset(keys, small_config(), small_task())
    with pytest.raises(ValueError, match="log one of them"):
        create_start_log(small_task(), 0, states)


def test_a_summary_adds_up():
    logs = step_logs(3)
    summary = create_episode_summary(3, logs)
    assert summary["total_steps"] == 3
    assert summary["total_reward"] == sum(log["reward"] for log in logs)
    assert summary["final_similarity"] == logs[-1]["similarity"] == 1.0
    assert summary["success"] is True
    assert all("grid" not in row for row in summary["step_data"])
    assert create_episode_summary(0, [])["total_reward"] == 0.0
