from itertools import combinations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.graphs.parent_sets import (
    bucket_parent_sets,
    count_parent_sets,
    enumerate_possible_parent_sets,
    parent_set_members,
    parent_set_membership,
)

COUNTS = {
    (3, 2): 4,
    (4, 3): 8,
    (5, 2): 11,
    (5, 3): 15,
    (8, 3): 64,
    (10, 3): 130,
    (10, 5): 382,
    (20, 3): 1160,
    (20, 5): 16664,
}


@pytest.mark.parametrize(("size", "count"), COUNTS.items(), ids=str)
def test_counts(size, count):
    d, largest = size
    names = [f"X{i}" for i in range(d)]
    assert count_parent_sets(d, largest) == count
    assert len(set(enumerate_possible_parent_sets(names, "X1", largest))) == count


def test_order_is_by_size_then_places():
    found = enumerate_possible_parent_sets(["B", "Y", "A", "C"], "Y", 2)
    named = [[], ["B"], ["A"], ["C"], ["B", "A"], ["B", "C"], ["A", "C"]]
    assert found == [frozenset(s) for s in named]
    unordered = enumerate_possible_parent_sets({"B", "Y", "A"}, "Y")
    assert unordered == [frozenset(s) for s in ([], ["A"], ["B"], ["A", "B"])]


def test_membership_follows_the_names():
    names = [f"X{i}" for i in range(6)]
    for target in range(6):
        sets = enumerate_possible_parent_sets(names, names[target], 3)
        held = parent_set_membership(6, 3, target)
        found = [frozenset(n for n, h in zip(names, r, strict=True) if h) for r in held]
        assert found == sets


def test_traced_target_gives_the_same_sets():
    make = jax.jit(lambda m, t: bucket_parent_sets(m, t, 3))
    members = jax.jit(lambda t: parent_set_members(6, 3, t))
    for target in range(6):
        allowed, held = make(jnp.ones(6, bool), jnp.asarray(target))
        assert allowed.all()
        np.testing.assert_array_equal(held, parent_set_membership(6, 3, target))
        rows = [set(row) - {6} for row in members(jnp.asarray(target)).tolist()]
        assert rows == [set(np.flatnonzero(row)) for row in held]


def test_padding_leaves_the_sets_of_the_smaller_problem():
    mask = jnp.asarray([True, False, True, True, False])
    allowed, held = bucket_parent_sets(mask, jnp.asarray(2), 3)
    found = [tuple(np.flatnonzero(row)) for row in held[allowed]]
    assert found == [c for size in range(3) for c in combinations((0, 3), size)]


def test_more_parents_than_variables():
    assert parent_set_membership(2, 3, 0).tolist() == [[False, False], [False, True]]
    assert parent_set_membership(1, 3, 0).tolist() == [[False]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: enumerate_possible_parent_sets(["A"], "B"), "'B' is not one of"),
        (lambda: enumerate_possible_parent_sets(["A", "A"], "A"), "a name twice"),
        (lambda: count_parent_sets(3, -1), "max_parents=-1"),
        (lambda: count_parent_sets(0), "d=0"),
        (lambda: parent_set_membership(3, 2, 3), "target=3"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
