"""Telling what a run does: to a terminal, to files, as pictures, to a service."""

from jaxarc.log.events import (
    Handler,
    aggregate,
    create_episode_summary,
    create_start_log,
    create_step_log,
)
from jaxarc.log.experiment import ExperimentLogger
from jaxarc.log.files import FileHandler, RunFolder
from jaxarc.log.handlers import ConsoleHandler, PictureHandler, WandbHandler

__all__ = [
    "ConsoleHandler",
    "ExperimentLogger",
    "FileHandler",
    "Handler",
    "PictureHandler",
    "RunFolder",
    "WandbHandler",
    "aggregate",
    "create_episode_summary",
    "create_start_log",
    "create_step_log",
]
