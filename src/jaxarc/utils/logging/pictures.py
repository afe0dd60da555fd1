"""Logs as pictures: the task, steps, and a summary or a page for each episode."""

import importlib.util
from collections.abc import Sequence

from jaxarc.config import VisualizationConfig
from jaxarc.utils.logging.detail import Detail
from jaxarc.utils.logging.folder import RunFolder
from jaxarc.utils.logging.handler import Handler, Log
from jaxarc.utils.visualization.drawing import Drawing, save_svg_drawing
from jaxarc.utils.visualization.episodes import EpisodeFrame, draw_episode_summary_svg
from jaxarc.utils.visualization.replay import episode_section
from jaxarc.utils.visualization.steps import draw_rl_step_svg
from jaxarc.utils.visualization.tasks import draw_parsed_task_data_svg
from jaxrig.report import Report

FORMATS = ("svg", "png")


class PictureHandler(Handler):
    """`task_overview`, `step_007` and `summary` in a folder for each episode.

    They are SVG, PNG or both; the format "html" adds a page that plays the episode.
    """

    name = "pictures"

    def __init__(self, config: VisualizationConfig, detail: Detail, folder: RunFolder):
        self._rules, self._detail, self._folder = config, detail, folder
        self._formats = [form for form in FORMATS if form in config.output_formats]
        if "png" in self._formats and importlib.util.find_spec("cairosvg") is None:
            raise ImportError(
                "visualization.output_formats has 'png', which needs cairosvg: pip "
                "install cairosvg, or leave png out"
            )

    def start(self, log: Log) -> None:
        """All demonstrations of the task."""
        if "minimal" not in (self._detail.level, self._detail.policy):
            drawing = draw_parsed_task_data_svg(log["task"], include_test=False)
            self._save(drawing, log, "task_overview")

    def step(self, log: Log) -> None:
        """The grid before and after a step."""
        if self._detail.policy == "minimal" or not self._detail.shows_step(log):
            return
        rules = self._rules
        drawing = draw_rl_step_svg(
            log["before_grid"],
            log["grid"],
            reward=log["reward"],
            similarity=log["similarity"],
            previous_similarity=log["previous_similarity"],
            step_num=log["step_num"],
            selection=log["selection"],
            operation=log["operation"] if rules.show_operation_names else None,
            scheme=rules.color_scheme,
            show_coordinates=rules.show_coordinates,
            highlight_changes=rules.highlight_changes,
            show_metrics=rules.include_metrics,
        )
        self._save(drawing, log, f"step_{log['step_num']:03d}")

    def episode(self, summary: Log, frames: Sequence[EpisodeFrame]) -> None:
        """Curves and key moments, or a page."""
        if not self._rules.episode_summaries or not frames:
            return
        options = {
            "scheme": self._rules.color_scheme,
            "show_metrics": self._rules.include_metrics,
        }
        title = f"Episode {summary['episode_num']}"
        if self._formats:
            drawing = draw_episode_summary_svg(frames, title, **options)
            self._save(drawing, summary, "summary")
        if "html" in self._rules.output_formats and self._folder.accepts:
            result = "solved" if summary["success"] else "not solved"
            report = Report(title, f"{summary['total_steps']} steps, {result}.")
            report.add(episode_section("Steps", frames, **options))
            place = self._folder.episode_pictures(summary["episode_num"])
            report.write(place / "episode.html")

    def _save(self, drawing: Drawing, log: Log, name: str) -> None:
        if not self._folder.accepts:
            return
        place = self._folder.episode_pictures(log["episode_num"])
        for form in self._formats:
            save_svg_drawing(drawing, place / f"{name}.{form}")
