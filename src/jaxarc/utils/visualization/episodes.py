"""An episode as data and as one SVG: its curves and its most telling moments."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from jaxarc.ops.names import get_operation_name
from jaxarc.utils.visualization.cells import read_cells
from jaxarc.utils.visualization.drawing import (
    Drawing,
    beside,
    padded,
    stacked,
    words,
)
from jaxarc.utils.visualization.svg import (
    NEUTRAL,
    OUTPUT,
    captioned,
    fit_side,
    grid_tile,
)
from jaxrig.report import line_chart

CHART = (440.0, 220.0)
KEY_FRAME = 104.0  # pixels that a key frame may be wide and high
GAP = 18.0


@dataclass(frozen=True, eq=False)
class EpisodeFrame:
    """The grid after one step, cropped, and how it came about.

    The frame of the reset has no operation and no selection. The selection is over
    the same cells as the grid.
    """

    grid: Int[np.ndarray, "h w"]
    selection: Bool[np.ndarray, "h2 w2"] | None = None
    operation: int | None = None
    reward: float = 0.0
    similarity: float = 0.0
    target: Int[np.ndarray, "h3 w3"] | None = None


def draw_episode_summary_svg(
    frames: Sequence[EpisodeFrame],
    title: str = "Episode",
    max_key_frames: int = 6,
    scheme: str = "default",
    show_metrics: bool = True,
) -> Drawing:
    """Reward and similarity over the steps, above key frames and the target.

    Key frames are the first, the last, and those where similarity changed most.
    Without `show_metrics` there are only they and the target.
    """
    check_frames(frames)
    tiles = [
        captioned(_tile(frames[i], scheme), _moment(i, frames[i]))
        for i in key_frames([f.similarity for f in frames], max_key_frames)
    ]
    if frames[-1].target is not None:
        target = read_cells(frames[-1].target)
        side = fit_side(target, KEY_FRAME, KEY_FRAME)
        tiles.append(captioned(grid_tile(target, side, OUTPUT, scheme), "target"))
    figures = [words(_result(frames)), beside(episode_charts(frames), GAP)]
    parts = [
        words(title, bold=True),
        *(figures if show_metrics else []),
        *(beside(row, GAP) for row in _rows(tiles)),
    ]
    return padded(stacked(parts, 10.0, title), GAP)


def key_frames(similarities: Sequence[float], most: int) -> list[int]:
    """First, last and those after the largest changes of similarity, in order."""
    if most < 2:
        raise ValueError(f"max_key_frames={most}: the first and the last are shown")
    last = len(similarities) - 1
    jumps = np.abs(np.diff(np.asarray(similarities, np.float64)))
    between = np.argsort(-jumps[:-1], kind="stable")[: most - 2] + 1
    return sorted({0, last, *(int(i) for i in between)})


def episode_charts(
    frames: Sequence[EpisodeFrame], size: tuple[float, float] = CHART
) -> list[Drawing]:
    """Reward of each step and similarity after it, each in a picture of this size."""
    steps = np.arange(len(frames))
    curves = {
        "reward": [float(frame.reward) for frame in frames],
        "similarity": [float(frame.similarity) for frame in frames],
    }
    return [
        Drawing(*size, _chart(name, steps, values, size), name)
        for name, values in curves.items()
    ]


def check_frames(frames: Sequence[EpisodeFrame]) -> None:
    """Refuse an episode without frames."""
    if not frames:
        raise ValueError("frames is empty: an episode has at least its first grid")


def _result(frames: Sequence[EpisodeFrame]) -> str:
    total = sum(float(frame.reward) for frame in frames)
    return (
        f"{len(frames) - 1} steps · total reward {total:+.3f} · "
        f"final similarity {float(frames[-1].similarity):.3f}"
    )


def _chart(
    name: str, steps: np.ndarray, values: Sequence[float], size: tuple[float, float]
) -> str:
    width, height = size
    series = {name: (steps, np.asarray(values))}
    return line_chart(series, x_label="step", width=width, height=height)


def _tile(frame: EpisodeFrame, scheme: str) -> Drawing:
    cells = read_cells(frame.grid)
    side = fit_side(cells, KEY_FRAME, KEY_FRAME)
    return grid_tile(cells, side, NEUTRAL, scheme, selection=frame.selection)


def _moment(index: int, frame: EpisodeFrame) -> str:
    if frame.operation is None:
        return "start" if index == 0 else f"{index}"
    return f"{index}: {get_operation_name(int(frame.operation))}"


def _rows(tiles: Sequence[Drawing]) -> list[list[Drawing]]:
    """Break the tiles into rows about as wide as the charts."""
    rows: list[list[Drawing]] = [[]]
    width = 0.0
    for tile in tiles:
        if rows[-1] and width + tile.width > 2 * CHART[0] + GAP:
            rows.append([])
            width = 0.0
        rows[-1].append(tile)
        width += tile.width + GAP
    return rows
