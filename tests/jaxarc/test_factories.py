"""States made from grids, compared with states made by a reset."""

from typing import Any

import numpy as np
import pytest

from arc_states import SIDE, assert_same, small_config, small_state, small_task
from jaxarc.factories import create_arc_env_state, create_arc_env_state_with_format


def grids(state) -> Any:
    names = ("working_grid", "working_grid_mask", "target_grid", "target_grid_mask")
    return [getattr(state, name) for name in names]


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("pair", [0, 1])
def test_the_grids_of_a_reset_make_the_same_state(mode, pair):
    task = small_task()
    wanted = small_state(mode, pair, small_config(), task)
    made = create_arc_env_state(
        task,
        *grids(wanted),
        selection_format="point",
        max_history_length=8,
        episode_mode=mode,
        current_example_idx=pair,
        max_train_pairs=4,
        max_test_pairs=2,
        max_grid_height=SIDE,
        max_grid_width=SIDE,
    )
    assert_same(made, wanted)


def test_the_target_finds_its_pair():
    task = small_task()
    state = small_state(pair=2, task=task)
    parts = grids(state)
    made = create_arc_env_state_with_format(
        task, parts[0], parts[1], parts[2], parts[3], "bbox", step_count=3
    )
    assert int(made.current_example_idx) == 2
    assert int(made.step_count) == 3
    assert made.action_history.shape == (1000, 8)


def test_the_similarity_is_that_of_the_grids():
    task = small_task()
    _, mask, target, _ = grids(small_state(task=task))
    made = create_arc_env_state(task, target, mask, target, mask)
    assert float(made.similarity_score) == 1.0
    other = create_arc_env_state(task, np.where(mask, 9, -1), mask, target, mask)
    assert float(other.similarity_score) == 0.0


def test_what_does_not_belong_to_the_task_is_refused():
    task = small_task()
    parts = grids(small_state(task=task))
    foreign = [*parts[:2], np.full((SIDE, SIDE), 5), np.ones((SIDE, SIDE), bool)]
    with pytest.raises(ValueError, match="not the output of any demonstration"):
        create_arc_env_state(task, *foreign)
    with pytest.raises(ValueError, match="not the output of demonstration 1"):
        create_arc_env_state(task, *parts, current_example_idx=1)
    with pytest.raises(ValueError, match="there are 3 demonstrations"):
        create_arc_env_state(task, *parts, current_example_idx=3)
    with pytest.raises(ValueError, match="the target is hidden"):
        create_arc_env_state(task, *parts, episode_mode=1)
    with pytest.raises(ValueError, match="max_train_pairs is 10"):
        create_arc_env_state(task, *parts, max_train_pairs=10)
    with pytest.raises(ValueError, match="episode_mode is 2"):
        create_arc_env_state(task, *parts, episode_mode=2)
