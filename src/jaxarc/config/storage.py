"""Settings of written results: where they go and how many are kept."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from jaxarc.config.base import Config
from jaxarc.config.rules import maybe, number, one_of, text, whole


@dataclass(frozen=True)
class StorageConfig(Config):
    """Where results are written, how many are kept, what happens when it is full."""

    section: ClassVar[str] = "storage"
    without_effect: ClassVar[frozenset[str]] = frozenset(
        {
            *("debug_dir", "cleanup_frequency", "create_run_subdirs"),
            *("compress_old_files", "auto_cleanup", "warn_on_storage_limit"),
        }
    )

    policy: Annotated[str, one_of("none", "minimal", "standard", "research")] = (
        "standard"
    )
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
