"""Past actions as records: one row of a state's history with its numbers named."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxarc.envs.arguments import as_config, check_action_kind
from jaxarc.envs.episode import record_step
from jaxarc.envs.select import select_active, select_raw
from jaxarc.ops.names import get_operation_display_text
from jaxarc.state import ArcEnvState


@dataclass(frozen=True, eq=False)
class ActionRecord:
    """One past action: its selection in the configured format, and when it was taken.

    The timestamp is the number of steps taken before it.
    """

    selection_data: Float[np.ndarray, " numbers"]
    operation_id: int
    timestamp: int
    pair_index: int
    valid: bool

    @property
    def name(self) -> str:
        """The operation in words; -1 stands for one that was rejected."""
        if self.operation_id < 0:
            return "Rejected"
        return get_operation_display_text(self.operation_id)


class ActionHistoryTracker:
    """The history of a state, written as a step writes it and read as records.

    `add_action` and `clear_history` work in compiled functions, on one state.
    """

    @staticmethod
    def add_action(state: ArcEnvState, action: Any, config: Any) -> ArcEnvState:
        """The state with one more record, of an action that is not carried out."""
        config = as_config(config)
        check_action_kind(action)
        episode = state.episode
        canvas = episode.canvas
        shape = state.tasks.get_grid_shape()
        raw = select_raw(action, shape)
        selection = select_active(action, raw, canvas.size, canvas.active())
        operation = action.validate(shape, config.action.max_operations).operation
        records, length, position = record_step(
            operation, episode, selection, raw, canvas.width, config
        )
        return state.replace(
            action_history=records,
            action_history_length=length,
            action_history_write_pos=position,
        )

    @staticmethod
    def get_action_sequence(
        state: ArcEnvState, start: int = 0, end: int | None = None
    ) -> list[ActionRecord]:
        """Records from older to newer, cut as Python cuts a list (host only)."""
        records = state.get_recent_actions(state.action_history.shape[-2])
        return [ActionRecord(**record) for record in records[start:end]]

    @staticmethod
    def clear_history(state: ArcEnvState) -> ArcEnvState:
        """The state with an empty history."""
        return state.clear_action_history()
