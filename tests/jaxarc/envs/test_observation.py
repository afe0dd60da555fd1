"""The rich observation shows what it is asked for, and no answer in test mode."""

from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest

from arc_states import SIDE, assert_same, point, small_config, small_state, small_task
from jaxarc.envs.functional import arc_step, batch_reset
from jaxarc.envs.observation import (
    ArcObservation,
    ObservationConfig,
    create_observation,
)

PRESETS = ("minimal", "standard", "rich", "training", "evaluation", "debug")
ALWAYS = {"working_grid", "working_grid_mask", "episode_mode", "current_pair_idx"}
COMPLETION = {"demo_completion_status", "test_completion_status"}
DEMOS = {
    *("demo_input_grids", "demo_output_grids", "demo_input_masks"),
    *("demo_output_masks", "num_demo_pairs"),
}


def look(*args: Any) -> Any:
    """Typed loosely: which parts are None is what these tests are about."""
    return create_observation(*args)


def shown(observation):
    return {name for name, value in vars(observation).items() if value is not None}


def test_the_standard_observation_is_the_documented_one():
    state = arc_step(small_state(), point(3, 1, 1), small_config())[0]
    seen = look(state)
    rest = {"step_count", "allowed_operations_mask", "target_grid"}
    assert shown(seen) == ALWAYS | COMPLETION | DEMOS | rest
    task = state.task_data
    np.testing.assert_array_equal(seen.working_grid, state.working_grid)
    np.testing.assert_array_equal(seen.target_grid, state.target_grid)
    np.testing.assert_array_equal(seen.demo_input_grids, task.input_grids_examples)
    np.testing.assert_array_equal(seen.demo_output_masks, task.output_masks_examples)
    assert int(seen.num_demo_pairs) == 3
    assert int(seen.step_count) == 1


def test_the_target_is_zeros_in_test_mode():
    seen = look(small_state(mode=1), ObservationConfig.debug())
    np.testing.assert_array_equal(seen.target_grid, np.zeros((SIDE, SIDE)))
    assert float(seen.similarity_score) == 0.0


def test_formats_overrule():
    minimal = ObservationConfig(
        include_recent_actions=True, observation_format="minimal"
    )
    assert not minimal.include_recent_actions
    assert not minimal.include_completion_status
    rich = ObservationConfig(
        include_completion_status=False,
        include_action_space_info=False,
        include_demonstration_pairs=False,
        observation_format="rich",
    )
    assert rich.include_completion_status
    assert rich.include_action_space_info
    assert rich.include_demonstration_pairs
    assert shown(look(small_state(), minimal)) >= ALWAYS


def test_presets_show_more_and_more():
    state = small_state()
    names = {p: shown(look(state, preset(p))) for p in PRESETS}
    assert names["minimal"] == ALWAYS
    assert "target_grid" not in names["evaluation"]
    assert names["training"] - names["standard"] == {"recent_actions"}
    assert names["standard"] < names["rich"] < names["debug"]
    assert names["debug"] - names["rich"] == {
        "selected",
        "clipboard",
        "similarity_score",
    }


def preset(name):
    return getattr(ObservationConfig, name)()


@pytest.mark.parametrize("name", PRESETS)
def test_batches_are_rows_of_single_observations(name):
    config = small_config()
    keys = jax.random.split(jax.random.key(0), 3)
    states, _ = batch_reset(keys, config, small_task(), 0, np.arange(3))
    observe = eqx.filter_jit(look)
    whole = observe(states, preset(name))
    assert isinstance(whole, ArcObservation)
    for row in range(3):
        state = small_state(0, row)
        one = jax.tree.map(lambda x, row=row: x[row], whole)
        assert_same(one, look(state, preset(name)))


def test_fewer_demonstrations_and_the_last_actions():
    config = small_config()
    state = arc_step(small_state(), point(3, 1, 2), config)[0]
    wanted = ObservationConfig(
        max_demonstration_pairs=2, include_recent_actions=True, recent_action_count=2
    )
    seen = look(state, wanted)
    assert seen.demo_input_grids.shape == (2, SIDE, SIDE)
    assert int(seen.num_demo_pairs) == 2
    assert seen.recent_actions.tolist() == [[0] * 6, [1, 2, 3, 0, 0, 1]]


def test_wrong_settings_are_refused():
    with pytest.raises(ValueError, match="observation_format is 'full'"):
        ObservationConfig(observation_format="full")
    with pytest.raises(ValueError, match="recent_action_count is -1"):
        ObservationConfig(recent_action_count=-1)
    assert hash(ObservationConfig()) == hash(ObservationConfig.standard())
