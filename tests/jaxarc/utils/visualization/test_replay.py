"""An episode on a page."""

import numpy as np
import pytest

from jaxarc.utils.visualization.episodes import EpisodeFrame
from jaxarc.utils.visualization.replay import episode_section
from jaxrig.report import Figure, Player, Report, Text


def test_the_section_plays_every_frame(frames, read_svg):
    section = episode_section("Solved", frames, "In `five` steps.")
    text, player, figure = section.parts
    assert isinstance(text, Text)
    assert isinstance(player, Player)
    assert isinstance(figure, Figure)
    assert len(player.frames) == 6
    assert player.captions[0] == "0: Start, reward +0.000, similarity 0.167"
    assert player.captions[5] == "5: Op 5: Fill 5, reward +0.500, similarity 1.000"
    for image, frame in zip(player.frames, frames, strict=True):
        working, target = read_svg(image).cells(100.0)
        np.testing.assert_array_equal(working, frame.grid)
        np.testing.assert_array_equal(target, frame.target)
    report = Report("Demo")
    report.add(section)
    assert "Op 5: Fill 5" in report.html()


def test_frames_of_all_sizes_have_one_picture_size(read_svg):
    sizes = [(2, 2), (4, 3), (1, 5)]
    frames = [EpisodeFrame(np.ones(size, int)) for size in sizes]
    (player, _) = episode_section("Resized", frames).parts
    assert isinstance(player, Player)
    roots = [read_svg(image).root.attrib for image in player.frames]
    assert len({(root["width"], root["height"]) for root in roots}) == 1
    (grid,) = read_svg(player.frames[2]).cells(80.0)
    assert grid.shape == (1, 5)


def test_the_curves_need_no_scaling_on_a_narrow_page(frames, read_svg):
    figure = episode_section("Solved", frames).parts[-1]
    assert isinstance(figure, Figure)
    picture = read_svg(figure.image)
    assert float(picture.root.attrib["width"]) <= 390 - 2 * 16  # less its margins
    assert {"reward", "similarity"} <= set(picture.texts)


def test_a_large_target_shrinks_the_cells_of_both(read_svg):
    frame = EpisodeFrame(np.ones((1, 1), int), target=np.ones((30, 20), int))
    (player, _) = episode_section("Small", [frame]).parts
    assert isinstance(player, Player)
    picture = read_svg(player.frames[0])
    assert [g.shape for g in picture.cells(400 / 30)] == [(1, 1), (30, 20)]
    assert float(picture.root.attrib["height"]) < 450


def test_an_episode_has_frames():
    with pytest.raises(ValueError, match="frames is empty"):
        episode_section("None", [])


def test_curves_may_be_left_out(frames):
    (player,) = episode_section("Solved", frames, show_metrics=False).parts
    assert isinstance(player, Player)
