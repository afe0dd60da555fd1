"""Oracle: labels and scores of models written down by hand."""

import jax.numpy as jnp
import numpy as np

from acbo.acquisition import AcquisitionState
from acbo.environment import Action
from acbo.policy.environment import Episode
from acbo.training.examples import UNKNOWN
from acbo.training.experience import episode_scores, label_history, parent_scores
from causal_linear import draw_history, edges, linear_scm

TARGET = 3


def episode(scm, best=0.0, probs=(0.0,) * 4):
    """An episode whose target has a deviation of 2."""
    number = lambda x: jnp.asarray(x, jnp.float32)
    summary = AcquisitionState(number(best), number(0), number(probs), jnp.zeros(4))
    room = draw_history(scm), jnp.zeros((2, 4)), summary, number(2)
    return Episode(scm, *room, jnp.asarray(0))


def test_the_true_set_is_the_label():
    scm = linear_scm(edges(4, e03=1.0, e23=2.0, e12=1.0), TARGET)
    found = label_history(episode(scm), 2)
    probs, held = np.asarray(found.expert_probs), np.asarray(found.example.membership)
    assert probs[int(found.true_index)] == probs.sum() == 1
    assert held[int(found.true_index)].nonzero()[0].tolist() == [0, 2]


def test_a_set_too_large_is_shared_out():
    scm = linear_scm(edges(4, e03=1.0, e13=1.0, e23=2.0), TARGET)
    found = label_history(episode(scm), 2)
    probs, held = np.asarray(found.expert_probs), np.asarray(found.example.membership)
    assert int(found.true_index) == UNKNOWN
    shared = [row.nonzero()[0].tolist() for row in held[probs > 0]]
    assert shared == [[0, 1], [0, 2], [1, 2]]
    np.testing.assert_allclose(probs[probs > 0], 1 / 3, rtol=1e-6)


def test_scores_count_the_other_variables():
    scm = linear_scm(edges(4, e03=1.0, e23=2.0), TARGET)
    f1, accuracy = parent_scores(jnp.asarray([0.9, 0.8, 0.1, 0.9]), scm)
    np.testing.assert_allclose([f1, accuracy], [2 / 4, 1 / 3], rtol=1e-6)
    f1, accuracy = parent_scores(jnp.zeros(4), linear_scm(edges(4), TARGET))
    assert (float(f1), float(accuracy)) == (0, 1)


def test_scores_are_of_start_end_and_actions():
    scm = linear_scm(edges(4, e03=1.0, e23=2.0), TARGET)
    start, end = episode(scm, 5.0), episode(scm, 2.0, (0.9, 0.2, 0.7, 0.0))
    done = Action(jnp.asarray([0, 1, 2, 2]), jnp.zeros(4))
    found = episode_scores(start, end, done)
    assert [float(x) for x in vars(found).values()] == [0.75, 1.0, 1.0, 1.5]
