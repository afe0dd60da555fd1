"""Records of past actions against what steps write by themselves."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arc_states import assert_same, point, small_config, small_state
from jaxarc.config import HistoryConfig
from jaxarc.envs.action_history import ActionHistoryTracker, ActionRecord
from jaxarc.envs.functional import arc_step
from jaxarc.envs.structured_actions import create_bbox_action, create_mask_action

Tracker = ActionHistoryTracker
MOVES = ((3, 1, 1), (14, 5, 5), (33, 5, 5), (0, 2, 2))


added = eqx.filter_jit(Tracker.add_action)


def history(state):
    episode = state.episode
    return (
        episode.action_history,
        episode.action_history_length,
        episode.action_history_write_pos,
    )


def test_a_record_is_the_one_that_a_step_leaves():
    config = small_config(history=HistoryConfig(max_history_length=3))
    state = small_state(config=config)
    for move in MOVES:
        after = arc_step(state, point(*move), config)[0]
        assert_same(history(added(state, point(*move), config)), history(after))
        state = after
    names = [record.name for record in Tracker.get_action_sequence(state)]
    assert names == ["Op 14: Flood Fill 4", "Op 33: Resize", "Op 0: Fill 0"]


@pytest.mark.parametrize("form", ["bbox", "mask"])
def test_every_format_is_written(form):
    config = small_config(form)
    state = small_state(config=config)
    action = create_bbox_action(2, 3, 4, 1, 0)
    if form == "mask":
        cells = np.zeros((6, 6), bool)
        cells[1, 2] = True
        action = create_mask_action(2, cells)
    after = arc_step(state, action, config)[0]
    assert_same(history(added(state, action, config)), history(after))


def test_a_sequence_is_cut_like_a_list():
    config = small_config()
    state = small_state(config=config)
    for number in range(5):
        state = Tracker.add_action(state, point(number), config)
    numbers = lambda *cut: [
        r.operation_id for r in Tracker.get_action_sequence(state, *cut)
    ]
    assert numbers() == [0, 1, 2, 3, 4]
    assert numbers(1, 3) == [1, 2]
    assert numbers(-2) == [3, 4]
    assert numbers(9) == []
    (record,) = Tracker.get_action_sequence(state, 4)
    assert isinstance(record, ActionRecord)
    assert record.selection_data.tolist() == [0.0, 0.0]
    assert (record.timestamp, record.pair_index, record.valid) == (0, 0, True)


def test_cleared_is_empty():
    config = small_config()
    state = Tracker.add_action(small_state(config=config), point(1), config)
    assert Tracker.get_action_sequence(Tracker.clear_history(state)) == []


def test_a_rejected_operation_has_a_name():
    record = ActionRecord(jax.device_get(jnp.zeros(2)), -1, 0, 0, True)
    assert record.name == "Rejected"
