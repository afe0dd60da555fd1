"""One step of an agent as SVG: before and after, what was selected, what changed."""

from typing import Any, SupportsFloat, SupportsInt

import numpy as np
from numpy.typing import ArrayLike

from jaxarc.ops.names import get_operation_display_text
from jaxarc.utils.visualization.cells import (
    GridLike,
    detect_changed_cells,
    full_grid,
    read_cells,
)
from jaxarc.utils.visualization.drawing import (
    UNIT,
    Drawing,
    arrow,
    beside,
    padded,
    stacked,
    words,
)
from jaxarc.utils.visualization.svg import (
    INPUT,
    OUTPUT,
    captioned,
    fit_side,
    grid_tile,
    numbered,
)

GAP = 16.0


def draw_rl_step_svg(
    before_grid: GridLike,
    after_grid: GridLike,
    action: Any = None,
    reward: SupportsFloat | None = None,
    similarity: SupportsFloat | None = None,
    step_num: SupportsInt | None = None,
    *,
    before_mask: ArrayLike | None = None,
    after_mask: ArrayLike | None = None,
    selection: ArrayLike | None = None,
    operation: SupportsInt | None = None,
    changed_cells: ArrayLike | None = None,
    previous_similarity: SupportsFloat | None = None,
    label: str = "",
    scheme: str = "default",
    show_coordinates: bool = False,
    highlight_changes: bool = True,
    show_metrics: bool = True,
    max_width: float = 10.0,
    max_height: float = 10.0,
) -> Drawing:
    """The grid before and after a step, with what the agent did and got.

    A structured action brings its own operation and selection; without one give them
    as `operation` and `selection`, a mask over the uncropped grid. The selection is
    outlined on the left, cells that changed are ringed on the right; reward,
    similarity and the number of changes stand below. Sizes are of one grid, in units
    of 40 pixels.
    """
    before, after = (
        full_grid(before_grid, before_mask),
        full_grid(after_grid, after_mask),
    )
    operation, selection = read_action(action, operation, selection, before[0].shape)
    if changed_cells is None:
        changed_cells = detect_changed_cells(before[0], after[0])
    left, right = read_cells(*before), read_cells(*after)
    area = max_width * UNIT, max_height * UNIT
    side = min(fit_side(left, *area), fit_side(right, *area), UNIT)
    ringed = changed_cells if highlight_changes else None
    one = grid_tile(left, side, INPUT, scheme, selection=selection)
    other = grid_tile(right, side, OUTPUT, scheme, changed=ringed)
    if show_coordinates:
        one, other = numbered(one, left, side), numbered(other, right, side)
    pictures = [
        captioned(one, f"Before ({left.size})"),
        arrow(),
        captioned(other, f"After ({right.size})"),
    ]
    title = _heading(label, step_num, operation)
    lines = [words(title, bold=True)] if title else []
    lines.append(beside(pictures, GAP))
    if show_metrics:
        count = int(np.asarray(changed_cells).sum())
        lines.append(words(_results(reward, previous_similarity, similarity, count)))
    return padded(stacked(lines, 6.0, title or "Step"), GAP)


draw_rl_step_svg_enhanced = draw_rl_step_svg


def read_action(
    action: Any,
    operation: SupportsInt | None,
    selection: ArrayLike | None,
    shape: tuple[int, ...],
) -> tuple[SupportsInt | None, ArrayLike | None]:
    """Operation and selected cells of a structured action or a dictionary of both."""
    if isinstance(action, dict):
        return action["operation"], action["selection"]
    if action is None:
        return operation, selection
    return action.operation, action.to_selection_mask(shape)


def describe_step(
    operation: SupportsInt | None, reward: SupportsFloat, similarity: SupportsFloat
) -> str:
    """One step in words: operation, reward, similarity."""
    name = "Start" if operation is None else get_operation_display_text(int(operation))
    return f"{name}, reward {float(reward):+.3f}, similarity {float(similarity):.3f}"


def _heading(
    label: str, step: SupportsInt | None, operation: SupportsInt | None
) -> str:
    number = "" if step is None else f"Step {int(step)}"
    name = "" if operation is None else get_operation_display_text(int(operation))
    return " · ".join(filter(None, [label, number, name]))


def _results(
    reward: SupportsFloat | None,
    previous: SupportsFloat | None,
    similarity: SupportsFloat | None,
    count: int,
) -> str:
    parts = [] if reward is None else [f"reward {float(reward):+.3f}"]
    if similarity is not None:
        earlier = "" if previous is None else f"{float(previous):.3f} → "
        parts.append(f"similarity {earlier}{float(similarity):.3f}")
    parts.append(f"{count} cell{'' if count == 1 else 's'} changed")
    return " · ".join(parts)
