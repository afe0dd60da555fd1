"""What a state remembers of its actions, record by record."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jaxarc.config.groups import METADATA_FIELDS
from jaxarc.episode import append_record, in_order, make_record
from jaxrig.memory import MIB


class HistoryQueries:
    """The part of `ArcEnvState` that is about its history; it has no fields.

    `add_action_to_history` and `clear_action_history` work in compiled functions, on
    one state; the others are for the host.
    """

    action_history: Any
    action_history_length: Any
    action_history_write_pos: Any
    replace: Any

    def add_action_to_history(
        self, operation_id: Any, selection_data: Any, timestamp: Any, pair_index: Any
    ) -> Any:
        """The state with one more record; the oldest gives way when it is full."""
        records = self.action_history
        selection = jnp.asarray(selection_data, jnp.float32).reshape(-1)
        wanted = records.shape[-1] - METADATA_FIELDS
        if selection.shape != (wanted,):
            raise ValueError(
                f"selection_data holds {selection.size} numbers, the history keeps "
                f"{wanted}: give a selection in the configured format"
            )
        numbers = [
            jnp.asarray(x, jnp.int32) for x in (operation_id, timestamp, pair_index)
        ]
        length, position = self.action_history_length, self.action_history_write_pos
        added = append_record(
            records, length, position, make_record(selection, *numbers)
        )
        return _with_history(self, *added)

    def clear_action_history(self) -> Any:
        """The state with an empty history."""
        zero = jnp.zeros_like(self.action_history_length)
        return _with_history(self, jnp.zeros_like(self.action_history), zero, zero)

    def get_action_from_history(self, index: int) -> dict[str, Any]:
        """One record by its age: 0 is the oldest, -1 the newest."""
        records = _in_order(self)
        if not -len(records) <= index < len(records):
            raise IndexError(
                f"action {index}: the history holds {len(records)}, counted from 0 "
                "for the oldest, or back from -1 for the newest"
            )
        return _as_dict(records[index])

    def get_recent_actions(self, count: int = 10) -> list[dict[str, Any]]:
        """The last records, from older to newer."""
        if count < 0:
            raise ValueError(f"count={count}: ask for 0 records or more")
        records = _in_order(self)
        return [_as_dict(r) for r in records[max(0, len(records) - count) :]]

    def get_action_history_for_pair(self, pair_index: int) -> list[dict[str, Any]]:
        """The records of actions on one pair, from older to newer."""
        return [_as_dict(r) for r in _in_order(self) if r[-2] == pair_index]

    def get_action_history_summary(self) -> dict[str, Any]:
        """How much is remembered, and in how many bytes."""
        length = len(_in_order(self))
        room, fields = self.action_history.shape
        size = self.action_history.nbytes
        return {
            "length": length,
            "max_length": room,
            "record_fields": fields,
            "selection_data_size": fields - METADATA_FIELDS,
            "memory_usage_bytes": size,
            "memory_usage_mb": size / MIB,
            "is_full": length == room,
            "recent_actions": self.get_recent_actions(5),
        }


def latest_records(
    records: Float[Array, "*batch records fields"],
    length: Int[Array, "*batch"],
    position: Int[Array, "*batch"],
    count: int,
) -> Float[Array, "*batch count fields"]:
    """The last `count` records, from older to newer; zeros where there are fewer."""
    room = records.shape[-2]
    if room == 0:
        return jnp.zeros((*records.shape[:-2], count, records.shape[-1]), jnp.float32)
    age = jnp.arange(count, 0, -1, dtype=jnp.int32)
    age = age.reshape((1,) * length.ndim + (count,))
    index = (position[..., None] - age) % room
    taken = jnp.take_along_axis(records, index[..., None], axis=-2)
    return jnp.where((age <= length[..., None])[..., None], taken, 0.0)


def _in_order(state: Any) -> np.ndarray:
    if state.action_history.ndim != 2:
        raise ValueError(
            "a batch of states has many histories: take one state, "
            "jax.tree.map(lambda x: x[i], states)"
        )
    length, position = state.action_history_length, state.action_history_write_pos
    return np.asarray(in_order(state.action_history, int(length), int(position)))


def _as_dict(record: np.ndarray) -> dict[str, Any]:
    operation, timestamp, pair, valid = record[-METADATA_FIELDS:].tolist()
    return {
        "selection_data": record[:-METADATA_FIELDS],
        "operation_id": int(operation),
        "timestamp": int(timestamp),
        "pair_index": int(pair),
        "valid": valid == 1.0,
    }


def _with_history(state: Any, records: Any, length: Any, position: Any) -> Any:
    return state.replace(
        action_history=records,
        action_history_length=length,
        action_history_write_pos=position,
    )
