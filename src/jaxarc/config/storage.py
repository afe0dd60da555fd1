"""Settings of written results: where they go and how many are kept."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from jaxarc.config.base import Config
from jaxarc.config.rules import maybe, number, one_of, text, whole

POLICIES = ("none", "minimal", "standard", "research")


@dataclass(frozen=True)
class StorageConfig(Config):
    """Where `ExperimentLogger` writes, how much of it, what happens when it is full.

    - `policy`: "none" writes nothing, "minimal" log lines and summaries of episodes,
      "standard" also each episode and pictures of its steps, "research" also the grids
      of every step; `environment.debug_level` is the most it may be.
    - `base_output_dir`, `run_name`: the folder of the run; without a name it is called
      by the time in `timestamp_format`, which log lines use too.
    - `episodes_dir`, `visualization_dir`, `logs_dir`: folders inside it.
    - `max_episodes_per_run`, `max_storage_gb` (of 10^9 bytes): when it is full.
    - `cleanup_policy`: which episodes give way then, the largest ("size_based") or the
      oldest ("oldest_first"), never the last `keep_recent_episodes`; "manual" waits
      for `ExperimentLogger.clean_up`, "none" removes nothing ever.
    - `fail_on_storage_full`: an error where no room can be made; otherwise a warning,
      and episodes go without files.
    - `clear_output_on_start`: empty those three folders of a named run first.
    """

    section: ClassVar[str] = "storage"
    without_effect: ClassVar[frozenset[str]] = frozenset(
        {
            *("debug_dir", "cleanup_frequency", "create_run_subdirs"),
            *("compress_old_files", "auto_cleanup", "warn_on_storage_limit"),
        }
    )

    policy: Annotated[str, one_of(*POLICIES)] = "standard"
    base_output_dir: Annotated[str, text(empty=False)] = "outputs"
    run_name: Annotated[str | None, maybe(text(empty=False))] = None
    episodes_dir: Annotated[str, text(empty=False)] = "episodes"
    visualization_dir: Annotated[str, text(empty=False)] = "visualizations"
    logs_dir: Annotated[str, text(empty=False)] = "logs"
    max_episodes_per_run: Annotated[int, whole(1)] = 100
    max_storage_gb: Annotated[float, number(above=0)] = 5.0
    cleanup_policy: Annotated[
        str, one_of("none", "size_based", "oldest_first", "manual")
    ] = "size_based"
    keep_recent_episodes: Annotated[int, whole(0)] = 10
    timestamp_format: Annotated[str, text(empty=False)] = "%Y%m%d_%H%M%S"
    clear_output_on_start: bool = False
    fail_on_storage_full: bool = False
