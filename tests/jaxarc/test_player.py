"""Oracle: the environment itself, stepped without the player."""

import jax
import numpy as np
import pytest

from jaxarc.actions import create_bbox_action
from jaxarc.config import DatasetConfig
from jaxarc.envs import arc_reset, arc_step
from jaxarc.ops.operations import ARCLEOperationType as Op
from jaxarc.recording import TaskPlayer, player_config
from jaxarc.tasks import create_demo_task

pytestmark = pytest.mark.slow  # many programs to compile

CONFIG = player_config(
    DatasetConfig(max_grid_height=7, max_grid_width=7, max_train_pairs=1)
)


@pytest.fixture
def player():
    return TaskPlayer(create_demo_task(7, 7), "made up", CONFIG)


def test_steps_are_those_of_the_environment(player):
    state, _ = arc_reset(jax.random.key(0), CONFIG, player.task, 0, 0)
    for operation, box in ((3, (0, 1, 2, 2)), (15, (4, 4, 4, 4)), (20, (1, 1, 1, 3))):
        action = create_bbox_action(operation, *box)
        state, grid, reward, _, info = arc_step(state, action, CONFIG)
        frame = player.step(operation, box)
        np.testing.assert_array_equal(frame.grid, grid)
        assert frame.reward == float(reward)
        assert frame.similarity == float(info["similarity"])
    assert player.steps == 3
    assert [f.operation for f in player.frames] == [None, 3, 15, 20]


def test_without_cells_an_operation_takes_the_whole_grid(player):
    assert (player.step(Op.FILL_5).grid == 5).all()


def test_undo_brings_back_everything(player):
    player.step(Op.FILL_1, (0, 0, 0, 0))
    before, recorded = player.frame, player.recording()
    player.step(Op.SUBMIT)
    assert player.done
    player.undo()
    assert not player.done
    assert player.frame is before
    assert player.recording() == recorded


def test_solving_the_pair_is_seen_and_ends_the_only_one(player):
    player.step(Op.FLOOD_FILL_2, (3, 3, 3, 3))
    assert player.solved.tolist() == [True]
    assert player.done
    with pytest.raises(ValueError, match="over: take a step back"):
        player.step(Op.FILL_0)


def test_a_paste_at_a_cell_brings_the_whole_clipboard(player):
    player.step(Op.COPY, (2, 2, 4, 4))
    grid = player.step(Op.PASTE, (0, 0, 0, 0)).grid
    assert (grid[:3, :3] == 1).all()
    assert player.recording().actions[-1] == (Op.PASTE, 0, 0, 6, 6)


def test_a_resize_may_reach_into_the_padding_and_nothing_else(player):
    player.step(Op.RESIZE, (0, 0, 2, 1))
    assert player.size == (3, 2)
    with pytest.raises(ValueError, match="column 2 is outside: columns go from 0 to 1"):
        player.step(Op.FILL_1, (0, 2, 0, 2))
    assert player.step(Op.RESIZE, (0, 0, 6, 6)).grid.shape == (7, 7)
    with pytest.raises(ValueError, match="row 7 is outside"):
        player.step(Op.RESIZE, (0, 0, 7, 0))
    assert player.steps == 2


def test_there_is_nothing_before_the_start(player):
    with pytest.raises(ValueError, match="no step to undo"):
        player.undo()


def test_tests_hide_the_target():
    player = TaskPlayer(create_demo_task(7, 7), "made up", CONFIG, mode=1)
    assert player.frame.target is None
    player.step(Op.FLOOD_FILL_2, (3, 3, 3, 3))
    assert player.solved.tolist() == [False]
    player.step(Op.SUBMIT)
    assert player.solved.tolist() == [True]
