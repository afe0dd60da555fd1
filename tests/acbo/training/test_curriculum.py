"""Oracle: the tables of the fact sheet, and counting."""

from collections import Counter
from itertools import pairwise

import jax
import pytest

from acbo.training.curriculum import (
    LEVELS,
    CurriculumLevel,
    Mix,
    Progress,
    advance,
    classify_difficulty,
    progressive_curriculum_sampling,
)
from causal_examples import make_example

EXAMPLES = [
    make_example(seed, difficulty=name)
    for seed, name in enumerate(["easy"] * 12 + ["medium"] * 6 + ["hard"] * 4)
]


@pytest.mark.parametrize(
    ("nodes", "accuracy", "expected"),
    [(5, 0.95, "easy"), (5, 0.9, "medium"), (8, 0.71, "medium"), (8, 0.7, "hard")],
)
def test_difficulties(nodes, accuracy, expected):
    assert classify_difficulty(nodes, accuracy) == expected


@pytest.mark.parametrize(
    ("step", "expected"),
    [(0, (8, 2, 0)), (499, (8, 2, 0)), (500, (5, 4, 1)), (1500, (3, 4, 3))],
)
def test_the_mix_of_each_step(step, expected):
    batch = progressive_curriculum_sampling(EXAMPLES, 10, step, None, jax.random.key(0))
    found = Counter(example.problem_difficulty for example in batch.examples)
    assert tuple(found[name] for name in ("easy", "medium", "hard")) == expected
    assert len({id(e) for e in batch.examples}) == 10


def test_a_schedule_of_ones_own():
    schedule = [(10, (0.0, 0.0, 1.0)), Mix(20, (0.0, 1.0, 0.0))]
    draw = lambda step: progressive_curriculum_sampling(
        EXAMPLES, 3, step, schedule, jax.random.key(1)
    )
    assert {e.problem_difficulty for e in draw(9).examples} == {"hard"}
    assert {e.problem_difficulty for e in draw(10).examples} == {"medium"}
    assert {e.problem_difficulty for e in draw(99).examples} == {"medium"}
    with pytest.raises(ValueError, match="sum to 1"):
        Mix(5, (0.5, 0.6, 0.0))


def test_batches_are_short_only_without_examples():
    only_hard = EXAMPLES[-4:]
    draw = lambda size: progressive_curriculum_sampling(
        only_hard, size, 0, None, jax.random.key(2)
    )
    assert draw(3).batch_size == 3
    assert draw(9).batch_size == 4


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
