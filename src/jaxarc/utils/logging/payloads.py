"""What is logged of an episode, as dictionaries of NumPy arrays and Python numbers."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from jaxarc.data.buffer import gather_task
from jaxarc.data.identity import extract_task_id_from_index
from jaxarc.state import ArcEnvState
from jaxarc.types import JaxArcTask
from jaxarc.utils.visualization.steps import read_action

Payload = dict[str, Any]


def create_start_log(
    params: Any, task_idx: Any = None, state: Any = None, episode_num: int = 0
) -> Payload:
    """The beginning of an episode: its task, and where the state stands.

    `params` is a task, a stack of tasks, or what holds one as `buffer`; of a stack
    `task_idx` is the row, or the state's.
    """
    tasks = getattr(params, "buffer", params)
    if state is not None and not isinstance(state, ArcEnvState):
        state = ArcEnvState(tasks, state.episode)
    if task_idx is None and state is not None:
        task_idx = state.episode.task_row
    task = _task(tasks, task_idx)
    log = {
        "episode_num": int(episode_num),
        "task": task,
        "task_id": extract_task_id_from_index(task.task_index),
    }
    if state is None:
        return log
    return log | _seen(state) | {"episode_mode": int(state.episode_mode)}


def create_step_log(
    before_state: ArcEnvState,
    action: Any,
    after_state: ArcEnvState,
    reward: Any,
    info: Mapping[str, Any] | None = None,
    episode_num: int = 0,
) -> Payload:
    """One step: the grids around it, what was done, what it brought.

    States are those of `arc_step`, or `env.arc_state(state)`; of a batch take one row.
    """
    before = _seen(before_state)
    shape = before["grid"].shape
    operation, selection = read_action(action, None, None, shape)
    after = _seen(after_state)
    solved = after["similarity"] >= 1.0 if info is None else bool(info["success"])
    return after | {
        "episode_num": int(episode_num),
        "step_num": int(after_state.step_count),
        "operation": int(np.asarray(operation)),
        "selection": np.asarray(selection),
        "before_grid": before["grid"],
        "previous_similarity": before["similarity"],
        "reward": float(reward),
        "success": solved,
    }


def create_episode_summary(
    episode_num: int, step_logs: Sequence[Mapping[str, Any]]
) -> Payload:
    """The figures of an episode, and its steps without their grids."""
    similarities = [float(log["similarity"]) for log in step_logs]
    names = ("step_num", "operation", "reward", "similarity", "pair_index")
    return {
        "episode_num": int(episode_num),
        "total_steps": len(step_logs),
        "total_reward": float(sum(log["reward"] for log in step_logs)),
        "final_similarity": similarities[-1] if similarities else 0.0,
        "best_similarity": max(similarities, default=0.0),
        "success": any(bool(log["success"]) for log in step_logs),
        "step_data": [{name: log[name] for name in names} for log in step_logs],
    }


def _seen(state: ArcEnvState) -> Payload:
    if state.step_count.ndim:
        raise ValueError(
            "a batch of states was given: log one of them, "
            "jax.tree.map(lambda x: x[i], states)"
        )
    grid, target, similarity, pair = jax.device_get(
        (
            state.working_grid,
            state.target_grid,
            state.similarity_score,
            state.current_example_idx,
        )
    )
    return {
        "grid": grid,
        "target": target,
        "similarity": float(similarity),
        "pair_index": int(pair),
    }


def _task(tasks: Any, row: Any) -> JaxArcTask:
    if not isinstance(tasks, JaxArcTask):
        raise TypeError(
            f"a {type(tasks).__name__} was given: pass a JaxArcTask, or the parameters "
            "of an environment"
        )
    if tasks.pairs.ndim == 4:
        return tasks
    if row is None:
        raise ValueError(
            "a stack of tasks was given: say which with task_idx, or give the state"
        )
    return gather_task(tasks, row)
