"""Settings of pictures: which are made, in which formats, with how much memory."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from jaxarc.config.base import Config
from jaxarc.config.rules import items, number, one_of

LEVELS = ("off", "minimal", "standard", "verbose", "full")


@dataclass(frozen=True)
class MemoryConfig(Config):
    """Memory that the frames of an episode may take until they are drawn.

    Above `max_cache_mb` they go to temporary files (`lazy_loading`; off, they are left
    out of the summary), compressed or not; above `max_total_mb` of the whole process
    what can be loaded again is let go between episodes.
    """

    section: ClassVar[str] = "visualization.debug.memory_management"

    max_cache_mb: Annotated[float, number(above=0)] = 100.0
    max_total_mb: Annotated[float, number(above=0)] = 500.0
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
    without_effect: ClassVar[frozenset[str]] = frozenset(
        {
            *("image_quality", "visualize_episodes", "enable_comparisons"),
            *("save_intermediate_states", "lazy_loading"),
        }
    )

    enabled: bool = True
    level: Annotated[str, one_of(*LEVELS)] = "standard"
    output_formats: Annotated[
        tuple[str, ...], items(one_of("svg", "png", "html", "console"))
    ] = ("svg",)
    show_coordinates: bool = False
    show_operation_names: bool = True
    highlight_changes: bool = True
    include_metrics: bool = True
    color_scheme: Annotated[str, one_of("default", "high_contrast", "colorblind")] = (
        "default"
    )
    step_visualizations: bool = True
    episode_summaries: bool = True
    max_memory_mb: Annotated[float, number(above=0)] = 500
    debug: DebugConfig | None = None
