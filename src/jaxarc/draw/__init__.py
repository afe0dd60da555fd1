"""Draw grids, tasks, steps and episodes: as SVG, as pixels, in a terminal."""

from jaxarc.draw.cells import render_rgb
from jaxarc.draw.episodes import (
    EpisodeFrame,
    draw_episode,
    draw_step,
    episode_section,
)
from jaxarc.draw.svg import Drawing, draw_grid, draw_task, save_drawing
from jaxarc.draw.terminal import grid_panel, print_task, render_ansi

__all__ = [
    "Drawing",
    "EpisodeFrame",
    "draw_episode",
    "draw_grid",
    "draw_step",
    "draw_task",
    "episode_section",
    "grid_panel",
    "print_task",
    "render_ansi",
    "render_rgb",
    "save_drawing",
]
