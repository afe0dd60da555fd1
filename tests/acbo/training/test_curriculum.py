"""Oracle: the tables of the fact sheet, and counting."""

from itertools import pairwise

import pytest

from acbo.training.curriculum import (
    LEVELS,
    CurriculumLevel,
    Progress,
    advance,
    classify_difficulty,
)


@pytest.mark.parametrize(
    ("nodes", "accuracy", "expected"),
    [(5, 0.95, "easy"), (5, 0.9, "medium"), (8, 0.71, "medium"), (8, 0.7, "hard")],
)
def test_difficulties(nodes, accuracy, expected):
    assert classify_difficulty(nodes, accuracy) == expected


def test_levels_are_passed_when_scores_stay_up():
    level = CurriculumLevel((3, 5), (2, 4), (0.1, 0.3), 0.8, 0.2, 6, window=3)
    levels = [level, level]
    progress = Progress()
    for f1 in (0.9, 0.7, 0.9, 0.9):
        progress = advance(progress, f1, 0.5, levels)
        assert progress.level == 0
    progress = advance(progress, 0.9, 0.5, levels)
    assert progress == Progress(1)
    for _ in range(3):
        progress = advance(progress, 0.9, 0.1, levels)  # improvement too small
    assert (progress.level, progress.finished) == (1, False)
    assert advance(progress, 0.9, 0.2, levels).finished


def test_a_level_is_tried_three_times():
    level = CurriculumLevel((3, 5), (2, 4), (0.1, 0.3), 0.8, 0.2, 2, window=1)
    progress, attempts = Progress(), []
    while not progress.finished:
        attempts.append(progress.attempt)
        progress = advance(progress, 0.0, 0.0, [level])
    assert attempts == [1, 1, 2, 2, 3, 3]
    assert advance(progress, 1.0, 1.0, [level]) is progress


def test_the_table_rises():
    for one, two in pairwise(LEVELS):
        assert one.variables[1] == two.variables[0]
        assert one.min_f1 > two.min_f1
        assert one.max_steps < two.max_steps
