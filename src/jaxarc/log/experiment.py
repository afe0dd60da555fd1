"""Log a run to a terminal, files, pictures and Weights & Biases.

What happens is described as plain host data, which any destination takes.
"""

import dataclasses
import logging
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console

from jaxarc.config import JaxArcConfig, MemoryConfig, VisualizationConfig
from jaxarc.config.outputs import LEVELS, POLICIES
from jaxarc.draw.callbacks import monitored_name
from jaxarc.draw.episodes import EpisodeFrame, read_action
from jaxarc.draw.memory import (
    CompressedStorage,
    get_memory_manager,
    optimize_array_memory,
)
from jaxarc.envs.checks import checked_config
from jaxarc.log import handlers
from jaxarc.log.handlers import Handler, Log
from jaxarc.state import ArcEnvState
from jaxarc.tasks.identity import extract_task_id_from_index
from jaxarc.tasks.samples import gather_task
from jaxarc.types import JaxArcTask
from jaxrig.callbacks import run_guarded
from jaxrig.memory import MIB, host_memory
from jaxrig.storage import ByteCache

logger = logging.getLogger(__name__)

# Logs that may wait for the thread that writes them; more would only hide that the
# disk is slower than the run, and fill the memory.
PENDING = 1000

STEP_FIELDS = ("step_num", "operation", "reward", "similarity", "pair_index")


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
    operation, selection = _chosen(action, after_state, before["grid"].shape)
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


def _chosen(action: Any, after: ArcEnvState, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Return operation and cells; of fractions, those that the step selected."""
    given = action if isinstance(action, Mapping) else vars(action)
    cells = jnp.asarray(given.get("selection", True))
    if jnp.issubdtype(cells.dtype, jnp.floating):
        return given["operation"], after.selected
    return read_action(action, shape)


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


class ExperimentLogger:
    """Logs a run to the destinations that its configuration names.

    `environment.debug_level` "off" logs nothing. Otherwise `storage` and `logging`
    say what goes to files, `visualization` which pictures are made and whether the
    terminal shows them ("console" among the formats), `wandb` what is sent. A
    destination that fails is logged and counted among the callbacks, and stops
    nothing. `settings` is a dataclass kept with the run at wandb instead of the
    configuration.

        with ExperimentLogger(config) as log:
            log.log_task_start(create_start_log(task, state=state))
            log.log_step(create_step_log(state, action, after, reward, info))
            log.log_episode_summary()
    """

    def __init__(
        self,
        config: Any,
        *,
        console: Console | None = None,
        settings: Any = None,
        clock: Callable[[], datetime] = datetime.now,
    ):
        self.config = cap_detail(checked_config(config))
        shown, storage = self.config.visualization, self.config.storage
        formats = set(shown.output_formats) if shown.level != "off" else set()
        found: list[Handler] = []
        self.folder: handlers.RunFolder | None = None
        self._frames: FrameStore | None = None
        if "console" in formats:
            found.append(handlers.ConsoleHandler(self.config, console))
        if storage.policy != "none":
            self.folder = handlers.RunFolder(storage, clock)
            found.append(handlers.FileHandler(self.config, self.folder, clock))
            pictures = bool(formats - {"console"})
            if pictures:
                found.append(handlers.PictureHandler(self.config, self.folder))
            # Only where a summary is drawn or all grids are stored.
            if storage.policy == "research" or (pictures and shown.episode_summaries):
                self._frames = FrameStore(shown, self._warn)
        if self.config.wandb.enabled and self.config.environment.debug_name != "off":
            found.append(handlers.WandbHandler(self.config, settings))
        self.handlers = tuple(found)
        debug = shown.debug
        self._monitored = debug is None or debug.performance_monitoring
        threaded = bool(self.handlers) and debug is not None and debug.async_logging
        self._pool = ThreadPoolExecutor(1, "jaxarc-log") if threaded else None
        self._room = threading.BoundedSemaphore(PENDING)
        self._episode, self._steps = 0, []

    @property
    def path(self) -> Path | None:
        """Return the folder of the run, if it writes files."""
        return None if self.folder is None else self.folder.path

    def log_task_start(self, log: Log) -> None:
        """Log the start of an episode; `log` is from `create_start_log`."""
        if not self.handlers:
            return
        self.flush()
        self._episode, self._steps = log["episode_num"], []
        if self.folder is not None:
            self.folder.make_room()
        self._tell("start", log)
        if self._frames is not None:
            self._frames.begin()
            if "grid" in log:
                self._run(partial(self._frames.add, frame_of_log(log)), "frames")

    def log_step(self, log: Log) -> None:
        """Log one step; `log` is from `create_step_log`."""
        if not self.handlers:
            return
        self._steps.append({n: log[n] for n in (*STEP_FIELDS, "success")})
        self._tell("step", log)
        if self._frames is not None:
            named = self.config.visualization.show_operation_names
            frame = frame_of_log(log, named)
            self._run(partial(self._frames.add, frame), "frames")

    def log_episode_summary(self, summary: Log | None = None) -> None:
        """Log the end of an episode; the default summary is of the steps logged."""
        if not self.handlers:
            return
        if summary is None:
            summary = create_episode_summary(self._episode, self._steps)
        frames = []
        if self._frames is not None:
            self.flush()
            frames = self._frames.frames()
        self._tell("episode", summary, frames)

    def log_batch_step(self, data: Mapping[str, Any]) -> None:
        """Log a batch: `update_step`, and numbers or arrays over environments.

        Only with `logging.batched_logging_enabled`, every `logging.log_frequency`-th
        update. Arrays are reduced where they are before anything is copied.
        """
        rules, number = self.config.logging, int(data["update_step"])
        due = rules.batched_logging_enabled and number % rules.log_frequency == 0
        if self.handlers and due:
            rest = {k: v for k, v in data.items() if k != "update_step"}
            self._tell("batch", number, aggregate(rest))

    def log_evaluation_summary(self, summary: Log) -> None:
        """Log the figures of an evaluation by name; they may be nested."""
        self._tell("evaluation", summary)

    def flush(self) -> None:
        """Wait until everything logged so far is written."""
        if self._pool is not None:
            self._pool.submit(lambda: None).result()

    def close(self) -> None:
        """Write what is left and release files and threads."""
        self._tell("close")
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
        if self._frames is not None:
            self._frames.close()
            self._frames = None
        self.handlers = ()

    def __enter__(self) -> "ExperimentLogger":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _tell(self, what: str, *values: Any) -> None:
        for handler in self.handlers:
            self._run(partial(getattr(handler, what), *values), handler.name)

    def _run(self, call: Callable[[], Any], name: str) -> None:
        label = monitored_name(f"experiment_{name}", self._monitored)
        if self._pool is None:
            run_guarded(call, label)
            return
        self._room.acquire()
        waiting = self._pool.submit(run_guarded, call, label)
        waiting.add_done_callback(lambda _: self._room.release())

    def _warn(self, problem: str) -> None:
        logger.warning(problem)
        self._tell("warning", problem)
