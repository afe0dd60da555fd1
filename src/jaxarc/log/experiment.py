"""Log a run to a terminal, files, pictures and Weights & Biases."""

import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from jaxarc.draw.callbacks import monitored_name
from jaxarc.envs.checks import checked_config
from jaxarc.log import events, handlers
from jaxrig.callbacks import run_guarded

logger = logging.getLogger(__name__)

# Logs that may wait for the thread that writes them; more would only hide that the
# disk is slower than the run, and fill the memory.
PENDING = 1000


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
        self.config = events.cap_detail(checked_config(config))
        shown, storage = self.config.visualization, self.config.storage
        formats = set(shown.output_formats) if shown.level != "off" else set()
        found: list[events.Handler] = []
        self.folder: handlers.RunFolder | None = None
        self._frames: events.FrameStore | None = None
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
                self._frames = events.FrameStore(shown, self._warn)
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

    def log_task_start(self, log: events.Log) -> None:
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
                self._run(partial(self._frames.add, events.frame_of_log(log)), "frames")

    def log_step(self, log: events.Log) -> None:
        """Log one step; `log` is from `create_step_log`."""
        if not self.handlers:
            return
        self._steps.append({n: log[n] for n in (*events.STEP_FIELDS, "success")})
        self._tell("step", log)
        if self._frames is not None:
            named = self.config.visualization.show_operation_names
            frame = events.frame_of_log(log, named)
            self._run(partial(self._frames.add, frame), "frames")

    def log_episode_summary(self, summary: events.Log | None = None) -> None:
        """Log the end of an episode; the default summary is of the steps logged."""
        if not self.handlers:
            return
        if summary is None:
            summary = events.create_episode_summary(self._episode, self._steps)
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
            self._tell("batch", number, events.aggregate(rest))

    def log_evaluation_summary(self, summary: events.Log) -> None:
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
