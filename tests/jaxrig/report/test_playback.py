"""A player shows its first frame at once and names every control."""

from importlib.resources import files

import numpy as np

from jaxrig.report import png_from_array
from jaxrig.report.playback import player_element

FRAMES = [png_from_array(np.full((2, 4), shade, np.uint8)) for shade in (0, 90, 200)]


def player(parse, frames=FRAMES, captions=("a", "b", "c"), title="t", alt=""):
    return parse(player_element(frames, captions, 12.5, title, alt)).one("figure")


def test_first_frame_is_visible_without_script(parse):
    images = player(parse).all("img")
    assert [("hidden" in image.attributes) for image in images] == [False, True, True]
    assert len({image.attributes["src"] for image in images}) == 3


def test_controls_wait_for_the_script(parse):
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


def test_player_without_captions_has_no_caption(parse):
    assert not player(parse, captions=()).all("figcaption")


def test_name_falls_back_from_title_to_alt(parse):
    assert player(parse).attributes["aria-label"] == "t"
    assert player(parse, title="", alt="u").attributes["aria-label"] == "u"
    assert player(parse, title="").attributes["aria-label"] == "Player"


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
