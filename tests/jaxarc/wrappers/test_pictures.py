"""The last transition is kept and drawn."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arc_environments import (
    clipping,
    described,
    no_weak_types,
    reset,
    small_env,
    step,
)
from arc_states import assert_same, point
from jaxarc.wrappers import (
    AutoReset,
    InputGridObservationWrapper,
    StepVisualizationWrapper,
    Vectorize,
)

pytestmark = pytest.mark.slow  # many programs to compile


def test_a_step_is_remembered_and_changes_nothing_else():
    env = small_env()
    pictured = StepVisualizationWrapper(env)
    plain, first = reset(env, jax.random.key(0))
    state, same = reset(pictured, jax.random.key(0))
    assert_same(same, first)
    assert int(state.transition.operation) == -1
    np.testing.assert_array_equal(state.transition.after, first.observation)
    after, found = step(pictured, state, point(4, 0, 1))
    inner, wanted = step(env, plain, point(4, 0, 1))
    assert_same((after.inner, found), (inner, wanted))
    kept = after.transition
    np.testing.assert_array_equal(kept.before, first.observation)
    np.testing.assert_array_equal(kept.after, wanted.observation)
    cells = np.zeros((5, 5), bool)
    cells[0, 1] = np.asarray(first.observation)[0, 1] >= 0
    np.testing.assert_array_equal(kept.selection, cells)
    assert (int(kept.operation), int(kept.step)) == (4, 1)
    assert float(kept.reward) == float(wanted.reward)
    assert float(kept.similarity_before) == float(first.extras["similarity"])
    assert float(kept.similarity) == float(wanted.extras["similarity"])
    assert described(state) == described(after)
    assert no_weak_types((state, after))


def test_operations_that_select_nothing_show_no_selection():
    env = StepVisualizationWrapper(small_env())
    state, _ = env.reset(jax.random.key(0), task=0)
    state, _ = step(env, state, point(4, 0, 0))
    state, _ = step(env, state, point(39))
    assert not np.asarray(state.transition.selection).any()


def test_the_detailed_picture_names_what_happened():
    env = StepVisualizationWrapper(InputGridObservationWrapper(small_env()))
    state, _ = reset(env, jax.random.key(0))
    assert env.render(state, "detailed").startswith("<svg")
    state, _ = step(env, state, point(4, 0, 0))
    picture = env.render(state, "detailed")
    assert picture.startswith("<svg")
    assert "Before" in picture
    assert "After" in picture
    assert "Fill 4" in picture
    assert env.render(state, "ansi") == env.unwrapped.render(state.inner, "ansi")


def test_the_end_of_an_episode_can_be_seen_after_a_reset():
    env = AutoReset(StepVisualizationWrapper(small_env(clipping(steps=1))))
    state, first = reset(env, jax.random.key(0))
    state, after = step(env, state, point(4, 0, 0))
    assert bool(after.last())
    final = after.extras["final_observation"]
    np.testing.assert_array_equal(state.transition.after, final)
    np.testing.assert_array_equal(state.transition.before, first.observation)
    assert env.render(state, "detailed").startswith("<svg")


@pytest.mark.parametrize("outer", [AutoReset, Vectorize])
def test_it_goes_below_resets_and_vectors(outer):
    with pytest.raises(ValueError, match="below them"):
        StepVisualizationWrapper(outer(small_env()))


def test_many_at_once():
    env = Vectorize(StepVisualizationWrapper(small_env()))
    states, _ = reset(env, jax.random.split(jax.random.key(0), 2))
    actions = jax.tree.map(lambda x: jnp.stack([x, x]), point(4, 0, 0))
    states, _ = step(env, states, actions)
    assert len(env.render(states, "detailed")) == 2
