"""Oracle: rounds counted by hand."""

from dataclasses import replace

from acbo.policy.environment import EpisodeConfig
from acbo.training.curriculum import (
    LEVELS,
    ConvergenceState,
    Course,
    Progress,
    episodes_of,
    follow,
    pack,
    unpack,
)

QUICK = tuple(replace(level, window=2, min_f1=0.8) for level in LEVELS[:2])
GOOD = {"f1": 0.9, "improvement": 0.5, "accuracy": 0.5, "mean_reward": 1.0}


def go(course, rounds, levels=QUICK, **changes):
    for _ in range(rounds):
        course = follow(course, levels, **GOOD | changes)
    return course


def test_a_level_is_left_when_it_is_passed():
    assert go(Course(), 1).progress.level == 0
    assert go(Course(), 2).progress == Progress(1)
    assert go(Course(), 2).convergence == ConvergenceState()
    assert go(Course(), 4).progress.finished


def test_a_level_is_left_when_learning_has_converged():
    """F1 never passes; the ninth steady round is the fifth good one."""
    low = {"f1": 0.1, "accuracy": 1.0}
    assert go(Course(), 8, **low).progress.level == 0
    assert go(Course(), 9, **low).progress == Progress(1)
    last = go(Course(), 18, **low).progress
    assert (last.level, last.finished) == (1, True)


def test_rounds_without_convergence_start_over():
    assert go(Course(), 29, f1=0.1).convergence.episodes == 29
    assert go(Course(), 30, f1=0.1).convergence == ConvergenceState()


def test_a_course_survives_its_arrays():
    course = go(Course(), 1, f1=0.5, mean_reward=0.25)
    assert unpack(pack(course, LEVELS)) == course
    assert pack(course, LEVELS).f1.shape == (200,)


def test_episodes_follow_the_level():
    base = EpisodeConfig(steps=3)
    found = [episodes_of(level, base) for level in LEVELS]
    assert [each.sizes for each in found] == [level.variables for level in LEVELS]
    assert [each.variables for each in found] == [8, 8, 16, 32, 32]
    assert [each.scms[0].noise for each in found] == [level.noise for level in LEVELS]
    kinds = [each.scms[0].families for each in found]
    assert kinds == [("er1",)] * 3 + [("er1", "er2"), ("er2",)]
    assert {each.steps for each in found} == {3}
