"""What a destination of logs does with each kind of log; unless told, nothing."""

from collections.abc import Mapping, Sequence
from typing import Any

from jaxarc.utils.visualization.episodes import EpisodeFrame

Log = Mapping[str, Any]


class Handler:
    """One destination: a terminal, files, pictures, a tracking service.

    What a method raises is logged and counted under the handler's name, and neither
    stops the run nor the other handlers.
    """

    name = "handler"

    def start(self, log: Log) -> None:
        """An episode begins."""

    def step(self, log: Log) -> None:
        """One step was taken."""

    def episode(self, summary: Log, frames: Sequence[EpisodeFrame]) -> None:
        """An episode has ended; its frames, where some handler asked for them."""

    def batch(self, number: int, figures: Mapping[str, float]) -> None:
        """An update of a learner, or a step of many environments, in figures."""

    def evaluation(self, summary: Log) -> None:
        """What an evaluation found."""

    def warning(self, text: str) -> None:
        """Something could not be kept or shown."""

    def close(self) -> None:
        """Nothing follows."""
