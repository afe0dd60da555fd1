import jax
import jax.numpy as jnp
import numpy as np
import pytest

import arc_reference as reference
from jaxarc import bits
from jaxarc.ops.selection import or_everything, select_rectangle, select_rows


def with_box(rows):
    selection = select_rows(rows)
    return selection, selection.box()


@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (9, 16), (30, 30), (32, 32)])
def test_box_and_count_equal_numpy(shape):
    rng = np.random.default_rng(0)
    cells = rng.random((300, *shape)) < rng.choice([0.003, 0.05, 0.7], (300, 1, 1))
    rows = bits.pack_rows(cells)
    found, boxes = jax.device_get(jax.jit(jax.vmap(with_box))(rows))
    boxes = bits.unpack_rows(boxes, shape[1])
    for index, selected in enumerate(cells):
        assert found.count[index] == selected.sum()
        if not selected.any():
            assert not boxes[index].any()
            continue
        top, left, bottom, right = reference.box_of(selected)
        sides = (found.top, found.left, found.bottom + 1, found.right + 1)
        assert [int(side[index]) for side in sides] == [top, left, bottom, right]
        expected = np.zeros(shape, bool)
        expected[top:bottom, left:right] = True
        np.testing.assert_array_equal(boxes[index], expected)


def test_a_rectangle_with_a_side_missing_is_empty():
    sides = map(jnp.asarray, (3, 2, 1, 6))
    selection = select_rectangle(*sides, height=8, dtype=jnp.uint8)
    assert bool(selection.empty)
    assert not selection.rows.any()


def test_nothing_selected_means_everything_where_asked():
    size = jnp.array([2, 3], jnp.int32)
    active = bits.active_rows(size, 4, jnp.uint8)
    area = or_everything(select_rows(jnp.zeros(4, jnp.uint8)), size, active)
    assert [int(x) for x in (area.top, area.left, area.bottom, area.right)] == [
        *(0, 0, 1, 2)
    ]
    assert int(area.count) == 6
    some = select_rows(active & jnp.array([2, 0, 0, 0], jnp.uint8))
    assert int(or_everything(some, size, active).count) == 1
