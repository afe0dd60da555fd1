"""Describe what happens in a run as plain host data, for any destination.

Logs are dictionaries of NumPy arrays and Python numbers; a `Handler` takes them.
"""

import dataclasses
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxarc.config import JaxArcConfig, MemoryConfig, VisualizationConfig
from jaxarc.config.outputs import LEVELS, POLICIES
from jaxarc.draw.episodes import EpisodeFrame, read_action
from jaxarc.draw.memory import (
    CompressedStorage,
    get_memory_manager,
    optimize_array_memory,
)
from jaxarc.state import ArcEnvState
from jaxarc.tasks.identity import extract_task_id_from_index
from jaxarc.tasks.samples import gather_task
from jaxarc.types import JaxArcTask
from jaxrig.memory import MIB, host_memory
from jaxrig.storage import ByteCache

Log = Mapping[str, Any]
STEP_FIELDS = ("step_num", "operation", "reward", "similarity", "pair_index")


class Handler:
    """One destination: a terminal, files, pictures, a tracking service.

    What a method raises is logged and counted under the handler's name, and neither
    stops the run nor the other handlers.
    """

    name = "handler"

    def start(self, log: Log) -> None:
        """Take the start of an episode."""

    def step(self, log: Log) -> None:
        """Take one step."""

    def episode(self, summary: Log, frames: Sequence[EpisodeFrame]) -> None:
        """Take the end of an episode; its frames, if some handler draws them."""

    def batch(self, number: int, figures: Mapping[str, float]) -> None:
        """Take the figures of an update, or of a step of many environments."""

    def evaluation(self, summary: Log) -> None:
        """Take the figures of an evaluation."""

    def warning(self, text: str) -> None:
        """Take a note of what could not be kept or shown."""

    def close(self) -> None:
        """Close the destination: nothing follows."""


def aggregate(data: Mapping[str, Any]) -> dict[str, float]:
    """Return mean, standard deviation, minimum and maximum of arrays.

    Single numbers stay as they are; a boolean array such as `success_mask` gives the
    share of True as `success_rate`. Reduced on the device, before anything is copied.

    >>> aggregate({"policy_loss": 0.5, "success_mask": jnp.array([True, False])})
    {'policy_loss': 0.5, 'success_rate': 0.5}
    """
    found: dict[str, Any] = {}
    for name, value in data.items():
        array = jnp.asarray(value)
        if array.size == 0:
            raise ValueError(f"{name} has shape {array.shape}: it is empty")
        if array.ndim == 0:
            found[name] = array
        elif array.dtype == bool:
            found[f"{name.removesuffix('_mask')}_rate"] = jnp.mean(array)
        else:
            numbers = array.astype(jnp.float32)
            for reduce in (jnp.mean, jnp.std, jnp.min, jnp.max):
                found[f"{name}_{reduce.__name__}"] = reduce(numbers)
    return {name: value.item() for name, value in jax.device_get(found).items()}


def cap_detail(config: JaxArcConfig) -> JaxArcConfig:
    """Lower the level of pictures and the policy of files to the debug level.

    The level of the `debug` block goes before `visualization.level` where there is one.
    """
    pictures, rules = config.visualization, config.environment
    wanted = pictures.debug.level if pictures.debug else pictures.level
    level = min(wanted, rules.computed_visualization_level, key=LEVELS.index)
    files = config.storage
    policy = min(files.policy, rules.computed_storage_policy, key=POLICIES.index)
    return dataclasses.replace(
        config,
        visualization=dataclasses.replace(
            pictures, level=level if pictures.enabled else "off"
        ),
        storage=dataclasses.replace(files, policy=policy),
    )


def shows_step(config: JaxArcConfig, log: Log) -> bool:
    """Return whether to draw a step: every n-th, each that changes, or all."""
    level = config.visualization.level
    if not config.visualization.step_visualizations or level in ("off", "minimal"):
        return False
    if level == "standard":
        return log["step_num"] % config.logging.log_frequency == 0
    return level == "full" or not np.array_equal(log["before_grid"], log["grid"])


def create_start_log(
    params: Any, task_idx: Any = None, state: Any = None, episode_num: int = 0
) -> dict[str, Any]:
    """Describe the start of an episode: its task and its state.

    `params` is a task, a stack of tasks, or what holds one as `buffer`; of a stack
    `task_idx` is the row, or the state's.
    """
    tasks = getattr(params, "buffer", params)
    if not isinstance(tasks, JaxArcTask):
        raise TypeError(
            f"a {type(tasks).__name__} was given: pass a JaxArcTask, or the parameters "
            "of an environment"
        )
    if state is not None and not isinstance(state, ArcEnvState):
        state = ArcEnvState(tasks, state.episode)
    if task_idx is None and state is not None:
        task_idx = state.episode.task_row
    if tasks.pairs.ndim > 4:
        if task_idx is None:
            raise ValueError(
                "a stack of tasks was given: say which with task_idx, or give the state"
            )
        tasks = gather_task(tasks, task_idx)
    log = {
        "episode_num": int(episode_num),
        "task": tasks,
        "task_id": extract_task_id_from_index(tasks.task_index),
    }
    if state is None:
        return log
    return log | _describe(state) | {"episode_mode": int(state.episode_mode)}


