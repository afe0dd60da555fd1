"""The history of a state against a plain list of what was added."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arc_states import assert_same, point, small_config, small_state, small_task
from jaxarc.config import HistoryConfig
from jaxarc.envs.functional import arc_step, batch_reset
from jaxarc.recall import HistoryQueries, latest_records

ROOM = 4
CONFIG = small_config(history=HistoryConfig(max_history_length=ROOM))
add = eqx.filter_jit(lambda state, *record: state.add_action_to_history(*record))


def entry(number):
    return number % 42, [number % 6, 1], number, number % 3


def expected(number):
    operation, selection, timestamp, pair = entry(number)
    return {
        "operation_id": operation,
        "timestamp": timestamp,
        "pair_index": pair,
        "valid": True,
        "selection_data": selection,
    }


def plain(record):
    return record | {"selection_data": record["selection_data"].tolist()}


def filled(count):
    state = small_state(config=CONFIG)
    for number in range(count):
        values = [jnp.asarray(value) for value in entry(number)]
        state = add(state, *values)
    return state


@given(st.integers(0, 3 * ROOM))
def test_the_ring_keeps_the_last_ones_in_order(count):
    state = filled(count)
    kept = [expected(n) for n in range(max(0, count - ROOM), count)]
    assert isinstance(state, HistoryQueries)
    assert [plain(r) for r in state.get_recent_actions(ROOM)] == kept
    assert [plain(r) for r in state.get_recent_actions(2)] == kept[-2:]
    assert state.get_recent_actions(0) == []
    for pair in range(3):
        mine = [r for r in kept if r["pair_index"] == pair]
        assert [plain(r) for r in state.get_action_history_for_pair(pair)] == mine
    for index in range(-len(kept), len(kept)):
        assert plain(state.get_action_from_history(index)) == kept[index]
    for index in (len(kept), -len(kept) - 1):
        with pytest.raises(IndexError, match=f"holds {len(kept)}"):
            state.get_action_from_history(index)


def test_a_step_is_recorded_like_an_added_action():
    state = small_state(config=CONFIG)
    stepped = arc_step(state, point(3, 1, 2), CONFIG)[0]
    added = state.add_action_to_history(3, [1, 2], 0, 0)
    assert_same(stepped.action_history, added.action_history)
    assert plain(stepped.get_action_from_history(-1))["selection_data"] == [1, 2]


def test_clearing_forgets_everything():
    state = filled(3).clear_action_history()
    assert_same(state, small_state(config=CONFIG))


def test_summary():
    summary = filled(5).get_action_history_summary()
    assert summary["length"] == summary["max_length"] == ROOM
    assert summary["is_full"]
    assert summary["record_fields"] == 6
    assert summary["selection_data_size"] == 2
    assert summary["memory_usage_bytes"] == ROOM * 6 * 4
    assert summary["memory_usage_mb"] == ROOM * 6 * 4 / 2**20
    assert len(summary["recent_actions"]) == ROOM


def test_a_history_that_is_off_stays_empty():
    config = small_config(history=HistoryConfig(enabled=False))
    state = small_state(config=config).add_action_to_history(1, [], 0, 0)
    assert state.get_recent_actions() == []


def test_wrong_requests_are_refused():
    state = small_state(config=CONFIG)
    with pytest.raises(ValueError, match="holds 3 numbers, the history keeps 2"):
        state.add_action_to_history(0, [1, 2, 3], 0, 0)
    with pytest.raises(ValueError, match="count=-1"):
        state.get_recent_actions(-1)
    keys = jax.random.split(jax.random.key(0), 2)
    states, _ = batch_reset(keys, CONFIG, small_task())
    with pytest.raises(ValueError, match="take one state"):
        states.get_recent_actions()


@pytest.mark.parametrize("count", [0, 2, ROOM, ROOM + 3])
def test_latest_records_fill_up_with_zeros(count):
    state = filled(count)
    parts = (
        state.action_history,
        state.action_history_length,
        state.action_history_write_pos,
    )
    shown = latest_records(*parts, 3)
    known = [r["timestamp"] for r in state.get_recent_actions(3)]
    assert shown.shape == (3, 6)
    assert shown[:, -3].tolist() == [0.0] * (3 - len(known)) + known
    assert shown[:, -1].tolist() == [0.0] * (3 - len(known)) + [1.0] * len(known)
    records, length, position = (part[None] for part in parts)
    batch = latest_records(records, length, position, 3)
    np.testing.assert_array_equal(batch[0], shown)
    empty = latest_records(parts[0][:0], parts[1], parts[2], 2)
    assert empty.tolist() == [[0.0] * 6] * 2
