"""Causes stand left of effects, cycles are cut at their weakest, curves keep clear."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acbo.pictures.layout import (
    Arc,
    causal_depths,
    choose_arc,
    lay_out,
    likely_dag,
    shown_edges,
    swing_out,
)


def probabilities(seed, d=5):
    probs = np.random.default_rng(seed).random((d, d))
    np.fill_diagonal(probs, 0.0)
    return probs


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000))
def test_the_likely_graph_is_acyclic_and_as_full_as_can_be(seed):
    probs = probabilities(seed)
    dag = likely_dag(probs)
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
    assert likely_dag(probs).tolist() == (probs > 0.7).tolist()


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000))
def test_causes_are_left_of_effects_and_no_two_share_a_place(seed):
    probs = probabilities(seed, 7)
    layout, dag = lay_out(probs), likely_dag(probs)
    for i, j in zip(*np.nonzero(dag), strict=True):
        assert layout.column[i] < layout.column[j]
    assert len(set(zip(layout.column, layout.height, strict=True))) == 7


def test_depth_is_the_longest_way():
    dag = np.zeros((4, 4), bool)
    dag[0, 1] = dag[1, 2] = dag[0, 2] = True
    assert causal_depths(dag).tolist() == [0, 1, 2, 0]


def test_a_curve_swings_around_what_is_in_its_way():
    ends = np.array([0.0, 0.0]), np.array([200.0, 0.0])
    room = np.array([30.0, 20.0])
    free = choose_arc(*ends, np.zeros((0, 2)), room)
    assert free.at(np.array([0.5]))[0] == pytest.approx([100.0, 0.0])
    around = choose_arc(*ends, np.array([[100.0, 0.0]]), room)
    assert abs(around.at(np.array([0.5]))[0, 1]) > 20


def test_two_ways_between_two_places_lie_on_two_sides():
    a, b, room = np.array([0.0, 0.0]), np.array([100.0, 0.0]), np.array([30.0, 20.0])
    nothing = np.zeros((0, 2))
    forth = choose_arc(a, b, nothing, room, straight=False).at(np.array([0.5]))[0, 1]
    back = choose_arc(b, a, nothing, room, straight=False).at(np.array([0.5]))[0, 1]
    assert forth * back < 0


def test_a_part_of_a_curve_lies_on_it():
    arc = swing_out(np.array([0.0, 0.0]), np.array([100.0, 50.0]), 20.0)
    part = arc.cut(0.2, 0.7)
    shares = np.linspace(0, 1, 9)
    np.testing.assert_allclose(part.at(shares), arc.at(0.2 + 0.5 * shares))
    assert isinstance(part, Arc)


def test_faint_edges_come_first_and_fainter_ones_not():
    probs = np.array([[0.9, 0.3, 0.05], [0.8, 0.9, 0.0], [0.0, 0.0, 0.9]])
    assert list(shown_edges(probs, 0.1)) == [(0, 1), (1, 0)]
