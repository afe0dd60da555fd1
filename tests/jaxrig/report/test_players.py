"""Players name every control; points are packed without loss beyond the packing."""

import base64
import json
import zlib
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from jaxrig.report import Axis, Player, Points, png_from_array

FRAMES = [png_from_array(np.full((2, 4), shade, np.uint8)) for shade in (0, 90, 200)]


def player(parse, frames=FRAMES, captions=("a", "b", "c"), title="t", alt=""):
    return parse(Player(frames, captions, 12.5, title, alt).html()).one("figure")


def test_first_frame_is_visible_without_script(parse):
    images = player(parse).all("img")
    assert [("hidden" in image.attributes) for image in images] == [False, True, True]
    assert len({image.attributes["src"] for image in images}) == 3
    (controls,) = player(parse).having("class", "controls")
    assert "hidden" in controls.attributes


def test_controls_are_named_and_cover_all_frames(parse):
    figure = player(parse)
    names = [button.attributes["aria-label"] for button in figure.all("button")]
    assert names == ["Previous frame", "Play", "Next frame", "Speed 1"]
    slider = figure.one("input").attributes
    assert (slider["min"], slider["max"], slider["value"]) == ("0", "2", "0")
    assert slider["aria-label"]
    assert figure.attributes["data-frames-per-second"] == "12.5"
    assert figure.attributes["tabindex"] == "0"
    (counter,) = figure.having("class", "counter")
    assert counter.text == "1 / 3"


def test_captions_travel_with_their_frames(parse):
    figure = player(parse, captions=('"><b>', "b", "c"))
    words = [image.attributes["data-caption"] for image in figure.all("img")]
    assert words == ['"><b>', "b", "c"]
    assert figure.one("figcaption").text == '"><b>'
    assert not figure.all("b")
    bare = player(parse, captions=(), title="", alt="u")
    assert not bare.all("figcaption")
    assert bare.attributes["aria-label"] == "u"


def test_frames_of_different_size_keep_their_proportions(parse):
    small = png_from_array(np.zeros((2, 2), np.uint8))
    figure = player(parse, frames=[FRAMES[0], small], captions=())
    widths = [image.attributes["style"] for image in figure.all("img")]
    assert widths == ["width:100.00%", "width:50.00%"]
    (stage,) = figure.having("class", "stage paper")
    assert stage.attributes["style"] == "aspect-ratio:320/160"


def test_script_knows_every_action_in_the_markup(parse):
    script = (files("jaxrig.report") / "player.js").read_text()
    for button in player(parse).all("button"):
        assert f"{button.attributes['data-action']}: () =>" in script


X, Y = Axis("x", -1.0, 3.0), Axis("y", 0.0, 0.5)
PNG = png_from_array(np.zeros((2, 4, 4), np.uint8))


def unpack(canvas):
    facts = canvas.attributes
    shape = int(facts["data-frames"]), int(facts["data-points"]), 2
    halves = zlib.decompress(base64.b64decode(facts["data-packed"]))
    low, high = np.frombuffer(halves, np.uint8).reshape(2, -1).astype(np.uint16)
    packed = (low + 256 * high).reshape(shape)
    for _ in range(2):
        packed = np.cumsum(packed, axis=0, dtype=np.uint16)
    shares = (packed & 0x1FFF) / 0x1FFF
    positions = shares * [4.0, 0.5] + [-1.0, 0.0]
    return positions, packed[..., 0] >= 0x8000, packed[..., 1] >= 0x8000


def canvas_of(parse, *args, **options):
    return parse(Points(*args, **options).html()).one("canvas")


