"""Colors, cropped cells and pixels, against naive loops."""

import itertools
import re
from importlib.resources import files

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from jaxarc.draw.cells import (
    COLOR_SCHEMES,
    cell_color,
    detect_changed_cells,
    ink_on,
    read_cells,
    render_rgb,
)
from jaxarc.types import Grid

# Machado, Oliveira and Fernandes 2009, complete loss of one kind of cone.
EYES = {
    "three kinds of cones": np.eye(3),
    "no red cones": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "no green cones": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
}
XYZ = np.array(
    [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
)


def linear(color):
    share = np.array(list(bytes.fromhex(color[1:]))) / 255
    return np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)


def lab(color, eyes):
    seen = np.clip(EYES[eyes] @ linear(color), 0, 1)
    share = XYZ @ seen / np.array([0.9505, 1.0, 1.089])
    root = np.where(share > 0.008856, np.cbrt(share), 7.787 * share + 16 / 116)
    return np.array(
        [116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])]
    )


def least_distance(scheme, eyes):
    points = [lab(color, eyes) for color in COLOR_SCHEMES[scheme][:10]]
    return min(np.linalg.norm(a - b) for a, b in itertools.combinations(points, 2))


def test_the_default_palette_is_the_documented_one():
    assert " ".join(COLOR_SCHEMES["default"]) == (
        "#252525 #0074D9 #FF4136 #37D449 #FFDC00 #E6E6E6 #F012BE #FF871E #54D2EB "
        "#8D1D2C #FFFFFF"
    )


def test_the_studio_and_pages_share_the_colors_of_arc():
    script = (files("jaxrig.studio") / "static/grid.js").read_text()
    named = re.findall(r"#[0-9A-F]{6}", script.partition("export const NAMES")[0])
    assert tuple(named) == COLOR_SCHEMES["arc"][:10]


def test_all_eyes_can_tell_the_colorblind_scheme_apart():
    assert all(least_distance("colorblind", eyes) > 20 for eyes in EYES)
    assert least_distance("default", "no red cones") < 20


@pytest.mark.parametrize(
    "color", sorted({c for s in COLOR_SCHEMES.values() for c in s})
)
def test_ink_has_the_higher_contrast(color):
    weights = np.array([0.2126, 0.7152, 0.0722])

    def contrast(other):
        light = sorted(float(linear(c) @ weights) for c in (color, other))
        return (light[1] + 0.05) / (light[0] + 0.05)

    other = {"#000000": "#FFFFFF", "#FFFFFF": "#000000"}[ink_on(color)]
    assert contrast(ink_on(color)) >= contrast(other)


SHAPES = hnp.array_shapes(min_dims=2, max_dims=2, max_side=5)


@given(SHAPES.flatmap(lambda s: hnp.arrays(np.int32, s, elements=st.integers(-1, 9))))
def test_the_box_holds_all_real_cells_and_no_more(grid):
    cells = read_cells(grid)
    real = [tuple(index) for index in np.argwhere(grid >= 0)]
    found = [(r + cells.top, c + cells.left) for r, c in np.argwhere(cells.active)]
    assert sorted(found) == sorted(real)
    assert [cells.values[r - cells.top, c - cells.left] for r, c in real] == [
        grid[r, c] for r, c in real
    ]
    if real:
        edges = (cells.active[side] for side in np.s_[0, -1])
        assert all(edge.any() for edge in edges)
        edges = (cells.active[:, side] for side in np.s_[0, -1])
        assert all(edge.any() for edge in edges)


def test_a_mask_decides_and_a_grid_brings_its_own():
    data = np.array([[0, 5, -1], [7, 1, -1]], np.int32)
    mask = np.array([[False, True, False], [False, True, False]])
    for cells in (
        read_cells(data, mask),
        read_cells(Grid(jnp.asarray(data), jnp.asarray(mask))),
    ):
        np.testing.assert_array_equal(cells.values, [[5], [1]])
        assert (cells.top, cells.left, cells.size) == (0, 1, "2x1")


def test_overlays_are_cut_like_the_grid():
    cells = read_cells(np.array([[-1, -1], [-1, 3]]))
    np.testing.assert_array_equal(cells.crop(np.array([[0, 0], [0, 1]])), [[True]])
    np.testing.assert_array_equal(cells.crop(np.ones((1, 1), bool)), [[False]])
    np.testing.assert_array_equal(cells.crop(None), [[False]])


@given(*[hnp.arrays(np.int32, (3, 4), elements=st.integers(-1, 9))] * 2)
def test_changes_are_cells_that_differ_and_cover_both_sizes(before, after):
    np.testing.assert_array_equal(detect_changed_cells(before, after), before != after)
    found = detect_changed_cells(np.array([[1, 2]]), np.array([[1], [3]]))
    np.testing.assert_array_equal(found, [[False, True], [True, False]])


def test_what_is_no_grid_is_refused():
    with pytest.raises(TypeError, match="float64"):
        read_cells(np.ones((2, 2)))
    with pytest.raises(ValueError, match=r"\(2, 2, 2\)"):
        read_cells(np.ones((2, 2, 2), int))
    with pytest.raises(ValueError, match="mask has shape"):
        read_cells(np.ones((2, 2), int), np.ones((1, 2), bool))
    with pytest.raises(TypeError, match="jax_log_grid"):
        jax.jit(lambda grid: read_cells(grid).values)(jnp.ones((2, 2), jnp.int32))
    with pytest.raises(ValueError, match="default, high_contrast, colorblind"):
        render_rgb(np.zeros((1, 1), int), scheme="neon")
    with pytest.raises(ValueError, match="cell_size=0"):
        render_rgb(np.zeros((1, 1), int), 0)


@pytest.mark.parametrize("scheme", COLOR_SCHEMES)
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
