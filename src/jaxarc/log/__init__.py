"""Log a run: to a terminal, to files, as pictures, to a tracking service."""

from jaxarc.log.experiment import (
    ExperimentLogger,
    create_episode_summary,
    create_start_log,
    create_step_log,
)
from jaxarc.log.handlers import Handler

__all__ = [
    "ExperimentLogger",
    "Handler",
    "create_episode_summary",
    "create_start_log",
    "create_step_log",
]
