"""The drawing holds what it was given: nodes, edges by probability, truth."""

import re

import numpy as np
import pytest

from acbo.pictures.graph import draw_graph
from jaxrig.report.vector import parse_drawing

NAMES = ("A", "B & <b>", "Y")
PROBS = np.array([[0.0, 0.95, 0.15], [0.3, 0.0, 0.8], [0.0, 0.05, 0.0]])


def numbers(svg):
    return [float(p) for p in re.findall(r'data-edge="([0-9.]+)"', svg)]


def test_all_likely_edges_and_all_names_are_there():
    svg = draw_graph(NAMES, PROBS, "Y", title="Three")
    drawing = parse_drawing(svg)
    assert drawing.themed
    assert numbers(svg) == [0.15, 0.3, 0.8, 0.95]
    assert svg.count("data-node") == 3
    assert "B &amp; &lt;b&gt; to Y: 0.800" in svg
    assert "0.95" in re.findall(r">([0-9.]+)</text>", svg)
    assert "0.15" not in re.findall(r">([0-9.]+)</text>", svg)  # faint: title alone


def test_likelier_edges_are_wider():
    widths = re.findall(r'stroke-width="([0-9.]+)"/>', draw_graph(NAMES, PROBS))
    widths = [float(w) for w in widths]
    assert widths == sorted(widths)


def test_everything_is_inside_the_drawing():
    d = 6
    probs = np.triu(np.full((d, d), 0.7), 1)
    svg = draw_graph([f"long name {i}" for i in range(d)], probs, "long name 5")
    width, height = parse_drawing(svg).size()
    found = re.search(r"translate\(([-0-9.]+) ([-0-9.]+)\)", svg)
    assert found is not None
    dx, dy = map(float, found.groups())
    for x, y in re.findall(r"<text x=\"([-0-9.]+)\" y=\"([-0-9.]+)\"", svg):
        assert 0 <= float(x) + dx <= width
        assert 0 <= float(y) + dy <= height


def test_truth_marks_wrong_and_missed_edges():
    truth = np.zeros((3, 3), bool)
    truth[0, 1] = truth[2, 1] = True
    svg = draw_graph(NAMES, PROBS, truth=truth)
    assert svg.count("data-missed") == 1
    assert svg.count('stroke-dasharray="7 5"') == 3


@pytest.mark.parametrize(
    ("names", "probs", "target", "message"),
    [
        (("A", "B"), PROBS, None, "2 names"),
        (NAMES, PROBS + 0.2, None, "within 0 and 1"),
        (NAMES, PROBS, "Q", "target 'Q' is not one of"),
    ],
)
def test_what_is_no_graph_is_refused(names, probs, target, message):
    with pytest.raises(ValueError, match=message):
        draw_graph(names, probs, target)
