"""Episodes with a proposer that tells what it was shown."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo import environment
from acbo.scm import set_variables
from causal_linear import edges, linear_scm

D, STEPS, START, CAPACITY = 4, 3, 5, 7
WEIGHT = edges(D, e01=0.8, e12=-1.5, e23=2.0)
SCM = linear_scm(WEIGHT, 2, low=-0.5, high=1.5)
KEY = jax.random.key(1)
TURNS = [0, 1, 3]


class InTurn(eqx.Module):
    """Sets the variables in turn, to a value made from all that it is shown."""

    def propose(self, key, history, spec, truth):
        turn = history.count % 3
        value = history.values.sum() * spec.sign + jax.random.uniform(key)
        value = jnp.clip(value, spec.low.max(), spec.high.min())
        return environment.Action(jnp.asarray(TURNS)[turn], value)


@pytest.fixture(scope="module")
def begin():
    return jax.jit(lambda key: environment.first_history(key, SCM, 40, 60, 110))


@pytest.fixture(scope="module")
def episode():
    def play(key, direction):
        first, go = jax.random.split(key)
        history = environment.first_history(first, SCM, 3, 2, CAPACITY)
        return history, environment.run_episode(
            go, SCM, InTurn(), history, STEPS, direction
        )

    return jax.jit(play, static_argnums=1)


def test_what_may_be_known_of_a_model():
    unbounded = jnp.asarray([-0.5, -0.5, -jnp.inf, -0.5])
    scm = eqx.tree_at(lambda m: m.low, SCM, unbounded)
    known = environment.problem_spec(scm, "maximize")
    np.testing.assert_array_equal(known.allowed, [True, True, False, True])
    np.testing.assert_array_equal(known.low, [-0.5, -0.5, 0.0, -0.5])
    assert (int(known.target), float(known.sign)) == (2, -1.0)
    assert float(environment.problem_spec(SCM).sign) == 1.0


def test_the_proposer_follows_the_protocol():
    assert isinstance(InTurn(), environment.Proposer)


def test_first_rows_are_flagged_as_they_were_made(begin):
    history = begin(KEY)
    assert int(history.count) == 100
    np.testing.assert_array_equal(history.row_mask, np.arange(110) < 100)
    flags, values = np.asarray(history.intervened), np.asarray(history.values)
    assert not flags[:40].any()
    assert not flags[100:].any()
    assert not flags[:, 2].any()
    np.testing.assert_array_equal(flags[40:100].sum(axis=1), 1)
    assert set(np.nonzero(flags)[1].tolist()) == set(TURNS)
    chosen = values[flags]
    assert ((chosen >= -0.5) & (chosen <= 1.5)).all()
    assert chosen.std() == pytest.approx(2 / np.sqrt(12), rel=0.2)


def test_first_rows_follow_the_model(begin):
    """Free cells less what their causes give are the noise of the model."""
    values, flags = (
        np.asarray(x)[:100] for x in (begin(KEY).values, begin(KEY).intervened)
    )
    noise = (values - values @ WEIGHT)[~flags]
    assert abs(noise.mean()) < 4 * 0.5 / np.sqrt(noise.size)
    assert noise.std() == pytest.approx(0.5, rel=0.15)


def test_an_episode_adds_its_rows_to_the_history(episode):
    """Three steps after five rows, with room for seven: the oldest is dropped."""
    history, record = episode(KEY, "MINIMIZE")
    assert (int(history.count), int(record.history.count)) == (START, CAPACITY)
    kept = np.concatenate([history.values[1:START], record.rows])
    np.testing.assert_array_equal(record.history.values, kept)
    # The count stays at its most once the room is full: 5, 6, 7 before each step.
    expected = [TURNS[count % 3] for count in (5, 6, 7)]
    assert record.action.variable.tolist() == expected
    flags = np.asarray(record.history.intervened)[-STEPS:]
    np.testing.assert_array_equal(np.argmax(flags, axis=1), expected)
    np.testing.assert_array_equal(flags.sum(axis=1), 1)
    rows = np.asarray(record.rows)
    np.testing.assert_array_equal(rows[np.arange(STEPS), expected], record.action.value)


class Pair(eqx.Module):
    """Sets the first and the last variable at once."""

    def propose(self, key, history, spec, truth):
        mask = jnp.asarray([True, False, False, True])
        return set_variables(mask, jnp.asarray([0.5, 9.0, 9.0, -0.25]))


def test_two_variables_are_set_at_once():
    @jax.jit
    def play():
        history = environment.first_history(KEY, SCM, 3, 0, CAPACITY)
        return environment.run_episode(KEY, SCM, Pair(), history, 2)

    record = play()
    np.testing.assert_array_equal(record.history.intervened[3:5].sum(0), [2, 0, 0, 2])
    np.testing.assert_array_equal(record.rows[:, 0], 0.5)
    np.testing.assert_array_equal(record.rows[:, 3], -0.25)
    noise = record.rows[:, 1] - 0.8 * 0.5  # the second follows the first, with noise
    assert (abs(noise) > 0).all()
    assert (abs(noise) < 3).all()


def test_rows_stay_within_their_ranges_and_the_target_is_free(episode):
    rows = np.concatenate(
        [episode(jax.random.key(i), "MINIMIZE")[1].rows for i in range(8)]
    )
    others = rows[:, TURNS]
    assert ((others >= -0.5) & (others <= 1.5)).all()
    assert (rows[:, 2] < -0.5).any()


def test_the_same_key_plays_the_same_episode_and_the_direction_is_told(episode):
    one, again = episode(KEY, "MINIMIZE")[1], episode(KEY, "MINIMIZE")[1]
    np.testing.assert_array_equal(one.rows, again.rows)
    up = episode(KEY, "MAXIMIZE")[1]
    assert (one.action.value != up.action.value).any()
