"""Each file shows its frame; all are of one size."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from matplotlib.image import imread

from jaxtrace.visualization.frames import render_frames_2d, render_frames_3d
from trace_records import absorbing_channel, uniform

FLOW = uniform([1, 0, 0], np.zeros((1, 3)), np.linspace(0, 1, 5))


def red_center(path):
    """Column and row of the red dot, as shares of the picture; NaN without one."""
    pixels = imread(path)[..., :3]
    red = (np.abs(pixels - (1, 0, 0)) < 0.1).all(axis=-1)
    rows, columns = np.nonzero(red)
    if not rows.size:
        return np.full(2, np.nan)
    height, width, _ = pixels.shape
    return np.array([columns.mean() / width, rows.mean() / height])


def test_the_dot_moves_from_file_to_file(tmp_path):
    files = render_frames_2d(
        FLOW, tmp_path, figsize=(3, 2), dpi=50, s=40, alpha=1, marker_color="red"
    )
    assert [file.name for file in files] == [f"frame_{k:04d}.png" for k in range(5)]
    across = np.array([red_center(file) for file in files])
    assert (np.diff(across[:, 0]) > 0.1).all()
    np.testing.assert_allclose(
        np.diff(across[:, 0]), across[1, 0] - across[0, 0], atol=0.02
    )
    assert np.ptp(across[:, 1]) < 0.02
    assert {imread(file).shape[:2] for file in files} == {(100, 150)}


def test_stride_prefix_and_colors(tmp_path):
    files = render_frames_2d(
        FLOW.positions,
        tmp_path / "deep" / "er",
        plane="xz",
        frame_stride=3,
        figsize=(2, 2),
        dpi=40,
        bg_color="black",
        file_prefix="film",
        title="A",
    )
    assert [file.name for file in files] == ["film_0000.png", "film_0001.png"]
    np.testing.assert_allclose(imread(files[0])[0, 0, :3], 0)


def test_an_absorbed_particle_leaves_the_picture(tmp_path):
    record = absorbing_channel(1.0, 1.0, [0.0, 0.7], [0.0, 0.5, 2.0])
    style = {"s": 40, "alpha": 1, "marker_color": "red", "figsize": (2, 2), "dpi": 50}
    files = render_frames_2d(record, tmp_path, **style)
    seen = np.array([red_center(file) for file in files])
    np.testing.assert_array_equal(np.isfinite(seen[:, 0]), [True, True, False])


def test_frames_in_space(tmp_path):
    style = {"s": 60, "alpha": 1, "marker_color": "red", "figsize": (3, 3), "dpi": 60}
    files = render_frames_3d(FLOW, tmp_path, frame_stride=2, azim=-90, **style)
    assert [file.name for file in files] == [f"frame3d_{k:04d}.png" for k in range(3)]
    across = [red_center(file)[0] for file in files]
    assert across == sorted(across)
    assert across[-1] - across[0] > 0.2
