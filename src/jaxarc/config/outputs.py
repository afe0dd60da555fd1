"""Settings of what a run leaves behind: pictures, files, logs, experiment tracking."""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from jaxarc.config.fields import Config, Count, items
from jaxrig.settings import Positive, maybe, one_of, text

LEVELS = ("off", "minimal", "standard", "verbose", "full")


@dataclass(frozen=True)
class MemoryConfig(Config):
    """Memory that the frames of an episode may take until they are drawn.

    Above `max_cache_mb` they go to temporary files (`lazy_loading`; off, they are left
    out of the summary), compressed or not; above `max_total_mb` of the whole process
    what can be loaded again is let go between episodes.
    """

    section: ClassVar[str] = "visualization.debug.memory_management"

    max_cache_mb: Positive = 100.0
    max_total_mb: Positive = 500.0
    lazy_loading: bool = True
    compression: bool = True

    def _relation_errors(self) -> Iterator[str]:
        if self.max_cache_mb > self.max_total_mb:
            yield (
                f"{self.full_name('max_cache_mb')} is {self.max_cache_mb}; it must not "
                f"exceed max_total_mb, which is {self.max_total_mb}"
            )


@dataclass(frozen=True)
class DebugConfig(Config):
    """How an `ExperimentLogger` works while a run is debugged.

    `level` goes before `visualization.level`; `async_logging` writes and draws in a
    thread beside the run; `performance_monitoring` lists the time it takes in
    `get_callback_performance_stats`.
    """

    section: ClassVar[str] = "visualization.debug"

    level: Annotated[str, one_of(*LEVELS)] = "standard"
    async_logging: bool = True
    performance_monitoring: bool = True
    memory_management: MemoryConfig = field(default_factory=MemoryConfig)


@dataclass(frozen=True)
class VisualizationConfig(Config):
    """Which pictures an `ExperimentLogger` makes and what they show.

    - `level`: "minimal" sums episodes up, "standard" also draws the task and every
      `logging.log_frequency`-th step, "verbose" every step that changes the grid,
      "full" every step; `environment.debug_level` is the most it may be.
    - `output_formats`: files of svg, png or html (a page that plays the episode), and
      the terminal ("console").
    - `step_visualizations`, `episode_summaries`: whether there are any of these.
    - `show_coordinates`, `show_operation_names`, `highlight_changes`,
      `include_metrics` (rewards and similarities), `color_scheme`: what they show.
    - `max_memory_mb`: of the frames of an episode until they are drawn.
    """

    section: ClassVar[str] = "visualization"
    renamed: ClassVar[Mapping[str, str]] = {"memory_limit_mb": "max_memory_mb"}

    enabled: bool = True
    level: Annotated[str, one_of(*LEVELS)] = "standard"
    output_formats: Annotated[
        tuple[str, ...], items(one_of("svg", "png", "html", "console"))
    ] = ("svg",)
    show_coordinates: bool = False
    show_operation_names: bool = True
    highlight_changes: bool = True
    include_metrics: bool = True
    color_scheme: Annotated[
        str, one_of("default", "high_contrast", "colorblind", "arc")
    ] = "default"
    step_visualizations: bool = True
    episode_summaries: bool = True
    max_memory_mb: Positive = 500
    debug: DebugConfig | None = None


POLICIES = ("none", "minimal", "standard", "research")


@dataclass(frozen=True)
class StorageConfig(Config):
    """Where `ExperimentLogger` writes, and how much of it.

    - `policy`: "none" writes nothing, "minimal" log lines and summaries of episodes,
      "standard" also each episode and pictures of its steps, "research" also the grids
      of every step; `environment.debug_level` is the most it may be.
    - `base_output_dir`, `run_name`: the folder of the run; without a name it is called
      by the time.
    - `max_episodes_per_run`: the number of episodes whose files are kept; the oldest
      give way.
    - `clear_output_on_start`: empty the folder of a named run first.
    """

    section: ClassVar[str] = "storage"

    policy: Annotated[str, one_of(*POLICIES)] = "standard"
    base_output_dir: Annotated[str, text] = "outputs"
    run_name: Annotated[str | None, maybe(text)] = None
    max_episodes_per_run: Count = 100
    clear_output_on_start: bool = False


logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class LoggingConfig(Config):
    """What an `ExperimentLogger` writes to its log, how often and in which format.

    - `log_format`: "json" lines, words ("text"), or `name=value` ("structured").
    - `log_level`: the least that is written. Steps are DEBUG, what could not be kept
      is WARNING, everything else INFO.
    - `log_operations`, `log_grid_changes`, `log_rewards`: what is said of a step.
    - `log_episode_start`, `log_episode_end`: whether episodes are.
    - `log_frequency`: every so many steps of an episode, or updates of a learner.
    - `batched_logging_enabled`: whether `log_batch_step` does anything.
    """

    section: ClassVar[str] = "logging"

    log_format: Annotated[str, one_of("json", "text", "structured")] = "json"
    log_level: Annotated[str, one_of("DEBUG", "INFO", "WARNING", "ERROR")] = "INFO"
    log_operations: bool = False
    log_grid_changes: bool = False
    log_rewards: bool = False
    log_episode_start: bool = True
    log_episode_end: bool = True
    log_frequency: Count = 10
    batched_logging_enabled: bool = False

    def _relation_errors(self) -> Iterator[str]:
        """Log what asks for steps and for fewer lines at once; yield no error."""
        of_steps = ("log_operations", "log_grid_changes", "log_rewards")
        asked = [name for name in of_steps if getattr(self, name)]
        if asked and self.log_level != "DEBUG":
            logger.warning(
                "logging.%s is on, but logging.log_level is %r, and steps are logged "
                "at 'DEBUG' only",
                *(asked[0], self.log_level),
            )
        yield from ()


@dataclass(frozen=True)
class WandbConfig(Config):
    """Whether, where and how often `ExperimentLogger` reports a run; off by default.

    `log_frequency` is in updates and in episodes; `save_config` keeps the configuration
    with the run.
    """

    section: ClassVar[str] = "wandb"

    enabled: bool = False
    project_name: Annotated[str, text] = "jaxarc-experiments"
    entity: str | None = None
    tags: Annotated[tuple[str, ...], items(text, 0)] = ("jaxarc",)
    notes: str = ""
    group: str | None = None
    job_type: Annotated[str, text] = "training"
    log_frequency: Count = 10
    offline_mode: bool = False
    save_config: bool = True
