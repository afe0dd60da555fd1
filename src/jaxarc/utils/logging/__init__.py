"""Telling what a run does: to a terminal, to files, as pictures, to a service."""

from jaxarc.utils.logging.batches import aggregate
from jaxarc.utils.logging.experiment import ExperimentLogger
from jaxarc.utils.logging.folder import RunFolder
from jaxarc.utils.logging.handler import Handler
from jaxarc.utils.logging.payloads import (
    create_episode_summary,
    create_start_log,
    create_step_log,
)
from jaxarc.utils.logging.pictures import PictureHandler
from jaxarc.utils.logging.records import FileHandler
from jaxarc.utils.logging.terminal import ConsoleHandler
from jaxarc.utils.logging.tracking import WandbHandler

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
