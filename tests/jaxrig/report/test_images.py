"""Pixels survive, damage is noticed, and drawings are sealed off from the page."""

import base64
import functools
import xml.etree.ElementTree as ElementTree
from urllib.parse import unquote

import imageio.v3 as imageio
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from jaxrig.report import images, png_from_array

decode = functools.partial(imageio.imread, extension=".png")
SHAPES = st.one_of(
    st.tuples(st.integers(1, 9), st.integers(1, 9)),
    st.tuples(st.integers(1, 9), st.integers(1, 9), st.sampled_from([3, 4])),
)


@given(hnp.arrays(np.uint8, SHAPES))
def test_pixels_survive(pixels):
    png = png_from_array(pixels)
    np.testing.assert_array_equal(decode(png), pixels)
    assert images.png_size(png) == (pixels.shape[1], pixels.shape[0])


def test_views_are_encoded_as_they_look():
    pixels = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
    turned = pixels.transpose(1, 0, 2)[::-1, ::2]
    np.testing.assert_array_equal(decode(png_from_array(turned)), turned)


@pytest.mark.parametrize("shape", [(3,), (2, 2, 2), (2, 2, 1), (1, 2, 2, 3), (0, 4)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match="pixels has shape"):
        png_from_array(np.zeros(shape, np.uint8))
    with pytest.raises(TypeError, match=r"float64.*uint8"):
        png_from_array(np.zeros((2, 2)))


def test_a_file_cut_short_is_noticed():
    png = png_from_array(np.arange(16, dtype=np.uint8).reshape(4, 4))
    for index in range(len(png)):
        with pytest.raises(ValueError, match="frame 7"):
            images.png_size(png[:index], "frame 7")
    with pytest.raises(ValueError, match="frame 7 is 0 x 4 pixels"):
        images.png_size(png[:16] + bytes(4) + png[20:], "frame 7")


PLAIN = '<svg viewBox="0 0 40 20"><rect id="r" fill="red"/></svg>'
THEMED = PLAIN.replace("red", "currentColor")


def png(height: int, width: int) -> bytes:
    return png_from_array(np.zeros((height, width), np.uint8))


def test_size_of_both_kinds():
    assert images.image_size(PLAIN, "image") == (40, 20)
    assert images.image_size(png(3, 7), "image") == (7, 3)
    assert images.image_size('<svg width="0" height="0"/>', "image") == (
        1,
        1,
    )  # never zero


def test_small_pixels_are_enlarged_by_one_whole_factor():
    assert images.shown_sizes([png(10, 12), png(5, 5)]) == [(312, 260), (130, 130)]
    assert images.shown_sizes([png(10, 400)]) == [(400, 10)]
    assert images.shown_sizes([PLAIN]) == [(40, 20)]


def test_image_element_carries_the_bytes_and_says_how_to_scale(parse):
    image = png(2, 2)
    (element,) = parse(images.image_element(image, 'a "b"', (320, 320))).all("img")
    assert element.attributes["alt"] == 'a "b"'
    assert element.attributes["class"] == "pixelated"
    head, _, body = element.attributes["src"].partition(",")
    assert head == "data:image/png;base64"
    assert base64.b64decode(body) == image
    (plain,) = parse(images.image_element(image, "", (2, 2))).all("img")
    assert "class" not in plain.attributes


@pytest.mark.parametrize(
    ("image", "paper"),
    [(PLAIN, True), (THEMED, False), (png(2, 2), True)],
    ids=["plain", "themed", "png"],
)
def test_a_picture_is_one_image_in_a_box(parse, image, paper):
    (box,) = parse(images.picture(image, "name")).all("div")
    assert [node.tag for node in box.children] == ["img"]
    assert ("paper" in box.attributes["class"].split()) == paper
    assert box.one("img").attributes["alt"] == "name"


def test_a_drawing_has_a_least_width_and_keys_reach_it_where_it_scrolls(parse):
    found = []
    for width in (560, 1000):
        drawing = f'<svg width="{width}" height="20"><rect fill="red"/></svg>'
        box = parse(images.picture(drawing, "A")).one("div")
        found.append((box.attributes["style"], "tabindex" in box.attributes))
    assert found == [("--least:336px", False), ("--least:600px", True)]


def svg(inside: str = "", attributes: str = "") -> str:
    return f'<svg xmlns="http://www.w3.org/2000/svg" {attributes}>{inside}</svg>'


@pytest.mark.parametrize(
    "text",
    [
        '<!DOCTYPE svg [<!ENTITY a "b">]>' + svg("<text>&a;</text>"),
        "<svg><rect></svg>",
        "<html><svg/></html>",
        "a picture",
        "",
        svg("<text>\ud800</text>"),
    ],
)
def test_what_is_not_a_drawing_is_refused_by_name(text):
    with pytest.raises(ValueError, match=r"frames\[3\]"):
        images.parse_drawing(text, "frames[3]")


def image(text: str) -> ElementTree.Element:
    head, _, body = images.parse_drawing(text).uri().partition(",")
    assert head == "data:image/svg+xml"
    assert not set('"<>&#\n') & set(body)
    return ElementTree.fromstring(unquote(body))


def test_an_image_holds_the_whole_drawing():
    inside = (
        '<g id="a"><rect width="1" data-x="1 > 0"/>one<text x="2">a &lt; b &amp; 50%'
        '<tspan class="c">\u03c0 two</tspan> three\n</text></g>'
        "<circle r='3'/><image href='data:image/png;base64,AAAA'/>"
    )
    source = svg(inside, 'viewBox="0 0 10 5" data-y="2 > 1"')
    declared = '<?xml version="1.0" encoding="utf-8"?>\n<!-- a comment -->' + source
    before, after = ElementTree.fromstring(source), image(declared)
    assert after.attrib.pop("font-family")
    for old, new in zip(before.iter(), after.iter(), strict=True):
        assert (old.tag, old.attrib) == (new.tag, new.attrib)
        assert (old.text or "", old.tail or "") == (new.text or "", new.tail or "")
    assert image("<svg/>").tag == image(PLAIN).tag == after.tag, "a name space is added"


def test_theme_reaches_images_that_ask_for_it():
    themed, plain = svg('<path stroke="currentColor"/>'), svg('<path stroke="red"/>')
    assert "prefers-color-scheme" in (image(themed)[0].text or "")
    assert [node.tag for node in image(plain)] == ["{http://www.w3.org/2000/svg}path"]
    assert not len(image('<svg fill="currentColor"/>'))


@pytest.mark.parametrize(
    ("attributes", "size"),
    [
        ('width="40" height="30px" viewBox="0 0 4 3"', (40, 30)),
        ('width="30pt" height="15pt"', (40, 20)),
        ('width="100%" height="50%" viewBox="-2 -2 64 48"', (64, 48)),
        ('viewBox="0,0,8.5,2"', (8.5, 2)),
        ("", (300, 150)),
    ],
)
def test_size(attributes, size):
    assert images.parse_drawing(svg(attributes=attributes)).size() == size
