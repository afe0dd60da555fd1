"""Draw steps and episodes as SVG, and episodes to play on a page."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, SupportsFloat, SupportsInt

import numpy as np
from jaxtyping import Bool, Int
from numpy.typing import ArrayLike

from jaxarc.draw import svg
from jaxarc.draw.cells import GridLike, detect_changed_cells, full_grid, read_cells
from jaxarc.ops.operations import get_operation_display_text, get_operation_name
from jaxrig.report import Beside, Figure, Player, Section, line_chart

GAP = 16.0
CHART = (440.0, 220.0)
KEY_FRAME = 104.0  # pixels that a key frame may be wide and high
STAGE = 400.0  # pixels that the largest grid of an episode is wide or high
LARGEST_CELL = 100.0
PACE = 2.0  # frames per second
STAGE_CHART = (356.0, 200.0)  # a page on a telephone shows it unscaled


def draw_step(
    before_grid: GridLike,
    after_grid: GridLike,
    action: Any = None,
    reward: SupportsFloat | None = None,
    similarity: SupportsFloat | None = None,
    step_num: SupportsInt | None = None,
    *,
    previous_similarity: SupportsFloat | None = None,
    scheme: str = "default",
    show_coordinates: bool = False,
    highlight_changes: bool = True,
    show_metrics: bool = True,
) -> svg.Drawing:
    """Draw the grid before and after a step, and what the agent did and got.

    The action is structured, or a dictionary of `operation` and `selection`, a mask
    over the uncropped grid. The selection is outlined on the left, cells that changed
    are ringed on the right; reward, similarity and the number of changes stand below.
    """
    operation, selection = read_action(action, full_grid(before_grid)[0].shape)
    changed = detect_changed_cells(before_grid, after_grid)
    left, right = read_cells(before_grid), read_cells(after_grid)
    side = min(
        svg.fit_side(left, STAGE, STAGE), svg.fit_side(right, STAGE, STAGE), svg.UNIT
    )
    one = svg.grid_tile(left, side, svg.INPUT, scheme, selection=selection)
    ringed = changed if highlight_changes else None
    other = svg.grid_tile(right, side, svg.OUTPUT, scheme, changed=ringed)
    if show_coordinates:
        one, other = svg.numbered(one, left, side), svg.numbered(other, right, side)
    pictures = [
        svg.captioned(one, f"Before ({left.size})"),
        svg.arrow(),
        svg.captioned(other, f"After ({right.size})"),
    ]
    number = "" if step_num is None else f"Step {int(step_num)}"
    name = "" if operation is None else get_operation_display_text(int(operation))
    title = " · ".join(filter(None, [number, name]))
    lines = [svg.words(title, bold=True)] if title else []
    lines.append(svg.beside(pictures, GAP))
    if show_metrics:
        results = [] if reward is None else [f"reward {float(reward):+z.3f}"]
        if similarity is not None:
            before = previous_similarity
            earlier = "" if before is None else f"{float(before):.3f} → "
            results.append(f"similarity {earlier}{float(similarity):.3f}")
        count = int(changed.sum())
        results.append(f"{count} cell{'' if count == 1 else 's'} changed")
        lines.append(svg.words(" · ".join(results)))
    return svg.padded(svg.stacked(lines, 6.0, title or "Step"), GAP)


def read_action(
    action: Any, shape: tuple[int, ...]
) -> tuple[SupportsInt | None, ArrayLike | None]:
    """Return operation and selected cells of an action or a dictionary of both."""
    if action is None:
        return None, None
    if isinstance(action, dict):
        return action["operation"], action["selection"]
    return action.operation, action.to_selection_mask(shape)


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

    @classmethod
    def of_grids(
        cls,
        grid: GridLike,
        target: GridLike,
        selection: ArrayLike | None,
        operation: int | None,
        reward: float,
        similarity: float,
    ) -> "EpisodeFrame":
        """Crop padded grids; a hidden target, which is all padding, is left out."""
        cells, wanted = read_cells(grid), read_cells(target)
        selected = None if selection is None else cells.crop(selection)
        shown = wanted.values if wanted.height else None
        return cls(cells.values, selected, operation, reward, similarity, shown)

    def __str__(self) -> str:
        """Describe the step: operation, reward, similarity."""
        step = "Start"
        if self.operation is not None:
            step = get_operation_display_text(int(self.operation))
        return f"{step}, reward {self.reward:+z.3f}, similarity {self.similarity:.3f}"


def draw_episode(
    frames: Sequence[EpisodeFrame],
    title: str = "Episode",
    max_key_frames: int = 6,
    scheme: str = "default",
    show_metrics: bool = True,
) -> svg.Drawing:
    """Draw reward and similarity over the steps, above key frames and the target.

    Key frames are the first, the last, and those where similarity changed most.
    Without `show_metrics` there are only they and the target.
    """
    charts = episode_charts(frames)

    def tile(caption: str, grid: GridLike, border: str, selection: Any) -> svg.Drawing:
        cells = read_cells(grid)
        side = svg.fit_side(cells, KEY_FRAME, KEY_FRAME)
        picture = svg.grid_tile(cells, side, border, scheme, selection=selection)
        return svg.captioned(picture, caption)

    tiles = []
    for index in key_frames([f.similarity for f in frames], max_key_frames):
        frame, moment = frames[index], f"{index}" if index else "start"
        if frame.operation is not None:
            moment = f"{index}: {get_operation_name(int(frame.operation))}"
        tiles.append(tile(moment, frame.grid, svg.NEUTRAL, frame.selection))
    if frames[-1].target is not None:
        tiles.append(tile("target", frames[-1].target, svg.OUTPUT, None))
    total = sum(float(frame.reward) for frame in frames)
    result = (
        f"{len(frames) - 1} steps · total reward {total:+z.3f} · "
        f"final similarity {float(frames[-1].similarity):.3f}"
    )
    figures = [svg.words(result), svg.beside(charts, GAP)]
    parts = [
        svg.words(title, bold=True),
        *(figures if show_metrics else []),
        *(svg.beside(row, GAP) for row in _rows(tiles)),
    ]
    return svg.padded(svg.stacked(parts, 10.0, title), GAP)


def key_frames(similarities: Sequence[float], most: int) -> list[int]:
    """Return the first, the last and those after the largest changes, in order."""
    if most < 2:
        raise ValueError(f"max_key_frames={most}: the first and the last are shown")
    last = len(similarities) - 1
    jumps = np.abs(np.diff(np.asarray(similarities, np.float64)))
    between = np.argsort(-jumps[:-1], kind="stable")[: most - 2] + 1
    return sorted({0, last, *(int(i) for i in between)})


def episode_charts(
    frames: Sequence[EpisodeFrame], size: tuple[float, float] = CHART
) -> list[svg.Drawing]:
    """Draw the reward of each step and the similarity after it, each as a chart."""
    if not frames:
        raise ValueError("frames is empty: an episode has at least its first grid")

    def chart(name: str) -> svg.Drawing:
        values = np.asarray([float(getattr(frame, name)) for frame in frames])
        curves, (width, height) = {name: (np.arange(len(frames)), values)}, size
        lines = line_chart(curves, x_label="step", width=width, height=height)
        return svg.Drawing(width, height, lines, name)

    return [chart("reward"), chart("similarity")]


def _rows(tiles: Sequence[svg.Drawing]) -> list[list[svg.Drawing]]:
    """Break the tiles into rows about as wide as the charts."""
    rows: list[list[svg.Drawing]] = [[]]
    width = 0.0
    for tile in tiles:
        if rows[-1] and width + tile.width > 2 * CHART[0] + GAP:
            rows.append([])
            width = 0.0
        rows[-1].append(tile)
        width += tile.width + GAP
    return rows


def episode_section(
    title: str,
    frames: Sequence[EpisodeFrame],
    scheme: str = "arc",
    show_metrics: bool = True,
) -> Section:
    """Return a section that plays the episode, the target beside it if known.

    Without `show_metrics` there are no curves.
    """
    player, curves = episode_figures(title, frames, scheme)
    return Section(title, Beside(player, curves) if show_metrics else player)


def episode_figures(
    title: str, frames: Sequence[EpisodeFrame], scheme: str = "arc"
) -> tuple[Player, Figure]:
    """Return a player of the episode, and the curves of its rewards and similarity."""
    charts = episode_charts(frames, STAGE_CHART)
    largest = np.max([f.grid.shape for f in frames], axis=0)
    shown = [f.target.shape for f in frames if f.target is not None]
    side = min(STAGE / max(float(np.max([largest, *shown])), 1.0), LARGEST_CELL)
    width, height = (float(cells) * side + 2 * svg.FRAME for cells in largest[::-1])
    pictures = [
        _frame_picture(frame, side, (width, height), scheme).as_svg()
        for frame in frames
    ]
    captions = [f"{index}: {frame}" for index, frame in enumerate(frames)]
    player = Player(pictures, captions, PACE, alt=title, first=-1, autoplay=True)
    curves = Figure(
        svg.stacked(charts, GAP).as_svg(),
        caption="Reward of each step and similarity to the target after it.",
        alt="Reward and similarity over the episode",
    )
    return player, curves


def _frame_picture(
    frame: EpisodeFrame, side: float, area: tuple[float, float], scheme: str
) -> svg.Drawing:
    """Draw the grid in an area that is the same for all frames, and the target."""
    cells = read_cells(frame.grid)
    tile = svg.grid_tile(cells, side, svg.INPUT, scheme, selection=frame.selection)
    shown = [svg.captioned(svg.centered(tile, *area), f"Working grid ({cells.size})")]
    if frame.target is not None:
        target = read_cells(frame.target)
        tile = svg.centered(
            svg.grid_tile(target, side, svg.OUTPUT, scheme), 0.0, area[1]
        )
        shown.append(svg.captioned(tile, f"Target ({target.size})"))
    return svg.beside(shown, GAP, "Working grid and target")
