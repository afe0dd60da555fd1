"""Bars are the probabilities, the likeliest first."""

import re

from acbo.pictures.posterior import draw_parent_probs, draw_parent_sets
from acbo.posterior import create_parent_set_posterior

POSTERIOR = create_parent_set_posterior(
    "Y", [[], ["X"], ["X", "Z"]], [0.125, 0.625, 0.25]
)


def bars(svg):
    return re.findall(r'data-bar="([^"]*)"', svg)


def test_sets_by_name():
    svg = draw_parent_sets(POSTERIOR)
    assert bars(svg) == ["X", "X, Z", "none"]
    assert ">0.625<" in svg
    assert bars(draw_parent_sets(POSTERIOR, most=1)) == ["X"]


def test_single_causes():
    svg = draw_parent_probs(POSTERIOR)
    assert bars(svg) == ["X", "Z"]
    assert ">0.875<" in svg