def create_step_log(
    before_state: ArcEnvState,
    action: Any,
    after_state: ArcEnvState,
    reward: Any,
    info: Mapping[str, Any] | None = None,
    episode_num: int = 0,
) -> dict[str, Any]:
    """Describe one step: the grids around it, the action, the reward.

    States are those of `arc_step`, or `env.arc_state(state)`; of a batch take one row.
    """
    before, after = _describe(before_state), _describe(after_state)
    operation, selection = read_action(action, before["grid"].shape)
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


def create_episode_summary(episode_num: int, step_logs: Sequence[Log]) -> Log:
    """Return the figures of an episode, and its steps without their grids."""
    similarities = [float(log["similarity"]) for log in step_logs]
    return {
        "episode_num": int(episode_num),
        "total_steps": len(step_logs),
        "total_reward": float(sum(log["reward"] for log in step_logs)),
        "final_similarity": similarities[-1] if similarities else 0.0,
        "best_similarity": max(similarities, default=0.0),
        "success": any(bool(log["success"]) for log in step_logs),
        "step_data": [{name: log[name] for name in STEP_FIELDS} for log in step_logs],
    }


def _describe(state: ArcEnvState) -> dict[str, Any]:
    if state.step_count.ndim:
        raise ValueError(
            "a batch of states was given: log one of them, "
            "jax.tree.map(lambda x: x[i], states)"
        )
    return {
        "grid": np.asarray(state.working_grid),
        "target": np.asarray(state.target_grid),
        "similarity": float(state.similarity_score),
        "pair_index": int(state.current_example_idx),
    }


class FrameStore:
    """Frames in the order they came, at most `visualization.max_memory_mb` in memory.

    With a `debug` block, at most its `max_cache_mb`, and above `max_total_mb` of the
    whole process everything that can be loaded again is released between episodes.
    What does not fit goes to temporary files (`lazy_loading`), compressed or not, or
    is forgotten; `warn` is told.
    """

    def __init__(self, config: VisualizationConfig, warn: Callable[[str], None]):
        debug, self._warn, self._count = config.debug, warn, 0
        memory = MemoryConfig() if debug is None else debug.memory_management
        limit = config.max_memory_mb
        limit = limit if debug is None else min(limit, memory.max_cache_mb)
        self._most = float("inf") if debug is None else memory.max_total_mb * MIB
        self._files = tempfile.TemporaryDirectory(prefix="jaxarc-frames-")
        storage = CompressedStorage(self._files.name, 6 if memory.compression else 0)
        store = storage if memory.lazy_loading else None
        self.cache = ByteCache(int(limit * MIB), store=store)

    def begin(self) -> None:
        """Forget the last episode; release memory if the process holds too much."""
        self.cache.clear()
        self._count = 0
        used = host_memory().resident
        if used > self._most:
            get_memory_manager().cleanup_memory()
            self._warn(
                f"the process holds {used / 1e6:.0f} MB, above visualization.debug."
                "memory_management.max_total_mb: released loaded data"
            )

    def add(self, frame: EpisodeFrame) -> None:
        """Keep one more frame."""
        small = {
            name: optimize_array_memory(x) if isinstance(x, np.ndarray) else x
            for name, x in vars(frame).items()
        }
        self.cache.put(str(self._count), small)
        self._count += 1

    def frames(self) -> list[EpisodeFrame]:
        """Return the frames that are still there."""
        found = []
        for number in range(self._count):
            with suppress(KeyError):  # forgotten, since it did not fit
                found.append(EpisodeFrame(**self.cache.get(str(number))))
        if missing := self._count - len(found):
            self._warn(
                f"{missing} of {self._count} frames of the episode did not fit into "
                "memory and are not drawn: raise visualization.max_memory_mb, or "
                "switch on visualization.debug.memory_management.lazy_loading"
            )
        return found

    def close(self) -> None:
        """Remove the temporary files."""
        self.cache.clear()
        self._files.cleanup()


def frame_of_log(log: Log, named: bool = True) -> EpisodeFrame:
    """Return the frame after a start or a step; `named` keeps its operation."""
    operation = log.get("operation") if named else None
    figures = operation, log.get("reward", 0.0), log["similarity"]
    return EpisodeFrame.of_grids(
        log["grid"], log["target"], log.get("selection"), *figures
    )
