"""One grid operation on a state's own selection, outside the order of a step."""

from typing import Any

import jax.numpy as jnp

from jaxarc.episode import repack
from jaxarc.ops.apply import apply_operation
from jaxarc.ops.names import ARCLEOperationType as Op
from jaxarc.ops.selection import select_rows
from jaxarc.pairs import load_pair, slot_of
from jaxarc.similarity import similarity
from jaxarc.state import ArcEnvState


def execute_grid_operation(state: ArcEnvState, operation: Any) -> ArcEnvState:
    """The state after an operation on `state.selected`.

    No step is counted, nothing is recorded or rewarded. Submit ends the episode;
    control operations change nothing. In test mode the similarity stays hidden.
    """
    operation = jnp.asarray(operation, jnp.int32)
    episode, tasks = state.episode, state.tasks
    slot = slot_of(tasks, episode.episode_mode, episode.current_example_idx)
    pair = load_pair(tasks, episode.task_row, slot, episode.augmentation)
    before = episode.canvas
    inside = select_rows(episode.selection & before.active())
    canvas = apply_operation(
        operation,
        before,
        inside,
        select_rows(episode.selection),
        (pair.given, pair.given_size),
    )
    alike = similarity(canvas.planes, canvas.size, pair.wanted, pair.wanted_size)
    changed = repack(
        episode,
        canvas,
        episode_done=episode.episode_done | (operation == Op.SUBMIT),
        similarity_score=jnp.where(
            episode.episode_mode == 0, alike, episode.similarity_score
        ),
    )
    return ArcEnvState(tasks, changed)