@given(
    hnp.arrays(
        np.float64,
        hnp.array_shapes(min_dims=2, max_dims=2).map(lambda s: (*s, 2)),
        elements=st.floats(0, 1),
    ),
    st.randoms(use_true_random=False),
)
def test_positions_survive_the_packing(parse, shares, random):
    positions = shares * [4.0, 0.5] + [-1.0, 0.0]
    starts = np.array([random.random() < 0.5 for _ in range(shares[..., 0].size)])
    starts = starts.reshape(shares.shape[:2])
    read, begun, absent = unpack(canvas_of(parse, positions, X, Y, starts=starts))
    assert not absent.any()
    np.testing.assert_array_equal(begun, starts)
    assert (np.abs(read - positions) <= np.array([4.0, 0.5]) / 0x1FFF).all()


def test_absent_and_outside_points_are_marked(parse):
    positions = np.array(
        [[[0.0, 0.1], [np.nan, 0.1], [0.0, np.nan]], [[3.5, 0.1], [0, -1], [3.0, 0.5]]]
    )
    read, _, absent = unpack(canvas_of(parse, positions, X, Y))
    np.testing.assert_array_equal(absent, [[0, 1, 1], [1, 1, 0]])
    np.testing.assert_allclose(read[1, 2], [3.0, 0.5])


@pytest.mark.parametrize("shades", [[2, 0], [[0, 1], [1, 0], [2, 2]]])
def test_shades_are_one_byte_each(parse, shades):
    positions = np.zeros((3, 2, 2))
    canvas = canvas_of(
        parse,
        positions,
        X,
        Y,
        shades=np.array(shades),
        colors=["#000000", "#111111", "#222222"],
    )
    read = np.frombuffer(base64.b64decode(canvas.attributes["data-shades"]), np.uint8)
    np.testing.assert_array_equal(read, np.ravel(shades))
    assert canvas.attributes["data-colors"] == "#000000,#111111,#222222"


def test_the_stage_has_its_picture_axes_captions_and_controls(parse):
    words = ['t = 0 "a"', "t = 1 <b>"]
    part = Points(
        np.zeros((2, 1, 2)), X, Y, PNG, captions=words, title="T", alt="A", height=0.5
    )
    root = parse(part.html())
    assert json.loads(root.one("canvas").attributes["data-captions"]) == words
    assert root.one("figcaption").text == words[0]
    assert root.one("canvas").attributes["aria-label"] == "A"
    assert root.one("img").attributes["src"].startswith("data:image/png")
    (stage,) = root.having("class", "stage field")
    assert stage.attributes["style"] == "aspect-ratio:640/320"
    ends = [root.having("class", f"{axis}-ends")[0].text for axis in "xy"]
    assert ends == ["-1x3", "0y0.5"]
    assert root.one("input").attributes["max"] == "1"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"positions": np.zeros((2, 3))}, r"positions has shape \(2, 3\)"),
        ({"positions": np.zeros((0, 3, 2))}, "at least one frame"),
        ({"shades": np.zeros(3, int)}, r"shades has shape \(3,\)"),
        ({"shades": np.array([0.5])}, "whole numbers"),
        ({"shades": np.array([6])}, "0 to 4"),
        ({"colors": ["red"]}, "#rrggbb"),
        ({"colors": []}, "1 to 256"),
        ({"starts": np.zeros((1, 1), bool)}, "starts has shape"),
        ({"trail": -1}, "trail is -1"),
        ({"radius": 0}, "radius is 0"),
        ({"height": float("nan")}, "height is nan"),
        ({"captions": ["a"]}, "captions has 1"),
        ({"frames_per_second": 61}, "per_second is 61"),
        ({"background": b"GIF89a"}, "background"),
    ],
)
def test_refusals(options, message):
    with pytest.raises(ValueError, match=message):
        Points(**{"positions": np.zeros((2, 1, 2)), "x_axis": X, "y_axis": Y} | options)


@pytest.mark.parametrize("ends", [(1, 1), (2, 1), (0, float("inf"))])
def test_an_axis_has_two_ends(ends):
    with pytest.raises(ValueError, match="Axis"):
        Axis("x", *ends)
