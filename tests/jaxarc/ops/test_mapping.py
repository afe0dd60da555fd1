"""Columns and rows carried by a map equal cell-by-cell indexing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc import bits
from jaxarc.ops.mapping import carry_columns, carry_rows

columns_carried = jax.jit(carry_columns)
rows_carried = jax.jit(carry_rows, static_argnames="height")


def indexed(cells, sources):
    """Cells by source index along the last axis; False where there is none."""
    inside = (sources >= 0) & (sources < cells.shape[-1])
    return np.where(inside, cells[..., np.clip(sources, 0, cells.shape[-1] - 1)], False)


@pytest.mark.parametrize("width", [5, 8, 13, 30, 32])
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
