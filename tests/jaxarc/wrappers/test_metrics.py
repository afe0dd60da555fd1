"""Figures of episodes equal those counted by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arc_environments import (
    auto_reset,
    clipping,
    described,
    no_weak_types,
    play,
    reset,
    sample_actions,
    small_env,
    step,
)
from arc_play import row
from arc_states import point
from jaxarc.types import JaxArcTask
from jaxarc.wrappers import AutoReset, ExtendedMetrics, MetricsWrapper, StepLimit

pytestmark = pytest.mark.slow  # many programs to compile


def counted(steps, start):
    """Figures after every step of a sequence with automatic resets."""
    found, figures = [], None
    for index in range(steps.reward.shape[0]):
        if figures is None:
            figures = {
                "episode_return": np.float32(0),
                "episode_length": 0,
                "best_similarity": start,
                "solved": False,
                "steps_to_solve": -1,
            }
        one = row(steps, index)
        similarity = float(one.extras["similarity"])
        figures["episode_return"] += np.float32(one.reward)
        figures["episode_length"] += 1
        figures["best_similarity"] = max(figures["best_similarity"], similarity)
        figures["final_similarity"] = similarity
        if bool(one.extras["solved"]) and not figures["solved"]:
            figures["solved"] = True
            figures["steps_to_solve"] = figures["episode_length"]
        figures["was_truncated"] = bool(one.truncated())
        found.append(dict(figures))
        if bool(one.last()):
            figures = None
    return found


def test_figures_are_those_counted_by_hand():
    env = AutoReset(MetricsWrapper(small_env(clipping(steps=6), episode_mode=1)))
    actions = sample_actions(env, jax.random.key(5), 60)
    _, _, steps = play(env, jax.random.key(1), actions)
    # In test mode every episode begins with similarity 0.
    wanted = counted(steps, 0.0)
    metrics = steps.extras["episode_metrics"]
    for index, figures in enumerate(wanted):
        for name, value in figures.items():
            found = np.asarray(getattr(metrics, name))[index]
            np.testing.assert_allclose(found, value, atol=1e-6)
    assert bool(metrics.was_truncated.any())


def test_the_best_similarity_counts_the_start():
    env = MetricsWrapper(small_env())
    state, first = reset(env, jax.random.key(2))
    start = float(first.extras["similarity"])
    metrics = first.extras["episode_metrics"]
    assert float(metrics.best_similarity) == start
    assert float(metrics.final_similarity) == start
    assert int(metrics.episode_length) == 0
    _, after = step(env, state, point(33, 0, 0))
    later = after.extras["episode_metrics"]
    assert float(later.final_similarity) == float(after.extras["similarity"])
    assert float(later.best_similarity) == max(start, float(later.final_similarity))


def solvable():
    given = np.zeros((1, 5, 5), np.int32)
    wanted = given.copy()
    wanted[0, 0, :2] = 1
    mask = np.ones_like(given, bool)
    task = JaxArcTask(given, mask, wanted, mask, 1, given, mask, wanted, mask, 1)
    return jax.tree.map(lambda x: x[None], task)


def test_a_solution_is_counted_once():
    env = MetricsWrapper(small_env(buffer=solvable()))
    state, _ = reset(env, jax.random.key(0))
    for action in (point(1, 0, 0), point(1, 0, 1), point(2, 0, 0)):
        state, after = step(env, state, action)
    metrics = after.extras["episode_metrics"]
    assert bool(metrics.solved)
    assert int(metrics.steps_to_solve) == 2
    assert float(metrics.best_similarity) == 1.0
    assert float(metrics.final_similarity) < 1.0


def test_a_renewed_episode_begins_from_nothing():
    env = MetricsWrapper(small_env())
    state, _ = reset(env, jax.random.key(0))
    state, _ = step(env, state, point(3))
    kept = auto_reset(env, state, jnp.asarray(False))
    assert int(kept.metrics.episode_length) == 1
    fresh = auto_reset(env, state, jnp.asarray(True))
    assert int(fresh.metrics.episode_length) == 0
    assert float(fresh.metrics.episode_return) == 0.0
    similarity = float(env.arc_state(fresh).similarity_score)
    assert float(fresh.metrics.best_similarity) == similarity


def test_a_limit_below_is_counted_as_truncation():
    env = MetricsWrapper(StepLimit(small_env(), max_steps=1))
    state, _ = reset(env, jax.random.key(0))
    _, after = step(env, state, point(0, 4, 4))
    assert bool(after.extras["episode_metrics"].was_truncated)


def test_resets_and_steps_are_one_carry():
    env = MetricsWrapper(small_env())
    first = reset(env, jax.random.key(0))
    after = step(env, first[0], point(3))
    assert described(first) == described(after)
    assert no_weak_types((first, after))
    assert ExtendedMetrics is MetricsWrapper
    assert env.render(first[0], "ansi")
