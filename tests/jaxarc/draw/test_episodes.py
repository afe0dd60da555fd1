"""Steps and episodes read back from their pictures."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.actions import create_bbox_action, create_mask_action, create_point_action
from jaxarc.draw.episodes import (
    EpisodeFrame,
    draw_episode,
    draw_step,
    episode_section,
    key_frames,
)
from jaxrig.report import Beside, Figure, Player, Report
from jaxrig.report.images import parse_drawing

BEFORE = np.array([[0, 1, -1], [2, 3, -1], [-1, -1, -1]])
AFTER = np.array([[0, 7, -1], [2, 7, -1], [-1, -1, -1]])
SELECTION = np.array([[False, True, False]] * 2 + [[False] * 3])
SIDE = 40.0


@pytest.mark.parametrize(
    "action",
    [
        create_bbox_action(7, 0, 1, 1, 1),
        create_mask_action(7, SELECTION),
        {"operation": 7, "selection": SELECTION},
    ],
    ids=["bbox", "mask", "dictionary"],
)
def test_before_and_after_with_their_marks(action, read_svg):
    drawing = draw_step(BEFORE, AFTER, action, 0.5, 0.75, 3, previous_similarity=0.25)
    picture = read_svg(drawing.as_svg())
    before, after = picture.cells(SIDE)
    np.testing.assert_array_equal(before, BEFORE[:2, :2])
    np.testing.assert_array_equal(after, AFTER[:2, :2])
    (outline,), (rings,) = picture.marks("selection"), picture.marks("changed")
    assert outline.attrib["d"].count("v") == 4
    assert rings.attrib["d"].count("M") == 2
    assert picture.texts == [
        "Step 3 · Op 7: Fill 7",
        "Before (2x2)",
        "After (2x2)",
        "reward +0.500 · similarity 0.250 → 0.750 · 2 cells changed",
    ]
    parse_drawing(drawing.as_svg())


def test_arrays_of_a_submission(read_svg):
    action = {"operation": jnp.int32(34), "selection": jnp.asarray(SELECTION)}
    drawing = draw_step(BEFORE, BEFORE, action)
    picture = read_svg(drawing.as_svg())
    assert picture.texts[0] == "Op 34: Submit"
    assert picture.texts[-1] == "0 cells changed"
    assert picture.marks("changed") == []
    assert len(picture.marks("selection")) == 1


def test_unknown_operations_are_refused():
    with pytest.raises(ValueError, match="99"):
        draw_step(BEFORE, AFTER, create_point_action(99, 0, 0))


def test_a_step_in_words():
    first = EpisodeFrame(BEFORE, similarity=0.5)
    assert str(first) == "Start, reward +0.000, similarity 0.500"
    turned = EpisodeFrame(BEFORE, operation=24, reward=-1.0)
    assert str(turned).startswith("Op 24: Rotate CW, reward -1.000")


def test_what_is_shown_is_a_choice(read_svg):
    shown = {"reward": 1, "similarity": 0.5, "step_num": 2}
    bare = draw_step(
        BEFORE, AFTER, **shown, highlight_changes=False, show_metrics=False
    )
    picture = read_svg(bare.as_svg())
    assert picture.marks("changed") == []
    assert [text for text in picture.texts if "reward" in text] == []
    numbered = read_svg(
        draw_step(BEFORE, AFTER, **shown, show_coordinates=True).as_svg()
    )
    assert [mark.text for mark in numbered.marks("number")] == 2 * ["0", "1", "0", "1"]


def test_the_summary_shows_curves_moments_and_target(frames, read_svg):
    drawing = draw_episode(frames, "Episode <7>")
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
    bare = read_svg(draw_episode(frames, "Episode", show_metrics=False).as_svg())
    assert "reward" not in bare.texts
    assert len(bare.cells(104 / 3)) == 7


def test_key_frames_are_the_ends_and_the_largest_changes():
    similarity = [0.0, 0.1, 0.6, 0.6, 0.3, 0.35, 0.35]
    assert key_frames(similarity, 2) == [0, 6]
    assert key_frames(similarity, 4) == [0, 2, 4, 6]
    assert key_frames(similarity, 100) == [0, 1, 2, 3, 4, 5, 6]
    assert key_frames([0.5], 3) == [0]
    with pytest.raises(ValueError, match="max_key_frames=1"):
        key_frames(similarity, 1)


def test_a_reset_alone_is_an_episode(read_svg):
    drawing = draw_episode([EpisodeFrame(np.zeros((2, 2), int))])
    texts = read_svg(drawing.as_svg()).texts
    assert "start" in texts
    assert "target" not in texts
    for draw in (draw_episode, lambda none: episode_section("None", none)):
        with pytest.raises(ValueError, match="frames is empty"):
            draw([])


def test_the_section_plays_every_frame(frames, read_svg):
    section = episode_section("Solved", frames)
    (both,) = section.parts
    assert isinstance(both, Beside)
    player, figure = both.picture, *both.parts
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
    (player,) = episode_section("Resized", frames, show_metrics=False).parts
    assert isinstance(player, Player)
    roots = [read_svg(image).root.attrib for image in player.frames]
    assert len({(root["width"], root["height"]) for root in roots}) == 1
    (grid,) = read_svg(player.frames[2]).cells(80.0)
    assert grid.shape == (1, 5)


def test_a_large_target_shrinks_the_cells_of_both(read_svg):
    frame = EpisodeFrame(np.ones((1, 1), int), target=np.ones((30, 20), int))
    (player,) = episode_section("Small", [frame], show_metrics=False).parts
    assert isinstance(player, Player)
    picture = read_svg(player.frames[0])
    assert [g.shape for g in picture.cells(400 / 30)] == [(1, 1), (30, 20)]
    assert float(picture.root.attrib["height"]) < 450
