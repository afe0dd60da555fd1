import jax.numpy as jnp
import numpy as np

import arc_hand as hand
from jaxarc import bits
from jaxarc.ops.canvas import blank_canvas


def test_a_blank_canvas_holds_the_grid_and_no_content():
    canvas = hand.canvas_of("12. 30. ...")
    assert hand.shown(canvas) == "12. 30. ..."
    assert not np.any(canvas.clipboard)
    np.testing.assert_array_equal(bits.unpack_rows(canvas.active(), 3).sum(), 4)


def test_a_canvas_may_have_leading_axes():
    planes = jnp.zeros((5, 2, 4, 3), jnp.uint8)
    canvas = blank_canvas(planes, jnp.full((5, 2, 2), 3, jnp.int32), 3)
    assert canvas.clipboard.shape == (5, 2, 5, 3)
    assert canvas.active().shape == (5, 2, 3)
