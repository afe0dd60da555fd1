"""Episodes summed up in one picture."""

import numpy as np
import pytest

from jaxarc.utils.visualization.episodes import (
    EpisodeFrame,
    draw_episode_summary_svg,
    key_frames,
)
from jaxrig.report.vector import parse_drawing


def test_the_summary_shows_curves_moments_and_target(frames, read_svg):
    drawing = draw_episode_summary_svg(frames, "Episode <7>")
    picture = read_svg(drawing.as_svg())
    assert picture.texts[:2] == [
        "Episode <7>",
        "5 steps · total reward +2.500 · final similarity 1.000",
    ]
    assert {"reward", "similarity", "start", "5: Fill 5", "target"} <= set(
        picture.texts
    )
    grids = picture.cells(104 / 3)
    assert len(grids) == 7  # six moments and the target
    np.testing.assert_array_equal(grids[-2], frames[-1].target)
    np.testing.assert_array_equal(grids[0], frames[0].grid)
    assert len(picture.marks("selection")) == 5
    parse_drawing(drawing.as_svg())


def test_key_frames_are_the_ends_and_the_largest_changes():
    similarity = [0.0, 0.1, 0.6, 0.6, 0.3, 0.35, 0.35]
    assert key_frames(similarity, 2) == [0, 6]
    assert key_frames(similarity, 4) == [0, 2, 4, 6]
    assert key_frames(similarity, 100) == [0, 1, 2, 3, 4, 5, 6]
    assert key_frames([0.5], 3) == [0]
    with pytest.raises(ValueError, match="max_key_frames=1"):
        key_frames(similarity, 1)


def test_many_moments_take_several_rows(frames):
    one = draw_episode_summary_svg(frames, max_key_frames=2)
    several = draw_episode_summary_svg(frames * 5, max_key_frames=30)
    assert several.width < 1.1 * one.width
    assert several.height > one.height + 2 * 70


def test_a_reset_alone_is_an_episode(read_svg):
    drawing = draw_episode_summary_svg([EpisodeFrame(np.zeros((2, 2), int))])
    texts = read_svg(drawing.as_svg()).texts
    assert "start" in texts
    assert "target" not in texts


def test_an_episode_has_frames():
    with pytest.raises(ValueError, match="frames is empty"):
        draw_episode_summary_svg([])


def test_figures_may_be_left_out(frames, read_svg):
    drawing = draw_episode_summary_svg(frames, "Episode", show_metrics=False)
    picture = read_svg(drawing.as_svg())
    assert "reward" not in picture.texts
    assert len(picture.cells(104 / 3)) == 7
