"""Figures of batches against NumPy.

The debug level is the most that the other groups may ask for.

Logs hold what the states say, as plain data.

Frames come back as they went in, however little memory there is.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arc_environments import reset, small_buffer, small_env, step
from arc_logs import MOVES, log_config, start_log, step_logs
from arc_states import point, small_config, small_state, small_task
from jaxarc.actions import create_mask_action
from jaxarc.config import DebugConfig, MemoryConfig, VisualizationConfig
from jaxarc.draw.cells import read_cells
from jaxarc.draw.episodes import EpisodeFrame
from jaxarc.envs.functional import arc_step, batch_reset
from jaxarc.log import experiment, handlers
from jaxarc.tasks.samples import gather_task


def test_arrays_become_four_figures_and_truths_a_rate():
    returns = np.array([1.0, 4.0, -2.0], np.float32)
    lengths = jnp.array([3, 5, 10])
    found = experiment.aggregate({"returns": returns, "lengths": lengths, "loss": 0.25})
    for name, values in (("returns", returns), ("lengths", np.array([3, 5, 10]))):
        assert found[f"{name}_mean"] == pytest.approx(values.mean())
        assert found[f"{name}_std"] == pytest.approx(values.std())
        assert found[f"{name}_min"] == values.min()
        assert found[f"{name}_max"] == values.max()
    assert found["loss"] == 0.25
    assert all(type(value) is float for value in found.values())
    mask = jnp.array([True, False, False, False])
    assert experiment.aggregate({"success_mask": mask}) == {"success_rate": 0.25}
    with pytest.raises(ValueError, match=r"returns has shape \(0,\)"):
        experiment.aggregate({"returns": jnp.zeros(0)})


def capped(debug_level, level="full", policy="research", **pictures):
    """The configuration, and the level and the policy that are left of it."""
    config = log_config(
        "out",
        debug_level,
        visualization={"level": level, **pictures},
        storage={"policy": policy},
        logging={"log_frequency": 2},
    )
    found = experiment.cap_detail(config)
    return found, found.visualization.level, found.storage.policy


@pytest.mark.parametrize(
    ("debug_level", "level", "policy"),
    [
        ("off", "off", "none"),
        ("minimal", "minimal", "minimal"),
        ("standard", "standard", "standard"),
        ("verbose", "verbose", "research"),
        ("research", "full", "research"),
    ],
)
def test_the_debug_level_caps(debug_level, level, policy):
    assert capped(debug_level)[1:] == (level, policy)
    assert capped(debug_level, "off", "none")[1:] == ("off", "none")


def test_the_debug_block_goes_before_the_level():
    assert capped("research", debug=DebugConfig(level="minimal"))[1] == "minimal"
    assert capped("research", enabled=False)[1] == "off"


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        ("minimal", []),
        ("standard", [2]),
        ("verbose", [1, 3]),
        ("full", [1, 2, 3]),
    ],
)
def test_steps_by_level(level, shown):
    for drawn, wanted in ((True, shown), (False, [])):
        config = capped("research", level, step_visualizations=drawn)[0]
        found = [log for log in step_logs() if handlers.shows_step(config, log)]
        assert [log["step_num"] for log in found] == wanted


def test_a_start_is_the_task_and_the_first_grid():
    log, state = start_log(7), small_state()
    assert (log["episode_num"], log["pair_index"], log["episode_mode"]) == (7, 0, 0)
    assert log["task_id"] is None
    np.testing.assert_array_equal(log["grid"], state.working_grid)
    np.testing.assert_array_equal(log["target"], state.target_grid)


def test_states_of_an_environment_and_rows_of_a_stack():
    env, buffer = small_env(), small_buffer()
    state, _ = reset(env, jax.random.key(1))
    after, seen = step(env, state, point(3, 1, 1))
    views = env.arc_state(state), env.arc_state(after)
    log = experiment.create_step_log(views[0], point(3, 1, 1), views[1], seen.reward)
    np.testing.assert_array_equal(log["grid"], seen.observation)
    assert log["success"] == (log["similarity"] >= 1.0)
    log = experiment.create_start_log(env.params, state=state)
    task = gather_task(buffer, state.episode.task_row)
    np.testing.assert_array_equal(log["task"].pairs, task.pairs)
    second = experiment.create_start_log(buffer, 1)
    np.testing.assert_array_equal(second["task"].pairs, gather_task(buffer, 1).pairs)
    assert "grid" not in second
    with pytest.raises(ValueError, match="say which with task_idx"):
        experiment.create_start_log(buffer)
    with pytest.raises(TypeError, match="a dict was given"):
        experiment.create_start_log({})


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


def test_fractions_are_told_as_the_cells_they_selected():
    config, state = small_config("mask"), small_state(config=small_config("mask"))
    shares = np.zeros((6, 6), np.float32)
    shares[0, :3] = 0.4, 0.5, 0.9
    action = create_mask_action(3, shares)
    after, _, reward, _, info = arc_step(state, action, config)
    for given in (action, {"operation": 3, "selection": shares}):
        log = experiment.create_step_log(state, given, after, reward, info)
        assert log["operation"] == 3
        assert np.argwhere(log["selection"]).tolist() == [[0, 1], [0, 2]]
    with pytest.raises(TypeError, match="overlay is float32: give a boolean mask"):
        read_cells(log["grid"]).crop(shares)


def test_a_batch_is_refused():
    keys = jax.random.split(jax.random.key(0), 2)
    states, _ = batch_reset(keys, small_config(), small_task())
    with pytest.raises(ValueError, match="log one of them"):
        experiment.create_start_log(small_task(), 0, states)


def test_a_summary_adds_up():
    logs = step_logs(3)
    summary = experiment.create_episode_summary(3, logs)
    assert summary["total_steps"] == 3
    assert summary["total_reward"] == sum(log["reward"] for log in logs)
    assert summary["final_similarity"] == logs[-1]["similarity"] == 1.0
    assert summary["success"] is True
    assert all("grid" not in row for row in summary["step_data"])
    assert experiment.create_episode_summary(0, [])["total_reward"] == 0.0


MANY = 40


def frames():
    for number in range(MANY):
        yield EpisodeFrame(np.full((30, 30), number % 10), None, number, 0.5, 0.25)


def filled(**memory):
    debug = DebugConfig(memory_management=MemoryConfig(**memory)) if memory else None
    limit = 0.01 if memory else 500
    config, problems = VisualizationConfig(max_memory_mb=limit, debug=debug), []
    store = experiment.FrameStore(config, problems.append)
    for frame in frames():
        store.add(frame)
    return store, problems


@pytest.mark.parametrize("compression", [True, False])
def test_what_does_not_fit_is_loaded_again(compression):
    store, problems = filled(compression=compression)
    assert store.cache.statistics().items < MANY
    found = store.frames()
    assert not problems
    assert [frame.operation for frame in found] == list(range(MANY))
    for frame, wanted in zip(found, frames(), strict=True):
        np.testing.assert_array_equal(frame.grid, wanted.grid)
        assert (frame.reward, frame.similarity) == (0.5, 0.25)
    store.close()


def test_without_files_the_oldest_are_forgotten_and_it_is_said():
    store, problems = filled(lazy_loading=False)
    found = store.frames()
    assert 0 < len(found) < MANY
    assert found[-1].operation == MANY - 1
    assert f"{MANY - len(found)} of {MANY} frames" in problems[0]
    store.close()


def test_an_episode_begins_empty_and_memory_is_watched():
    small = {"max_total_mb": 1.0, "max_cache_mb": 0.5}
    for memory, warned in (({}, False), (small, True), ({"max_total_mb": 1e6}, False)):
        store, problems = filled(**memory)
        store.begin()
        assert store.frames() == []
        assert bool(problems) == warned
        assert all("memory_management.max_total_mb" in words for words in problems)
        store.close()


def test_a_log_becomes_a_frame():
    first = experiment.frame_of_log(start_log())
    assert first.grid.shape == (4, 5)
    assert first.operation is first.selection is None
    last = step_logs()[-1]
    frame = experiment.frame_of_log(last)
    assert (frame.operation, frame.similarity) == (1, 1.0)
    assert frame.selection is not None
    assert np.argwhere(frame.selection).tolist() == [[0, 0]]
    np.testing.assert_array_equal(frame.grid, frame.target)
    assert experiment.frame_of_log(last, named=False).operation is None
    assert (
        experiment.frame_of_log(last | {"target": np.full((6, 6), -1)}).target is None
    )
