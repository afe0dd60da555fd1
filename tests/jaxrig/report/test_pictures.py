"""Images carry their data; where a drawing is put depends on what it holds."""

import base64

import numpy as np
import pytest

from jaxrig.report import png_from_array
from jaxrig.report.pictures import image_element, image_size, picture, shown_sizes

PLAIN = '<svg viewBox="0 0 40 20"><rect id="r" fill="red"/></svg>'
THEMED = PLAIN.replace("red", "currentColor")
STYLED = '<svg><style>rect{fill:red}</style><rect id="r"/></svg>'


def png(height: int, width: int) -> bytes:
    return png_from_array(np.zeros((height, width), np.uint8))


def test_size_of_both_kinds():
    assert image_size(PLAIN, "image") == (40, 20)
    assert image_size(png(3, 7), "image") == (7, 3)


def test_size_is_never_zero():
    assert image_size('<svg width="0" height="0"/>', "image") == (1, 1)


def test_small_pixels_are_enlarged_by_one_whole_factor():
    assert shown_sizes([png(10, 12), png(5, 5)]) == [(312, 260), (130, 130)]
    assert shown_sizes([png(10, 400)]) == [(400, 10)]
    assert shown_sizes([PLAIN]) == [(40, 20)]


def test_image_element_carries_the_bytes_and_says_how_to_scale(parse):
    image = png(2, 2)
    (element,) = parse(image_element(image, 'a "b"', (320, 320))).all("img")
    assert element.attributes["alt"] == 'a "b"'
    assert element.attributes["class"] == "pixelated"
    head, _, body = element.attributes["src"].partition(",")
    assert head == "data:image/png;base64"
    assert base64.b64decode(body) == image
    (plain,) = parse(image_element(image, "", (2, 2))).all("img")
    assert "class" not in plain.attributes


@pytest.mark.parametrize(
    ("image", "inline", "paper"),
    [
        (PLAIN, True, True),
        (THEMED, True, False),
        (STYLED, False, True),
        (png(2, 2), False, True),
    ],
    ids=["plain", "themed", "styled", "png"],
)
def test_placement(parse, image, inline, paper):
    (box,) = parse(picture(image, "name", "s--")).all("div")
    assert len(box.all("svg")) == inline
    assert len(box.all("img")) == (not inline)
    assert ("paper" in box.attributes["class"].split()) == paper
    assert not box.all("style")
    if inline:
        assert box.attributes["aria-label"] == "name"
        assert box.having("id", "s--r")
    else:
        assert box.one("img").attributes["alt"] == "name"


def test_a_drawing_has_a_least_width_and_keys_reach_it_where_it_scrolls(parse):
    found = []
    for width in (560, 1000):
        drawing = f'<svg width="{width}" height="20"><rect fill="red"/></svg>'
        box = parse(picture(drawing, "A", "s--")).one("div")
        found.append((box.attributes["style"], "tabindex" in box.attributes))
    assert found == [("--least:336px", False), ("--least:600px", True)]
