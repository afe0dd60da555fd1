"""Boxes around selections, against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from jaxarc.utils.selection import (
    extract_bounding_box_region,
    extract_object_rectangle,
    get_selection_bounding_box,
    validate_single_cell_selection,
)

SHAPE = (5, 7)
bounding_box = jax.jit(get_selection_bounding_box)
region = jax.jit(extract_bounding_box_region)
rectangle = jax.jit(extract_object_rectangle)


@given(
    hnp.arrays(bool, SHAPE),
    hnp.arrays(np.int32, SHAPE, elements=st.integers(0, 9)),
)
def test_boxes(mask, grid):
    selected, cells = jnp.asarray(mask), jnp.asarray(grid)
    box = [int(side) for side in bounding_box(selected)]
    wanted = np.full(SHAPE, -1)
    alone = wanted.copy()
    if mask.any():
        rows, columns = np.nonzero(mask)
        top, bottom, left, right = rows.min(), rows.max(), columns.min(), columns.max()
        assert box == [top, bottom, left, right]
        part = (slice(top, bottom + 1), slice(left, right + 1))
        place = (slice(0, bottom - top + 1), slice(0, right - left + 1))
        wanted[place] = grid[part]
        alone[place] = np.where(mask[part], grid[part], -1)
    else:
        assert box == [-1] * 4
    np.testing.assert_array_equal(region(cells, selected), wanted)
    np.testing.assert_array_equal(rectangle(cells, selected), alone)
    single = validate_single_cell_selection(selected)
    assert bool(single) == (mask.sum() == 1)
