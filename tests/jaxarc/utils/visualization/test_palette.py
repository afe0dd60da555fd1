"""Colors as documented, and apart for eyes of three kinds."""

import itertools

import numpy as np
import pytest

from jaxarc.utils.visualization.palette import (
    ARC_COLOR_PALETTE,
    COLOR_SCHEMES,
    cell_color,
    cell_pixels,
    get_color_scheme,
    ink_on,
)

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
    assert ARC_COLOR_PALETTE == {
        0: "#252525",
        1: "#0074D9",
        2: "#FF4136",
        3: "#37D449",
        4: "#FFDC00",
        5: "#E6E6E6",
        6: "#F012BE",
        7: "#FF871E",
        8: "#54D2EB",
        9: "#8D1D2C",
        10: "#FFFFFF",
    }


def test_all_eyes_can_tell_the_colorblind_scheme_apart():
    assert all(least_distance("colorblind", eyes) > 20 for eyes in EYES)
    assert least_distance("default", "no red cones") < 20


def test_high_contrast_is_further_apart_than_the_default():
    eyes = "three kinds of cones"
    assert least_distance("high_contrast", eyes) > least_distance("default", eyes)


@pytest.mark.parametrize("scheme", COLOR_SCHEMES)
def test_pixels_are_the_colors(scheme):
    values = np.arange(-2, 13)
    found = ["#" + bytes(pixel).hex().upper() for pixel in cell_pixels(values, scheme)]
    assert found == [cell_color(int(value), scheme) for value in values]


def test_padding_is_white_and_the_unknown_gray():
    assert cell_color(-1) == cell_color(10) == "#FFFFFF"
    assert cell_color(-2) == cell_color(11) == "#808080"


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


def test_an_unknown_scheme_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="default, high_contrast, colorblind"):
        get_color_scheme("neon")
