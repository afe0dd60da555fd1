"""The tree of boxes against looking at every box."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.fields.search import (
    build_parts,
    build_tree,
    descend,
    distances,
    in_groups,
    rows,
    select,
    traverse,
)

pytestmark = pytest.mark.slow  # compiles many programs


def boxes(count, dimension, seed=0):
    rng = np.random.default_rng(seed)
    low = rng.random((count, dimension), np.float32)
    return low, low + 0.3 * rng.random((count, dimension), np.float32) ** 4


@jax.jit
def holding(tree, x, active):
    """The sum of (item + 1)² over boxes that hold a place, and how many there are."""
    d = x.shape[1]

    def touches(lanes, box):
        return jnp.all((x >= box[:, :d]) & (x <= box[:, d:]), -1)

    def visit(lanes, item, here):
        total, count = lanes
        return select(here, (total + (item + 1) ** 2, count + 1), lanes), ~here

    zero = jnp.zeros(x.shape[0], jnp.int32)
    return traverse(tree, (zero, zero), active, touches, visit)


@pytest.mark.parametrize(("count", "dimension"), [(1, 3), (2, 2), (37, 2), (300, 3)])
def test_every_box_that_is_touched_is_visited_once(count, dimension):
    low, high = boxes(count, dimension)
    x = np.random.default_rng(1).random((64, dimension), np.float32)
    inside = ((x[:, None] >= low) & (x[:, None] <= high)).all(-1)
    tree = build_tree(low, high)
    total, visits = holding(tree, x, jnp.ones(64, bool))
    np.testing.assert_array_equal(visits, inside.sum(1))
    np.testing.assert_array_equal(total, inside @ (np.arange(count) + 1) ** 2)


def test_lanes_that_are_not_active_stay_as_they_are():
    low, high = boxes(20, 3)
    x = np.tile((low[:1] + high[:1]) / 2, (4, 1))
    active = jnp.asarray([True, False, True, False])
    _, visits = holding(build_tree(low, high), x, active)
    assert (np.asarray(visits) > 0).tolist() == [True, False, True, False]


def test_a_lane_that_has_seen_enough_stops():
    low = np.zeros((8, 2), np.float32)
    tree = build_tree(low, low + 1)
    x = jnp.full((1, 2), 0.5)

    def visit(lanes, item, here):
        return lanes + here.astype(jnp.int32), here

    count = traverse(
        tree, jnp.zeros(1, jnp.int32), jnp.ones(1, bool), lambda *_: x[:, 0] > 0, visit
    )
    assert count.tolist() == [1]


def test_every_item_is_in_one_leaf():
    low, high = boxes(1000, 3)
    tree = build_tree(low, high)
    leaves = tree.items[tree.items >= 0]
    np.testing.assert_array_equal(np.sort(leaves), np.arange(1000))
    assert len(tree.items) < 2100
    np.testing.assert_array_equal(tree.boxes[0, :3], low.min(0))


def test_rows_are_those_asked_for():
    table = jnp.arange(12).reshape(4, 3)
    np.testing.assert_array_equal(
        rows(table, jnp.asarray([2, 0])), [[6, 7, 8], [0, 1, 2]]
    )


def test_distances_from_boxes():
    box = jnp.asarray([[0.0, 0.0, 1.0, 2.0]] * 3)
    x = jnp.asarray([[0.5, 1.0], [2.0, 1.0], [-3.0, 6.0]])
    np.testing.assert_allclose(distances(x, box), [0, 1, 25])


@pytest.mark.parametrize("count", [1, 2, 5, 300])
def test_descending_ends_at_an_item_that_is_near(count):
    points = np.random.default_rng(0).random((count, 3), np.float32)
    x = jnp.asarray(np.random.default_rng(1).random((200, 3), np.float32))
    tree = jax.tree.map(jnp.asarray, build_tree(points, points))
    item = np.asarray(descend(tree, x))
    gaps = np.linalg.norm(np.asarray(x)[:, None] - points, axis=2)
    rank = (gaps < gaps[np.arange(200), item][:, None]).sum(1)
    assert np.median(rank) <= 1


def test_parts_are_searched_apart():
    points = np.random.default_rng(0).random((60, 2), np.float32)
    part = np.arange(60, dtype=np.int32) % 3
    tree = jax.tree.map(jnp.asarray, build_parts(points, points, part))
    x = jnp.asarray(points)
    for number in range(3):
        item = np.asarray(descend(tree, x, jnp.full(60, number, np.int32)))
        assert np.all(part[item] == number)
        found = traverse(
            tree,
            jnp.zeros(60, np.int32),
            jnp.ones(60, bool),
            lambda _, box: box[:, 0] > -1,
            lambda lanes, item, here: (lanes + here.astype(np.int32), ~here),
            part=jnp.full(60, number, np.int32),
        )
        assert np.all(np.asarray(found) == 20)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.6, 1.0])
def test_groups_change_the_wanted_rows_alone(share):
    wanted = np.random.default_rng(0).random(3000) < share
    given = np.arange(3000, dtype=np.int32)

    def work(rows, active):
        return jnp.where(active, rows**2, -1)

    found = in_groups(jnp.asarray(wanted), jnp.asarray(given), jnp.asarray(given), work)
    np.testing.assert_array_equal(found, np.where(wanted, given**2, given))
