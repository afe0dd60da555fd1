"""What counts as solved, with players whose success is known beforehand."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arc_agents import STEPS, Idler, Oracle, Submitter, Wanderer, write_small_tasks
from arc_environments import clipping, small_env
from arc_play import stack
from arc_samples import raw_tasks, write_tasks
from jaxarc.actions import MaskAction
from jaxarc.envs.environment import Environment
from jaxarc.learning import evaluation
from jaxarc.learning.demonstrations import demonstrate
from jaxarc.learning.evaluation import evaluate, every_pair
from jaxarc.learning.policy import PointPolicy, RandomPolicy
from jaxarc.learning.training import PAINTING, LearnEnvironment
from jaxarc.recording import run_again
from jaxarc.registration import make
from jaxarc.rollouts import random_rollout
from jaxarc.tasks.identity import create_jax_task_index
from jaxarc.tasks.samples import create_demo_task, stack_task_list
from jaxarc.types import JaxArcTask
from jaxarc.wrappers import AnswerObservationWrapper, AutoReset, Vectorize
from jaxrig.learn import Choice

pytestmark = pytest.mark.slow  # many programs to compile

KEY = jax.random.key(0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_small_tasks(tmp_path_factory.mktemp("tasks"))


def make_env(folder, mode=0, rows=None, steps=STEPS):
    """Three tasks with 1, 2 and 3 demonstrations, the answer beside the grid."""
    path = str(folder)
    _, params = make("Mini-all", dataset_path=path, max_episode_steps=steps)
    env = Environment(params.config, params.buffer, mode, rows)
    return AnswerObservationWrapper(env)


def as_result(rows, solved, **more):
    solved = np.asarray(solved, bool)
    rows = np.asarray(rows)
    blank = np.zeros(solved.shape)
    names = ("similarity", "steps", "rewards", "actions")
    arrays = dict.fromkeys(names, blank) | more
    known = arrays.pop("known", np.ones_like(rows, bool))
    pairs = np.zeros_like(rows)
    return evaluation.EvaluationResult(rows, pairs, known, solved, **arrays)


@pytest.mark.parametrize(
    ("mode", "pairs", "greedy"), [(0, 6, False), (1, 3, False), (1, 3, True)]
)
def test_an_oracle_solves_every_pair(folder, mode, pairs, greedy):
    result = evaluate(Oracle(), make_env(folder, mode), KEY, 1, greedy)
    assert result.solved.shape == (1, pairs)
    assert result.solved.all()
    np.testing.assert_array_equal(result.similarity, 1.0)
    assert result.pair_rate == result.first_rate == result.task_rate == 1.0
    if mode and not greedy:  # what was kept of an episode plays it again
        env = make_env(folder, mode)
        recording, task = evaluation.record_episode(result, env, 0, 1)
        frames, wanted = run_again(recording, task), task.get_test_pair(0).output_grid
        height, width = wanted.shape
        assert len(frames) == STEPS + 1
        np.testing.assert_array_equal(
            frames[-1].grid, np.asarray(wanted.data)[:height, :width]
        )
    # A right demonstration ends the episode; a test lasts until the forced Submit.
    assert (result.steps < STEPS).all() if mode == 0 else (result.steps == STEPS).all()


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("player", [Idler(), Submitter()], ids=["idle", "submit"])
def test_without_edits_nothing_is_solved(folder, mode, player):
    result = evaluate(player, make_env(folder, mode, steps=4), KEY)
    assert not result.solved.any()
    assert result.pair_rate == result.task_rate == 0.0
    assert (result.steps == (1 if isinstance(player, Submitter) else 4)).all()
    assert (result.similarity < 1).all()


def test_of_a_test_only_what_is_submitted_counts(folder):
    """One step is the forced Submit, so that the oracle cannot paint anything."""
    at_once = evaluate(Oracle(), make_env(folder, 1, steps=1), KEY, 1)
    handed_in = evaluate(Submitter(), make_env(folder, 1, steps=9), KEY, 1)
    np.testing.assert_array_equal(at_once.similarity, handed_in.similarity)
    assert not at_once.solved.any()


def test_similarity_of_a_test_is_hidden_until_submit(folder):
    env = make_env(folder, 1)
    state, begun = env.reset(KEY, task=0, pair=0)
    assert float(begun.extras["similarity"]) == 0.0
    step = jax.jit(lambda env, state, action: env.step(state, action))
    seen = begun
    for _ in range(4):
        state, seen = step(env, state, Oracle().best(seen.observation))
        assert float(seen.extras["similarity"]) == 0.0
    _, ended = step(env, state, Submitter().best(seen.observation))
    assert 0.0 < float(ended.extras["similarity"]) < 1.0
    assert bool(ended.last())


def test_another_pair_solved_on_the_way_does_not_count():
    """The player leaves the second pair for the first, which is solved as it is."""
    easy = np.ones((5, 5), np.int32)
    hard = np.zeros((5, 5), np.int32)
    given = np.stack([easy, hard])
    full, test = np.ones((2, 5, 5), bool), (easy[None], np.ones((1, 5, 5), bool))
    answers = np.stack([easy, easy + 1])
    task = JaxArcTask(given, full, answers, full, 2, *test, *test, 1, task_index=0)
    env = Environment(clipping(steps=6), stack_task_list([task]), 0)
    result = evaluate(Wanderer(), AnswerObservationWrapper(env), KEY, 1)
    assert result.solved.tolist() == [[True, False]]


def test_every_pair_lists_what_there_is(folder):
    rows, pairs = every_pair(make_env(folder))
    both = list(zip(rows.tolist(), pairs.tolist(), strict=True))
    assert both == [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)]
    rows, pairs = every_pair(make_env(folder, 1))
    assert rows.tolist() == [0, 1, 2]
    assert pairs.tolist() == [0, 0, 0]


def test_every_pair_of_a_subset(folder):
    env = make_env(folder, rows=[2, 0])
    rows, pairs = every_pair(env)
    both = list(zip(rows.tolist(), pairs.tolist(), strict=True))
    assert both == [(0, 0), (2, 0), (2, 1), (2, 2)]
    result = evaluate(Oracle(), env, KEY, 1)
    assert result.figures()["tasks"] == 2
    assert result.task_rate == 1.0


def test_keys_decide_the_attempts(folder):
    env, policy = make_env(folder, steps=8), RandomPolicy(PAINTING)
    one, same = (evaluate(policy, env, KEY, attempts=2) for _ in range(2))
    np.testing.assert_array_equal(one.similarity, same.similarity)
    np.testing.assert_array_equal(one.steps, same.steps)
    assert not np.array_equal(one.similarity[0], one.similarity[1])
    other = evaluate(policy, env, jax.random.key(1), attempts=2)
    assert not np.array_equal(one.similarity, other.similarity)
    first = evaluate(policy, env, KEY, attempts=1)
    np.testing.assert_array_equal(first.similarity, one.similarity[:1])


def test_greedy_needs_no_luck(folder):
    env = make_env(folder, steps=6)
    policy = PointPolicy(KEY, 2, PAINTING, features=8, depth=0)
    results = [evaluate(policy, env, jax.random.key(s), 2, True) for s in range(2)]
    one, other = (result.similarity for result in results)
    np.testing.assert_array_equal(one[0], other[0])
    assert not np.array_equal(one[1], other[1])


def test_rates_by_hand():
    solved = [[1, 0, 0, 1, 0], [0, 0, 1, 1, 0]]
    found = as_result([0, 0, 1, 1, 2], solved)
    rates = found.pair_rate, found.first_rate, found.task_rate
    assert rates == pytest.approx((3 / 5, 2 / 5, 1 / 3))
    some = as_result([0, 0, 1, 1, 2], solved, known=np.array([1, 0, 1, 1, 0], bool))
    rates = some.pair_rate, some.first_rate, some.task_rate
    assert rates == pytest.approx((1.0, 2 / 3, 1.0))
    assert (some.figures()["pairs"], some.figures()["tasks"]) == (3, 2)


def test_tests_without_a_known_output_do_not_count(tmp_path):
    hidden = raw_tasks("a", pairs=(2, 1), answers=False)
    env = make_env(write_tasks(tmp_path, [*hidden, *raw_tasks("b", pairs=(2, 1))]), 1)
    result = evaluate(Oracle(), env, KEY, 1)
    assert result.known.tolist() == [False, True]
    assert not result.solved[0, 0]
    assert result.pair_rate == result.task_rate == 1.0
    none = evaluate(Oracle(), make_env(write_tasks(tmp_path / "n", hidden), 1), KEY, 1)
    assert np.isnan(none.pair_rate)


def test_figures_and_their_summary():
    likeness = np.array([[0.2, 0.8], [0.6, 0.4]])
    one = as_result([0, 1], [[1, 0], [1, 0]], similarity=likeness)
    two = as_result([0, 1], [[1, 1], [1, 1]], similarity=likeness)
    assert one.figures() == {
        "pairs": 2.0,
        "tasks": 2.0,
        "pair_rate": 0.5,
        "first_attempt_rate": 0.5,
        "task_rate": 0.5,
        "mean_similarity": pytest.approx(0.7),
        "mean_steps": 0.0,
    }
    assert evaluation.summarize({0: one, 1: two})["pair_rate"] == pytest.approx(
        (0.75, 0.25)
    )


def test_what_cannot_be_played_is_refused(folder):
    with pytest.raises(ValueError, match="attempts is 0: allow at least one"):
        evaluate(Oracle(), make_env(folder), KEY, 0)
    none = jnp.zeros((), jnp.int32)
    bare = eqx.tree_at(lambda t: t.num_test_pairs, create_demo_task(5, 5), none)
    env = Environment(clipping(), stack_task_list([bare]))
    tests = dataclasses.replace(env.params, episode_mode=1)
    with pytest.raises(ValueError, match="no pair to play"):
        evaluate(Oracle(), Environment(params=tests), KEY)
    for outer in (AutoReset, Vectorize):
        with pytest.raises(ValueError, match="one episode of every pair"):
            evaluate(Oracle(), outer(make_env(folder)), KEY)
        with pytest.raises(ValueError, match="learners begin other episodes"):
            LearnEnvironment(outer(env))


class Shares(eqx.Module):
    """Fills by a mask of fractions, of which the threshold selects two."""

    def sample(self, key, observation):
        shares = jnp.zeros(observation.shape).at[0, :3].set(jnp.array([0.4, 0.5, 0.9]))
        return Choice(MaskAction(jnp.int32(7), shares), jnp.zeros(()), jnp.zeros(()))


def test_masks_of_fractions_are_recorded_as_what_they_selected():
    task, index = create_demo_task(5, 5), create_jax_task_index("of fractions")
    task = eqx.tree_at(lambda t: t.task_index, task, index)
    env = small_env(clipping(steps=2), stack([task]))
    result = evaluate(Shares(), env, KEY, 1)
    recording, task = evaluation.record_episode(result, env, 0, 0)
    assert recording.actions == ((7, 1, 2), (7, 1, 2))
    assert (run_again(recording, task)[-1].grid == 7).sum() == 2


@pytest.mark.parametrize(
    "change", [{"augment": True}, {"grid_initialization": {"empty_weight": 1.0}}]
)
def test_what_no_replay_could_repeat_is_not_recorded(folder, change):
    env = make("Mini-all", dataset_path=str(folder), max_episode_steps=3, **change)[0]
    assert random_rollout(env, environments=2, steps=3).recording is None
    result = evaluate(Idler(), env, KEY, 1)
    for record in (
        lambda: evaluation.record_episode(result, env, 0, 0),
        lambda: demonstrate(env),
    ):
        with pytest.raises(ValueError, match="which a replay could not repeat"):
            record()
