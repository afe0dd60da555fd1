"""Pixels survive, damage is noticed, drawings that could act or fetch are refused."""

import base64
import functools
import re
import xml.etree.ElementTree as ElementTree

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
STYLED = '<svg><style>rect{fill:red}</style><rect id="r"/></svg>'
MOVING = '<svg><rect><animate attributeName="x" to="3"/></rect></svg>'


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
    ("image", "inline", "paper"),
    [
        (PLAIN, True, True),
        (THEMED, True, False),
        (STYLED, False, True),
        (MOVING, False, True),
        (png(2, 2), False, True),
    ],
    ids=["plain", "themed", "styled", "moving", "png"],
)
def test_placement(parse, image, inline, paper):
    (box,) = parse(images.picture(image, "name", "s--")).all("div")
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
        box = parse(images.picture(drawing, "A", "s--")).one("div")
        found.append((box.attributes["style"], "tabindex" in box.attributes))
    assert found == [("--least:336px", False), ("--least:600px", True)]


NS = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'


def svg(inside: str = "", attributes: str = "") -> str:
    return f"<svg {NS} {attributes}>{inside}</svg>"


HOSTILE = {
    "script": svg("<script>alert(1)</script>"),
    "script in capitals": svg("<SCRIPT>alert(1)</SCRIPT>"),
    "script of HTML": svg(
        '<h:script xmlns:h="http://www.w3.org/1999/xhtml">alert(1)</h:script>'
    ),
    "script in metadata": svg("<metadata><script/></metadata>"),
    "foreignObject": svg("<foreignObject><p/></foreignObject>"),
    "event": svg('<rect onclick="alert(1)"/>'),
    "event on the root": svg(attributes='onload="alert(1)"'),
    "event in capitals": svg('<rect OnClick="alert(1)"/>'),
    "event by animation": svg('<set attributeName="onclick" to="alert(1)"/>'),
    "link by animation": svg('<animate attributeName="xlink:href" to="#a"/>'),
    "javascript link": svg('<a href="javascript:alert(1)"/>'),
    "javascript with gaps": svg('<a xlink:href="java&#10;script:alert(1)"/>'),
    "javascript elsewhere": svg('<rect data-to=" JavaScript:alert(1)"/>'),
    "http": svg('<image href="http://example.org/a.png"/>'),
    "https": svg('<image xlink:href="https://example.org/a.png"/>'),
    "file": svg('<image href="file:///etc/passwd"/>'),
    "no scheme": svg('<image href="//example.org/a.png"/>'),
    "relative": svg('<image href="a.png"/>'),
    "data that is a page": svg('<a href="data:text/html;base64,AAAA"/>'),
    "nested drawing": svg('<image href="data:image/svg+xml;base64,AAAA"/>'),
    "fill": svg('<rect fill="url(http://example.org/a.svg#b)"/>'),
    "style attribute": svg("<rect style=\"fill: URL( '//example.org/a')\"/>"),
    "style rule": svg("<style>rect{fill:url(https://example.org/a)}</style>"),
    "import": svg('<style>@import "https://example.org/a.css";</style>'),
    "escaped import": svg('<style>@\\69mport "//example.org";</style>'),
    "other ways to fetch": svg("<rect style='mask:image-set(\"//a.org/b\" 1x)'/>"),
    "base": svg('<g xml:base="https://example.org/"/>'),
    "HTML element": svg("<img/>"),
    "HTML that leaves the drawing": svg("<div><p>words</p></div>"),
    "markup in a title": svg("<title><g/></title>"),
    "entity": '<!DOCTYPE svg [<!ENTITY a "b">]>' + svg("<text>&a;</text>"),
    "deep": svg("<g>" * 500 + "</g>" * 500),
    "not closed": "<svg><rect></svg>",
    "other root": "<html><svg/></html>",
    "no markup": "a picture",
    "empty": "",
    "surrogate": svg("<text>\ud800</text>"),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_drawings_are_refused_by_name(text):
    with pytest.raises(ValueError, match=r"frames\[3\]"):
        images.parse_drawing(text, "frames[3]")


def image(text: str) -> ElementTree.Element:
    head, _, body = images.parse_drawing(text).uri().partition(",")
    assert head == "data:image/svg+xml;base64"
    return ElementTree.fromstring(base64.b64decode(body))


def test_image_keeps_shapes_text_and_order():
    source = svg(
        '<g id="a"><rect width="1"/>one<text x="2" xml:space="preserve">'
        'a &lt; b <tspan class="c">two</tspan> three</text></g>'
        "<circle r='3'/><image href='data:image/png;base64,AAAA'/>",
        'viewBox="0 0 10 5"',
    )
    before, after = ElementTree.fromstring(source), image(source)
    after.attrib.pop("font-family")
    for old, new in zip(before.iter(), after.iter(), strict=True):
        assert (old.tag, old.attrib) == (new.tag, new.attrib)
        assert (old.text or "") == (new.text or "")
        assert (old.tail or "") == (new.tail or "")


def test_declarations_comments_and_metadata_are_left_out():
    text = (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        '<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/a.dtd">\n'
        "<!-- a comment -->"
        + svg(
            '<metadata><r:RDF xmlns:r="http://www.w3.org/r#"><r:a r:resource='
            '"http://purl.org/a"/></r:RDF></metadata><rect width="4"/>'
            '<i:grid xmlns:i="http://www.inkscape.org/"/>'
        )
    )
    inline = images.parse_drawing(text).inline("s--")
    assert "<rect" in inline
    assert re.findall("https?:[^\"'<> ]*", inline) == ["http://www.w3.org/2000/svg"]
    assert not re.search("<!|<[?]|metadata|RDF|grid", inline)


def test_ids_and_all_references_move_into_the_scope():
    drawn = images.parse_drawing(
        svg(
            '<linearGradient id="g"/><path id="p" class="player"/>'
            '<rect fill="url(#g)" style="stroke: url( \'#g\' )"/>'
            '<use xlink:href="#p"/><use href="#p"/>'
            '<g aria-labelledby="g p"/><text fill="#fff">#g</text>'
        )
    ).inline("x--")
    root = ElementTree.fromstring(drawn)
    nodes = list(root)
    assert nodes[0].attrib == {"id": "x--g"}
    assert nodes[1].attrib == {"id": "x--p"}
    assert nodes[2].attrib == {"fill": "url(#x--g)", "style": "stroke: url(#x--g)"}
    assert nodes[3].attrib == nodes[4].attrib == {"href": "#x--p"}
    assert nodes[5].attrib == {"aria-labelledby": "x--g x--p"}
    assert nodes[6].attrib == {"fill": "#fff"}
    assert nodes[6].text == "#g"


def test_theme_reaches_images_that_ask_for_it():
    themed, plain = svg('<path stroke="currentColor"/>'), svg('<path stroke="red"/>')
    assert "prefers-color-scheme" in (image(themed)[0].text or "")
    assert [node.tag for node in image(plain)] == ["{http://www.w3.org/2000/svg}path"]


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
