"""Oracle: the tables of the fact sheet, and rounds counted by hand."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from acbo.policy.environment import EpisodeConfig
from acbo.training.curriculum import (
    CONVERGENCE,
    LEVELS,
    ConvergenceConfig,
    classify_difficulty,
    episodes_of,
    start_curriculum,
    update_curriculum,
)

LEVEL = replace(LEVELS[0], max_steps=6, window=3)  # F1 of 0.8, improvement of 0.2
GOOD = {"f1": 0.9, "improvement": 0.5, "accuracy": 0.5, "mean_reward": 1.0}
LEARNED = {**GOOD, "f1": 0.1, "accuracy": 1.0}


def go(rounds, state=None, levels=(LEVEL, LEVEL), **changes):
    state = start_curriculum(levels) if state is None else state
    for _ in range(rounds):
        state = update_curriculum(state, levels, CONVERGENCE, **GOOD | changes)
    return state


@pytest.mark.parametrize(
    ("nodes", "accuracy", "expected"),
    [(5, 0.95, "easy"), (5, 0.9, "medium"), (8, 0.71, "medium"), (8, 0.7, "hard")],
)
def test_difficulties(nodes, accuracy, expected):
    assert classify_difficulty(nodes, accuracy) == expected


def test_a_level_is_left_when_scores_stay_up():
    state = go(1, go(1, go(1), f1=0.7), f1=0.9)
    assert (state.level, state.steps) == (0, 3)
    state = go(2, state)  # three in a row
    assert (state.level, state.steps, state.attempt) == (1, 0, 1)
    assert np.isnan(state.f1).all()
    state = go(3, state, improvement=0.1)
    assert (state.level, state.finished) == (1, False)
    assert go(1, state, improvement=0.2).finished


def test_a_level_is_tried_three_times():
    level = replace(LEVEL, max_steps=2)
    state, attempts = start_curriculum([level]), []
    while not state.finished:
        attempts.append(int(state.attempt))
        state = go(1, state, [level], f1=0.0)
    assert attempts == [1, 1, 2, 2, 3, 3]
    after = go(1, state, [level])
    assert (after.level, after.attempt, after.finished) == (0, 3, True)


def test_a_level_is_left_when_learning_has_converged():
    """Five rounds fill the window of rewards; the ninth is the fifth good one."""
    long = [replace(LEVEL, max_steps=99)] * 2
    assert go(8, None, long, **LEARNED).level == 0
    state = go(9, None, long, **LEARNED)
    assert (state.level, state.rounds, state.finished) == (1, 0, False)
    assert go(9, state, long, **LEARNED).finished


def test_one_inaccurate_round_starts_the_count_over():
    long = [replace(LEVEL, max_steps=99)] * 2
    state = go(1, go(8, None, long, **LEARNED), long, f1=0.1)
    assert state.good == 0
    assert go(4, state, long, **LEARNED).level == 0
    assert go(5, state, long, **LEARNED).level == 1


def test_rewards_must_settle():
    long = [replace(LEVEL, max_steps=99)]
    state = start_curriculum(long)
    for number in range(29):
        state = go(1, state, long, **LEARNED | {"mean_reward": float(number % 2)})
    assert (state.rounds, state.good) == (29, 0)
    assert go(1, state, long, **LEARNED).rounds == 0  # 30 are enough: start over


def test_bad_settings_are_refused():
    with pytest.raises(ValueError, match="max_rounds=3 must be at least 5"):
        ConvergenceConfig(max_rounds=3)


def test_the_table_rises():
    for one, two in pairwise(LEVELS):
        assert one.variables[1] == two.variables[0]
        assert one.min_f1 > two.min_f1
        assert one.max_steps < two.max_steps


def test_episodes_follow_the_level():
    base = EpisodeConfig(steps=3)
    found = [episodes_of(level, base) for level in LEVELS]
    assert [each.sizes for each in found] == [level.variables for level in LEVELS]
    assert [each.variables for each in found] == [8, 8, 16, 32, 32]
    assert [each.scms[0].noise for each in found] == [level.noise for level in LEVELS]
    kinds = [each.scms[0].families for each in found]
    assert kinds == [("er1",)] * 3 + [("er1", "er2"), ("er2",)]
    assert {each.steps for each in found} == {3}
