"""The policy at its least: legal moves, densities that sum to one, entropy by hand."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import trapezoid

from acbo.policy.features import CANDIDATES, FEATURES, LEAST_GAIN, PolicyObservation
from acbo.policy.model import PolicyAction, PolicyConfig, PolicyNetwork, Scores, place
from causal_parameters import fill

D, TARGET, DRAWS = 4, 2, 400
LOW = np.array([-2.0, -0.1, 0.0, 0.3], np.float32)
HIGH = np.array([3.0, 0.3, 1.0, 0.7], np.float32)
ALLOWED = np.array([True, True, False, False])
CELLS = D * CANDIDATES


def make_outlook(seed=0) -> PolicyObservation:
    random = np.random.default_rng(seed)
    draw = lambda *shape: jnp.asarray(random.normal(size=shape), jnp.float32)
    return PolicyObservation(
        draw(D, CANDIDATES, FEATURES),
        draw(D, CANDIDATES),
        jnp.abs(draw(D, CANDIDATES)),
        jnp.abs(draw(D, CANDIDATES)),
        jnp.asarray(LOW),
        jnp.asarray(HIGH),
        jnp.asarray(ALLOWED),
    )


OUTLOOK = make_outlook()


@pytest.fixture(scope="module")
def network():
    return fill(PolicyNetwork, PolicyConfig(dim=8), jax.random.key(0), scale=0.4)


@pytest.fixture(scope="module")
def score(network):
    return jax.jit(lambda observation: network(observation))


@pytest.fixture(scope="module")
def scores(score) -> Scores:
    return score(OUTLOOK)


@pytest.fixture(scope="module")
def choices(network):
    draw = jax.vmap(network.sample, (0, None))
    return jax.jit(draw)(jax.random.split(jax.random.key(1), DRAWS), OUTLOOK)


@pytest.fixture(scope="module")
def evaluate(network):
    return jax.jit(jax.vmap(network.evaluate, (None, 0)))


def moves(cell, offset) -> PolicyAction:
    """Moves of these cells and offsets; evaluation reads nothing else."""
    cell = jnp.asarray(cell)
    return PolicyAction(
        cell, jnp.asarray(offset, jnp.float32), cell, jnp.zeros(cell.shape)
    )


def test_what_is_not_allowed_has_no_chance(scores, choices):
    np.testing.assert_array_equal(
        np.isneginf(scores.logits), np.broadcast_to(~ALLOWED[:, None], (D, CANDIDATES))
    )
    assert set(choices.action.variable.tolist()) == {0, 1}
    chance = np.exp(scores.variable_logits)
    np.testing.assert_array_equal(chance[~ALLOWED], 0.0)
    assert chance.sum() == pytest.approx(1, abs=1e-5)
    share = np.mean(np.asarray(choices.action.variable) == 0)
    assert share == pytest.approx(chance[0], abs=4 * 0.5 / np.sqrt(DRAWS))
    variable, value = (
        np.asarray(getattr(choices.action, n)) for n in ("variable", "value")
    )
    assert ((value >= LOW[variable]) & (value <= HIGH[variable])).all()
    assert len(np.unique(value)) > DRAWS / 4


def test_values_beside_a_candidate():
    cell = CANDIDATES + 3
    move = place(OUTLOOK, jnp.asarray(cell), jnp.asarray(0.25))
    assert int(move.variable) == 1
    expected = LOW[1] + (3.25 / (CANDIDATES - 1)) * (HIGH[1] - LOW[1])
    assert float(move.value) == pytest.approx(expected, rel=1e-5)
    assert move.action.value is move.value


def test_both_ends_can_be_reached():
    run = jax.jit(jax.vmap(place, (None, 0, 0)))
    first = np.arange(D) * CANDIDATES
    cells = np.r_[first, first + CANDIDATES - 1]
    found = run(OUTLOOK, cells, np.where(cells % CANDIDATES, 0.4, -0.4).astype("f4"))
    np.testing.assert_array_equal(found.value[:D], LOW)
    np.testing.assert_array_equal(found.value[D:], HIGH)


def test_chances_of_moves_sum_to_one(scores, evaluate):
    """Every allowed cell, the density beside it integrated by trapezia."""
    width = np.exp(np.asarray(scores.log_width)).reshape(-1)
    center = np.asarray(scores.center).reshape(-1)
    cells = np.flatnonzero(np.isfinite(np.asarray(scores.logits).reshape(-1)))
    steps = np.linspace(-6, 6, 41)
    offsets = center[cells, None] + width[cells, None] * steps
    grid = moves(np.repeat(cells, 41), offsets.reshape(-1))
    log_prob = np.asarray(evaluate(OUTLOOK, grid).log_prob).reshape(len(cells), 41)
    mass = trapezoid(np.exp(log_prob), offsets, axis=1)
    chance = np.exp(np.asarray(jax.nn.log_softmax(scores.logits.reshape(-1))))
    np.testing.assert_allclose(mass, chance[cells], rtol=1e-3)
    assert mass.sum() == pytest.approx(1, abs=1e-3)


def test_a_drawn_move_is_as_likely_as_its_evaluation(choices, evaluate):
    again = evaluate(OUTLOOK, choices.action)
    np.testing.assert_allclose(again.log_prob, choices.log_prob, rtol=1e-4, atol=1e-4)


def test_entropy_by_hand(scores, choices, evaluate):
    logits = np.asarray(scores.logits, float).reshape(-1)
    probs = np.exp(logits - logits.max())
    probs /= probs.sum()
    there = probs > 0
    spread = np.asarray(scores.log_width, float).reshape(-1) + 0.5 * np.log(
        2 * np.pi * np.e
    )
    expected = (probs[there] * (spread[there] - np.log(probs[there]))).sum()
    found = evaluate(OUTLOOK, choices.action).entropy
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_the_best_move_is_the_likeliest(network, scores):
    move = jax.jit(lambda observation: network.best(observation))(OUTLOOK)
    cell = int(np.argmax(np.asarray(scores.logits)))
    assert int(move.cell) == cell
    assert float(move.offset) == pytest.approx(
        float(scores.center.reshape(-1)[cell]), abs=1e-6
    )


def test_a_promised_gain_raises_the_score(network, score):
    """e times the gain raises the logit of its cell by softplus(trust) alone."""
    gain = OUTLOOK.gain.at[0, 3].set(1.0 - LEAST_GAIN)
    plain = score(eqx.tree_at(lambda o: o.gain, OUTLOOK, gain))
    more = gain.at[0, 3].set(float(np.e) - LEAST_GAIN)
    lower = score(eqx.tree_at(lambda o: o.gain, OUTLOOK, more))
    change = np.zeros((D, CANDIDATES))
    change[0, 3] = np.log1p(np.exp(float(network.trust)))
    allowed = np.flatnonzero(ALLOWED)
    difference = np.asarray(lower.logits)[allowed] - np.asarray(plain.logits)[allowed]
    np.testing.assert_allclose(difference, change[allowed], atol=1e-5)


def test_order_of_variables_changes_nothing(score, scores):
    order = np.array([3, 1, 0, 2])
    moved = jax.tree.map(lambda leaf: leaf[order], OUTLOOK)
    found = score(moved)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(scores), strict=True):
        np.testing.assert_allclose(a, np.asarray(b)[order], atol=1e-5)


def test_gradients_are_finite(network, choices):
    def loss(network, move):
        told = network.evaluate(OUTLOOK, move)
        return told.log_prob + told.entropy

    gradient = jax.jit(jax.grad(loss))(
        network, jax.tree.map(lambda x: x[0], choices.action)
    )
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))
    assert float(gradient.trust) != 0


def test_a_policy_needs_a_width():
    with pytest.raises(ValueError, match="dim is 0: give a whole number from 1"):
        PolicyConfig(dim=0)
