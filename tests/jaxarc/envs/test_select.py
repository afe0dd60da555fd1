"""Packed selections equal the masks that actions describe."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arc_play import KINDS, Move, random_move
from jaxarc import bits
from jaxarc.envs.select import select_active, select_raw


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(1, 1), (4, 9), (30, 30)])
def test_selections_equal_masks(kind, shape):
    rng = np.random.default_rng(shape[1])
    dtype = bits.word_type(*shape)

    @jax.jit
    def both(action, size):
        raw = select_raw(action, shape)
        active = bits.active_rows(size, shape[0], dtype)
        return raw, select_active(action, raw, size, active)

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


def test_other_actions_are_refused():
    with pytest.raises(TypeError, match=r"type dict is not supported.*PointAction"):
        select_raw({"operation": 1}, (3, 3))


def test_a_mask_of_another_shape_is_refused():
    action = Move("mask", 0, (0, 0, 0, 0), np.zeros((3, 4), bool)).action()
    with pytest.raises(ValueError, match=r"shape \(3, 4\), the grid \(3, 3\)"):
        select_raw(action, (3, 3))
