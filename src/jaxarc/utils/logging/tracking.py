"""Logs at Weights & Biases, which is an extra."""

import dataclasses
import importlib
import numbers
from collections.abc import Mapping, Sequence
from typing import Any

from jaxarc.config import JaxArcConfig
from jaxarc.utils.logging.handler import Handler, Log
from jaxarc.utils.visualization.episodes import EpisodeFrame
from jaxrig.machine import missing_extra


class WandbHandler(Handler):
    """Figures of updates, episodes and evaluations as one run of the service.

    Every `wandb.log_frequency`-th update and episode is sent. `settings` are kept with
    the run if `wandb.save_config` says so; by default they are the configuration.
    """

    name = "wandb"

    def __init__(self, config: JaxArcConfig, settings: Any = None):
        try:
            wandb = importlib.import_module("wandb")
        except ImportError as error:
            raise missing_extra(
                "logging to Weights & Biases needs wandb", "wandb"
            ) from error
        rules = config.wandb
        kept = dataclasses.asdict(config if settings is None else settings)
        self._frequency = rules.log_frequency
        self._run = wandb.init(
            project=rules.project_name,
            entity=rules.entity,
            tags=list(rules.tags),
            notes=rules.notes,
            group=rules.group,
            job_type=rules.job_type,
            mode="offline" if rules.offline_mode else "online",
            config=kept if rules.save_config else None,
        )

    def episode(self, summary: Log, frames: Sequence[EpisodeFrame]) -> None:
        """The figures of an episode."""
        if summary["episode_num"] % self._frequency == 0:
            self._run.log(_figures(summary, "episode/"))

    def batch(self, number: int, figures: Mapping[str, float]) -> None:
        """The figures of an update."""
        if number % self._frequency == 0:
            # Not as the step of the service, which refuses to go back on a resume.
            self._run.log({"update_step": number, **figures})

    def evaluation(self, summary: Log) -> None:
        """The figures of an evaluation, as the outcome of the run."""
        self._run.summary.update(_figures(summary, "evaluation/"))

    def close(self) -> None:
        """Hand in what is left."""
        self._run.finish()


def _figures(summary: Log, prefix: str) -> dict[str, Any]:
    return {
        prefix + name: value
        for name, value in summary.items()
        if isinstance(value, numbers.Number)
    }
