"""Drawings of what is known: graphs, posteriors, calibration and regret."""

from acbo.pictures.charts import (
    draw_calibration,
    draw_parent_probs,
    draw_parent_sets,
    draw_regret,
    draw_shares,
)
from acbo.pictures.graph import draw_graph

__all__ = [
    "draw_calibration",
    "draw_graph",
    "draw_parent_probs",
    "draw_parent_sets",
    "draw_regret",
    "draw_shares",
]
