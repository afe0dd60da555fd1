"""Drawings hold what they were given: causes left of effects, curves kept clear."""

import re
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acbo.pictures import graph
from acbo.pictures.graph import save_graph
from jaxrig.report.images import parse_drawing, png_size

NAMES = ("A", "B & <b>", "Y")
PROBS = np.array([[0.0, 0.95, 0.15], [0.3, 0.0, 0.8], [0.0, 0.05, 0.0]])


def numbers(svg):
    return [float(p) for p in re.findall(r'data-edge="([0-9.]+)"', svg)]


def test_all_likely_edges_and_all_names_are_there():
    svg = graph.draw_graph(NAMES, PROBS, "Y")
    drawing = parse_drawing(svg)
    assert drawing.themed
    assert numbers(svg) == [0.15, 0.3, 0.8, 0.95]
    assert svg.count("data-node") == 3
    assert "B &amp; &lt;b&gt; to Y: 0.800" in svg
    assert "0.95" in re.findall(r">([0-9.]+)</text>", svg)
    assert "0.15" not in re.findall(r">([0-9.]+)</text>", svg)  # faint: title alone


def test_likelier_edges_are_wider():
    widths = re.findall(r'stroke-width="([0-9.]+)"/>', graph.draw_graph(NAMES, PROBS))
    widths = [float(w) for w in widths]
    assert widths == sorted(widths)


def test_everything_is_inside_the_drawing():
    d = 6
    probs = np.triu(np.full((d, d), 0.7), 1)
    svg = graph.draw_graph([f"long name {i}" for i in range(d)], probs, "long name 5")
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
    svg = graph.draw_graph(NAMES, PROBS, truth=truth)
    assert svg.count("data-missed") == 1
    assert svg.count('stroke-dasharray="7 5"') == 3


@pytest.mark.parametrize(
    ("names", "probs", "target", "message"),
    [
        (("A", "B"), PROBS, None, "2 names"),
        (NAMES, PROBS + 0.2, None, "within 0 and 1"),
        (NAMES, PROBS, "Q", "target 'Q' is not known"),
    ],
)
def test_what_is_no_graph_is_refused(names, probs, target, message):
    with pytest.raises(ValueError, match=message):
        graph.draw_graph(names, probs, target)


def probabilities(seed, d=5):
    probs = np.random.default_rng(seed).random((d, d))
    np.fill_diagonal(probs, 0.0)
    return probs


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000))
def test_the_likely_graph_is_acyclic_and_as_full_as_can_be(seed):
    probs = probabilities(seed)
    dag = graph.likely_dag(probs)
    power = np.eye(5, dtype=int)
    for _ in range(5):
        power = power @ dag
    assert not power.any()
    assert (probs[dag] > 0.5).all()
    top = np.unravel_index(np.argmax(probs), probs.shape)
    assert dag[top]


def test_a_cycle_loses_its_weakest_edge():
    probs = np.zeros((3, 3))
    probs[0, 1], probs[1, 2], probs[2, 0] = 0.9, 0.8, 0.6
    assert graph.likely_dag(probs).tolist() == (probs > 0.7).tolist()


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000))
def test_causes_are_left_of_effects_and_no_two_share_a_place(seed):
    probs = probabilities(seed, 7)
    layout, dag = graph.lay_out(probs), graph.likely_dag(probs)
    for i, j in zip(*np.nonzero(dag), strict=True):
        assert layout.column[i] < layout.column[j]
    assert len(set(zip(layout.column, layout.height, strict=True))) == 7


def test_depth_is_the_longest_way():
    dag = np.zeros((4, 4), bool)
    dag[0, 1] = dag[1, 2] = dag[0, 2] = True
    assert graph.causal_depths(dag).tolist() == [0, 1, 2, 0]


def test_a_curve_swings_around_what_is_in_its_way():
    ends = np.array([0.0, 0.0]), np.array([200.0, 0.0])
    room = np.array([30.0, 20.0])
    free = graph.choose_arc(*ends, np.zeros((0, 2)), room)
    assert free.at(np.array([0.5]))[0] == pytest.approx([100.0, 0.0])
    around = graph.choose_arc(*ends, np.array([[100.0, 0.0]]), room)
    assert abs(around.at(np.array([0.5]))[0, 1]) > 20


def test_two_ways_between_two_places_lie_on_two_sides():
    a, b, room = np.array([0.0, 0.0]), np.array([100.0, 0.0]), np.array([30.0, 20.0])
    nothing = np.zeros((0, 2))
    forth = graph.choose_arc(a, b, nothing, room, straight=False).at(np.array([0.5]))[
        0, 1
    ]
    back = graph.choose_arc(b, a, nothing, room, straight=False).at(np.array([0.5]))[
        0, 1
    ]
    assert forth * back < 0


def test_a_part_of_a_curve_lies_on_it():
    arc = graph.bend_line(np.array([0.0, 0.0]), np.array([100.0, 50.0]), 20.0)
    part = arc.cut(0.2, 0.7)
    shares = np.linspace(0, 1, 9)
    np.testing.assert_allclose(part.at(shares), arc.at(0.2 + 0.5 * shares))
    assert isinstance(part, graph.Arc)


def test_faint_edges_come_first_and_fainter_ones_not():
    probs = np.array([[0.9, 0.3, 0.05], [0.8, 0.9, 0.0], [0.0, 0.0, 0.9]])
    assert list(graph.shown_edges(probs, 0.1)) == [(0, 1), (1, 0)]


CERTAIN = np.array([[0.0, 0.9], [0.0, 0.0]])


def test_svg(tmp_path):
    path = save_graph(tmp_path / "deep" / "g.svg", ("X", "Y"), CERTAIN, "Y")
    assert path.read_text().startswith("<svg")


def test_png(tmp_path):
    pytest.importorskip("matplotlib")
    path = save_graph(tmp_path / "deep" / "g.png", ("X $", "Y"), CERTAIN, "Y")
    width, height = png_size(path.read_bytes())
    assert width > height > 100


def test_without_matplotlib_the_way_out_is_said(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match="PNG needs matplotlib"):
        save_graph(tmp_path / "g.png", ("X", "Y"), CERTAIN)
    assert list(tmp_path.iterdir()) == []


def test_other_formats_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"use \.svg or \.png"):
        save_graph(tmp_path / "g.pdf", ("X", "Y"), CERTAIN)
