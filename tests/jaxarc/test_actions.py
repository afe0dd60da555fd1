"""Oracle: masks filled cell by cell in NumPy, and the documents' own examples.

Packed selections equal the masks that actions describe.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arc_play import KINDS, random_move
from jaxarc import bits
from jaxarc.actions import (
    BboxAction,
    MaskAction,
    PointAction,
    create_bbox_action,
    create_mask_action,
    create_point_action,
)
from jaxrig.testing import assert_one_trace, assert_trees_close

anywhere = st.integers(-5, 40)
sizes = st.sampled_from([(1, 1), (1, 7), (5, 3), (30, 30)])


def clip(index, size):
    return min(max(index, 0), size - 1)


def naive_rectangle(shape, r1, c1, r2, c2):
    mask = np.zeros(shape, bool)
    rows = sorted((clip(r1, shape[0]), clip(r2, shape[0])))
    cols = sorted((clip(c1, shape[1]), clip(c2, shape[1])))
    for row in range(rows[0], rows[1] + 1):
        for col in range(cols[0], cols[1] + 1):
            mask[row, col] = True
    return mask


@settings(max_examples=20)
@given(sizes, anywhere, anywhere)
def test_a_point_selects_one_cell(shape, row, col):
    found = create_point_action(0, row, col).to_selection_mask(shape)
    np.testing.assert_array_equal(found, naive_rectangle(shape, row, col, row, col))
    assert found.sum() == 1


@settings(max_examples=20)
@given(sizes, anywhere, anywhere, anywhere, anywhere)
def test_a_box_selects_the_rectangle_whatever_the_corners(shape, r1, c1, r2, c2):
    expected = naive_rectangle(shape, r1, c1, r2, c2)
    for corners in ((r1, c1, r2, c2), (r2, c2, r1, c1), (r1, c2, r2, c1)):
        found = create_bbox_action(0, *corners).to_selection_mask(shape)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("side", [2, 3])
def test_many_actions_have_no_one_mask(side):
    """A batch as long as a side would broadcast to one mask of all rows mixed."""
    for many in (
        create_point_action([1] * 3, [0, 1, 2], [0, 1, 2]),
        create_bbox_action([1] * 3, 0, 0, [0, 1, 2], 1),
    ):
        with pytest.raises(ValueError, match=r"a batch of actions.*jax\.vmap"):
            many.to_selection_mask((side, side))


def test_the_examples_of_the_document():
    point = PointAction(operation=jnp.array(0), row=jnp.array(5), col=jnp.array(5))
    box = BboxAction(
        operation=jnp.array(0),
        r1=jnp.array(3),
        c1=jnp.array(3),
        r2=jnp.array(7),
        c2=jnp.array(7),
    )
    mask = jnp.zeros((30, 30), dtype=jnp.bool_).at[10:15, 10:15].set(True)
    masked = MaskAction(operation=jnp.array(0), selection=mask)
    counts = [a.to_selection_mask((30, 30)).sum() for a in (point, box, masked)]
    assert [int(c) for c in counts] == [1, 25, 25]
    assert masked.to_selection_mask((30, 30)) is mask


@settings(max_examples=20)
@given(st.integers(-9, 99), anywhere, anywhere)
def test_validate_clips_and_never_raises(operation, row, col):
    found = create_point_action(operation, row, col).validate((5, 7))
    assert_trees_close(
        found, create_point_action(clip(operation, 42), clip(row, 5), clip(col, 7))
    )
    box = create_bbox_action(operation, row, col, col, row).validate((5, 7), 35)
    assert_trees_close(
        box,
        create_bbox_action(
            clip(operation, 35), clip(row, 5), clip(col, 7), clip(col, 5), clip(row, 7)
        ),
    )
    mask = create_mask_action(operation, np.asarray([[1, 0]])).validate((1, 2))
    assert int(mask.operation) == clip(operation, 42)


def test_one_trace_for_each_class():
    run = lambda action: action.to_selection_mask((30, 30))
    assert_one_trace(run, *[(create_point_action(o, o, o),) for o in range(5)])
    assert_one_trace(run, *[(create_bbox_action(o, o, 1, 2, o),) for o in range(5)])


def test_a_mask_of_another_shape_is_refused_while_tracing():
    action = create_mask_action(0, np.zeros((3, 4)))
    with pytest.raises(ValueError, match=r"\(3, 4\), the grid \(30, 30\)"):
        jax.jit(lambda a: a.to_selection_mask((30, 30)))(action)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(1, 1), (4, 9), (30, 30)])
def test_selections_equal_masks(kind, shape):
    rng = np.random.default_rng(shape[1])
    dtype = bits.word_type(*shape)

    @jax.jit
    def both(action, size):
        action = action.validate(shape)
        raw = action.pack(shape)
        grid = bits.PackedGrid(jnp.zeros((4, shape[0]), dtype), size, shape[1])
        return raw, action.pack_active(raw, grid)

    for _ in range(60):
        move = random_move(rng, shape, kind, outside=3)
        size = rng.integers(1, np.array(shape) + 1).astype(np.int32)
        area = np.zeros(shape, bool)
        area[: size[0], : size[1]] = True
        selections = jax.device_get(both(move.action(), jnp.asarray(size)))
        wanted = (move.raw(), move.raw() & area)
        for selection, mask in zip(selections, wanted, strict=True):
            cells = bits.unpack_rows(selection.rows, shape[1])
            np.testing.assert_array_equal(cells, mask)
            assert selection.count == mask.sum()
            if mask.any():
                box = (selection.top, selection.left, selection.bottom, selection.right)
                rows, columns = np.nonzero(mask)
                assert box == (rows.min(), columns.min(), rows.max(), columns.max())
