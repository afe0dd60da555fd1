"""Drawings of what is known: graphs, posteriors, calibration and regret."""

from acbo.pictures.calibration import draw_calibration
from acbo.pictures.graph import draw_graph
from acbo.pictures.posterior import draw_parent_probs, draw_parent_sets
from acbo.pictures.regret import draw_regret, draw_shares

__all__ = [
    "draw_calibration",
    "draw_graph",
    "draw_parent_probs",
    "draw_parent_sets",
    "draw_regret",
    "draw_shares",
]
