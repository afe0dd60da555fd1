"""Columns and rows carried by a map equal cell-by-cell indexing.

Every operation equals the naive reference, for every kind of action and shape.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import arc_hand as hand
import arc_reference as reference
from jaxarc import actions, bits
from jaxarc.ops.canvas import (
    Canvas,
    apply_operation,
    carry_columns,
    carry_rows,
    select_rows,
)


def with_box(rows):
    selection = select_rows(rows)
    return selection, selection.box()


@pytest.mark.parametrize("shape", [(5, 5), (9, 16), (32, 32)])
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


columns_carried = jax.jit(carry_columns)
rows_carried = jax.jit(carry_rows, static_argnames="height")


def indexed(cells, sources):
    """Cells by source index along the last axis; False where there is none."""
    inside = (sources >= 0) & (sources < cells.shape[-1])
    return np.where(inside, cells[..., np.clip(sources, 0, cells.shape[-1] - 1)], False)


@pytest.mark.parametrize("width", [5, 16, 32])
@pytest.mark.parametrize("reverse", [False, True])
def test_columns_land_where_the_map_says(width, reverse):
    rng = np.random.default_rng(width)
    cells = rng.random((3, width, width)) < 0.5
    layers = jnp.asarray(bits.pack_rows(cells))
    offsets = range(2 * width - 1) if reverse else range(1 - width, width)
    for offset in offsets:
        arguments = map(jnp.asarray, (offset, reverse, False, width))
        moved = np.asarray(columns_carried(layers, *arguments))
        column = np.arange(width)
        expected = indexed(cells, offset - column if reverse else offset + column)
        np.testing.assert_array_equal(bits.unpack_rows(moved, width), expected)


@pytest.mark.parametrize("size", [1, 2, 7])
@pytest.mark.parametrize("offset", [-1, 1])
def test_with_wrapping_one_side_comes_in_at_the_other(size, offset):
    cells = np.random.default_rng(size).random((2, 7, 7)) < 0.5
    cells[..., size:] = False
    layers = jnp.asarray(bits.pack_rows(cells))
    arguments = map(jnp.asarray, (offset, False, True, size))
    moved = np.asarray(columns_carried(layers, *arguments))
    found = bits.unpack_rows(moved, 7)[..., :size]
    np.testing.assert_array_equal(found, np.roll(cells[..., :size], -offset, axis=-1))
    turned = jnp.asarray(bits.pack_rows(np.swapaxes(cells, 1, 2)))
    arguments = map(jnp.asarray, (offset, False, True, size))
    moved = np.asarray(rows_carried(turned, *arguments, height=7))
    rows = bits.unpack_rows(moved, 7)[:, :size]
    np.testing.assert_array_equal(np.swapaxes(rows, 1, 2), found)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("height", [4, 9])
def test_rows_land_where_the_map_says(reverse, height):
    cells = np.random.default_rng(1).random((2, 9, 9)) < 0.5
    layers = jnp.asarray(bits.pack_rows(cells))
    for offset in range(-9, 18):
        arguments = map(jnp.asarray, (offset, reverse, False, 9))
        moved = np.asarray(rows_carried(layers, *arguments, height=height))
        found = bits.unpack_rows(moved, 9)
        row = np.arange(height)
        sources = offset - row if reverse else offset + row
        expected = np.swapaxes(indexed(np.swapaxes(cells, 1, 2), sources), 1, 2)
        np.testing.assert_array_equal(found, expected)


CASES = 200


def packed_clipboards(clipboards):
    content = clipboards >= 0
    origins = [reference.box_of(c)[:2] if c.any() else (0, 0) for c in content]
    layers = [bits.pack_grid(clipboards), bits.pack_rows(content)[:, None]]
    return np.concatenate(layers, axis=1), np.array(origins, np.int32)


def random_case(rng, shape, kind):
    (r1, r2), (c1, c2) = reference.random_corners(rng, shape).T
    mask = np.zeros(shape, bool)
    if kind == "point":
        r2, c2 = r1, c1
    top, bottom, left, right = min(r1, r2), max(r1, r2), min(c1, c2), max(c1, c2)
    mask[top : bottom + 1, left : right + 1] = True
    if kind == "mask":
        mask &= rng.random(shape) < rng.choice([0.0, 0.1, 0.5, 1.0])
    return {
        "operation": np.int32(rng.integers(42)),
        "corners": np.asarray((r1, c1, r2, c2), np.int32),
        "mask": mask,
        "grid": reference.random_grid(rng, shape),
        "clipboard": reference.random_clipboard(rng, shape),
        "given": reference.random_grid(rng, shape),
    }


def make_action(kind, operation, corners, mask):
    if kind == "point":
        return actions.PointAction(operation, corners[0], corners[1])
    if kind == "bbox":
        r1, c1, r2, c2 = corners
        return actions.BboxAction(operation, r1, c1, r2, c2)
    return actions.MaskAction(operation, mask)


def run(kind, shape, cases):
    def one(operation, corners, mask, grid, copied, given):
        canvas = Canvas(grid.planes, grid.size, grid.width, *copied)
        action = make_action(kind, operation, corners, mask)
        raw = action.pack(shape)
        selection = action.pack_active(raw, canvas)
        after = apply_operation(operation, canvas, selection, raw, given)
        content = bits.unpack_grid(after.clipboard[:4], after.clipboard[4], shape[1])
        return after.cells(), content

    batch = {name: np.stack([case[name] for case in cases]) for name in cases[0]}
    plain = (batch["operation"], batch["corners"], batch["mask"])
    grids, given = hand.packed(batch["grid"]), hand.packed(batch["given"])
    copied = packed_clipboards(batch["clipboard"])
    return jax.jit(jax.vmap(one))(*plain, grids, copied, given)


# Masks are the general case: they alone meet the edges of every word length.
MASKED = [(1, 7), (8, 8), (16, 16), (32, 32)]


@pytest.mark.parametrize(
    ("kind", "shape"),
    [("point", (6, 13)), ("bbox", (6, 13)), *(("mask", shape) for shape in MASKED)],
)
def test_every_operation_equals_the_reference(kind, shape):
    rng = np.random.default_rng(sum(shape))
    cases = [random_case(rng, shape, kind) for _ in range(CASES)]
    grids, clipboards = map(np.asarray, run(kind, shape, cases))
    for case, grid, clipboard in zip(cases, grids, clipboards, strict=True):
        wanted, copied = reference.apply(
            case["operation"],
            case["grid"],
            case["clipboard"],
            case["mask"],
            case["given"],
        )
        if np.array_equal(grid, wanted) and np.array_equal(clipboard, copied):
            continue  # large grids take milliseconds to print: only where they differ
        message = f"operation {case['operation']}\n{case['grid']}\n{case['mask']}"
        np.testing.assert_array_equal(grid, wanted, err_msg=message)
        np.testing.assert_array_equal(clipboard, copied, err_msg=message)
