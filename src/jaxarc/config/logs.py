"""Settings of log files: their format and what goes into them."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

from jaxarc.config.base import Config
from jaxarc.config.rules import one_of, whole

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

    def _relation_errors(self) -> Iterator[str]:
        """None; what asks for steps and for fewer lines at once is logged."""
        of_steps = ("log_operations", "log_grid_changes", "log_rewards")
        asked = [name for name in of_steps if getattr(self, name)]
        if asked and self.log_level != "DEBUG":
            logger.warning(
                "logging.%s is on, but logging.log_level is %r, and steps are logged "
                "at 'DEBUG' only",
                *(asked[0], self.log_level),
            )
        yield from ()
