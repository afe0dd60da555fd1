"""Pixels against a loop over cells."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.utils.visualization.palette import cell_color
from jaxarc.utils.visualization.raster import render_rgb


@pytest.mark.parametrize("scheme", ["default", "high_contrast", "colorblind"])
def test_every_pixel_has_the_color_of_its_cell(scheme):
    grid = np.array([[0, 9, -1], [5, 11, 3]])
    image = render_rgb(grid, 3, scheme)
    assert image.shape == (6, 9, 3)
    assert image.dtype == np.uint8
    for row in range(6):
        for column in range(9):
            color = cell_color(int(grid[row // 3, column // 3]), scheme)
            assert bytes(image[row, column]) == bytes.fromhex(color[1:])


def test_twenty_pixels_unless_told_and_masks_count():
    mask = np.array([[True, False]])
    image = render_rgb(jnp.zeros((1, 2), jnp.int32), mask=mask)
    assert image.shape == (20, 40, 3)
    assert set(image[:, 20:].ravel()) == {255}


def test_a_cell_has_at_least_one_pixel():
    with pytest.raises(ValueError, match="cell_size=0"):
        render_rgb(np.zeros((1, 1), int), 0)
