"""An episode as a section of a report: a player of its grids, and its curves."""

from collections.abc import Sequence

import numpy as np

from jaxarc.utils.visualization.cells import read_cells
from jaxarc.utils.visualization.drawing import Drawing, beside, centered, stacked
from jaxarc.utils.visualization.episodes import (
    EpisodeFrame,
    check_frames,
    episode_charts,
)
from jaxarc.utils.visualization.steps import describe_step
from jaxarc.utils.visualization.svg import FRAME, INPUT, OUTPUT, captioned, grid_tile
from jaxrig.report import Figure, Part, Player, Section, Text

STAGE = 400.0  # pixels that the largest grid of an episode is wide or high
LARGEST_CELL = 100.0
GAP = 24.0
CHART = (356.0, 200.0)  # a page on a telephone shows it unscaled


def episode_section(
    title: str,
    frames: Sequence[EpisodeFrame],
    text: str = "",
    frames_per_second: float = 2.0,
    scheme: str = "default",
    show_metrics: bool = True,
) -> Section:
    """A section that plays the episode step by step, the target beside it if known.

    Without `show_metrics` there are no curves.
    """
    check_frames(frames)
    largest = np.max([f.grid.shape for f in frames], axis=0)
    shown = [f.target.shape for f in frames if f.target is not None]
    side = min(STAGE / max(float(np.max([largest, *shown])), 1.0), LARGEST_CELL)
    area = float(largest[1]) * side + 2 * FRAME, float(largest[0]) * side + 2 * FRAME
    pictures = [frame_picture(frame, side, area, scheme).as_svg() for frame in frames]
    captions = [
        f"{index}: {describe_step(f.operation, f.reward, f.similarity)}"
        for index, f in enumerate(frames)
    ]
    parts: list[Part] = [Text(text)] if text else []
    parts.append(Player(pictures, captions, frames_per_second, alt=title))
    if show_metrics:
        curves = Figure(
            stacked(episode_charts(frames, CHART), GAP).as_svg(),
            caption="Reward of each step and similarity to the target after it.",
            alt="Reward and similarity over the episode",
        )
        parts.append(curves)
    return Section(title, *parts)


def frame_picture(
    frame: EpisodeFrame, side: float, area: tuple[float, float], scheme: str = "default"
) -> Drawing:
    """The grid in an area that is the same for all frames, and the target."""
    cells = read_cells(frame.grid)
    tile = grid_tile(cells, side, INPUT, scheme, selection=frame.selection)
    shown = [captioned(centered(tile, *area), f"Working grid ({cells.size})")]
    if frame.target is not None:
        target = read_cells(frame.target)
        tall = max(area[1], target.height * side + 2 * FRAME)
        wanted = centered(grid_tile(target, side, OUTPUT, scheme), 0.0, tall)
        shown.append(captioned(wanted, f"Target ({target.size})"))
    return beside(shown, GAP, "Working grid and target")
