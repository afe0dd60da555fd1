"""Settings of log files: their format and what goes into them."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from jaxarc.config.base import Config
from jaxarc.config.rules import one_of, whole


@dataclass(frozen=True)
class LoggingConfig(Config):
    """What is logged, how often and in which format."""

    section: ClassVar[str] = "logging"
    without_effect: ClassVar[frozenset[str]] = frozenset(
        {
            *("structured_logging", "compression", "include_full_states"),
            *("log_key_moments", "queue_size", "worker_threads", "batch_size"),
            *("flush_interval", "enable_compression"),
        }
    )

    log_format: Annotated[str, one_of("json", "text", "structured")] = "json"
    log_level: Annotated[str, one_of("DEBUG", "INFO", "WARNING", "ERROR")] = "INFO"
    log_operations: bool = False
    log_grid_changes: bool = False
    log_rewards: bool = False
    log_episode_start: bool = True
    log_episode_end: bool = True
    log_frequency: Annotated[int, whole(1)] = 10
    batched_logging_enabled: bool = False
