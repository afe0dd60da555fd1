"""States from grids of one's own, in place of a reset."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxarc.config import ActionConfig, EnvironmentConfig, HistoryConfig, JaxArcConfig
from jaxarc.envs.episode import begin
from jaxarc.similarity import similarity
from jaxarc.state import ArcEnvState
from jaxarc.types import JaxArcTask

HIDDEN = -1


def create_arc_env_state(
    task_data: JaxArcTask,
    working_grid: Any,
    working_grid_mask: Any,
    target_grid: Any,
    target_grid_mask: Any,
    *,
    max_train_pairs: int | None = None,
    max_test_pairs: int | None = None,
    selection_format: str = "mask",
    max_grid_height: int | None = None,
    max_grid_width: int | None = None,
    max_history_length: int = 1000,
    episode_mode: int = 0,
    current_example_idx: int | None = None,
    **attributes: Any,
) -> ArcEnvState:
    """A state with this working grid on a pair of the task.

    The target belongs to the task: it must be the output of the pair
    `current_example_idx` (by default of the first demonstration that has it), and all
    padding in test mode. Sizes follow from the task; those given must agree with it.
    `attributes` are documented ones, as in `state.replace`.
    """
    height, width = task_data.get_grid_shape()
    _check_size("max_grid_height", max_grid_height, height)
    _check_size("max_grid_width", max_grid_width, width)
    _check_size("max_train_pairs", max_train_pairs, task_data.max_train_pairs)
    _check_size("max_test_pairs", max_test_pairs, task_data.max_test_pairs)
    if episode_mode not in (0, 1):
        raise ValueError(f"episode_mode is {episode_mode!r}: it is 0 or 1")
    target = np.where(np.asarray(target_grid_mask), np.asarray(target_grid), HIDDEN)
    pair = _find_pair(task_data, target, episode_mode, current_example_idx)
    config = JaxArcConfig(
        environment=EnvironmentConfig(max_episode_steps=max_history_length),
        action=ActionConfig(selection_format=selection_format),
        history=HistoryConfig(max_history_length=max_history_length),
    )
    row, mode, at = (jnp.asarray(n, jnp.int32) for n in (0, episode_mode, pair))
    state = ArcEnvState(task_data, begin(task_data, row, mode, at, config))
    state = state.replace(
        working_grid=working_grid, working_grid_mask=working_grid_mask
    )
    return state.replace(**{"similarity_score": _score(state, pair), **attributes})


def create_arc_env_state_with_format(
    task_data: JaxArcTask,
    working_grid: Any,
    working_grid_mask: Any,
    target_grid: Any,
    target_grid_mask: Any,
    selection_format: str,
    **choices: Any,
) -> ArcEnvState:
    """`create_arc_env_state` with the format of the history named first."""
    grids = (working_grid, working_grid_mask, target_grid, target_grid_mask)
    return create_arc_env_state(
        task_data, *grids, selection_format=selection_format, **choices
    )


def _check_size(name: str, given: int | None, found: int) -> None:
    if given is not None and given != found:
        raise ValueError(
            f"{name} is {given}, but the task has room for {found}: leave it out, or "
            "load the task with a DatasetConfig of that size"
        )


def _find_pair(
    task: JaxArcTask, target: np.ndarray, mode: int, index: int | None
) -> int:
    """The pair whose target this is."""
    if mode == 1:
        if (target != HIDDEN).any():
            raise ValueError(
                "in test mode the target is hidden: pass a target_grid_mask that is "
                "False everywhere"
            )
        return _within(index or 0, int(task.num_test_pairs), "test pairs")
    outputs = np.asarray(task.output_grids_examples)[: int(task.num_train_pairs)]
    fits = [np.array_equal(target, output) for output in outputs]
    if index is not None:
        index = _within(index, len(fits), "demonstrations")
        fits = [fit and at == index for at, fit in enumerate(fits)]
    if not any(fits):
        which = "any demonstration" if index is None else f"demonstration {index}"
        raise ValueError(
            f"target_grid is not the output of {which}: a state takes its target from "
            "task_data, make a JaxArcTask with this output"
        )
    return fits.index(True)


def _within(index: int, count: int, what: str) -> int:
    if not 0 <= index < count:
        raise ValueError(f"current_example_idx is {index}: there are {count} {what}")
    return index


def _score(state: ArcEnvState, pair: int) -> Any:
    if state.episode_mode == 1:
        return state.similarity_score
    canvas, tasks = state.episode.canvas, state.tasks
    wanted, size = tasks.pairs[pair, 1], tasks.sizes[pair, 1]
    return similarity(canvas.planes, canvas.size, wanted, size)
