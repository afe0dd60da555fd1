"""Frames, videos, GIFs and Plotly pages show the particles they were given."""

import importlib
import subprocess
import sys

import imageio.v3 as imageio
import numpy as np
import pytest
from matplotlib.image import imread

from jaxrig.report import png_from_array
from jaxtrace.plot.films import (
    animate_trajectory,
    encode_video_from_frames,
    render_frames,
)
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
    files = render_frames(
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
    files = render_frames(
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
    files = render_frames(record, tmp_path, **style)
    seen = np.array([red_center(file) for file in files])
    np.testing.assert_array_equal(np.isfinite(seen[:, 0]), [True, True, False])


def test_frames_in_space(tmp_path):
    style = {"s": 60, "alpha": 1, "marker_color": "red", "figsize": (3, 3), "dpi": 60}
    files = render_frames(
        FLOW, tmp_path, plane="xyz", frame_stride=2, azim=-90, **style
    )
    assert [file.name for file in files] == [f"frame_{k:04d}.png" for k in range(3)]
    across = [red_center(file)[0] for file in files]
    assert across == sorted(across)
    assert across[-1] - across[0] > 0.2


def read_video(path):
    ffmpeg = importlib.import_module("imageio_ffmpeg").get_ffmpeg_exe()
    options = ("-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24", "-")
    command = [ffmpeg, "-i", str(path), *options]
    raw = subprocess.run(command, capture_output=True, check=True).stdout
    return np.frombuffer(raw, np.uint8).reshape(-1, 22, 32, 3)


@pytest.fixture
def files(tmp_path):
    paths = [tmp_path / f"{number}.png" for number in range(4)]
    for number, path in enumerate(paths):
        shade = np.full((21, 31, 3), 60 * number, np.uint8)
        path.write_bytes(png_from_array(shade))
    return paths


def test_a_gif_plays_the_pictures(files, tmp_path):
    out = encode_video_from_frames(files, tmp_path / "out" / "a.gif", fps=10, loop=3)
    read = imageio.imread(out, mode="RGB")
    assert read.shape == (4, 21, 31, 3)
    np.testing.assert_allclose(read[:, 0, 0, 0], [0, 60, 120, 180], atol=2)
    facts = imageio.immeta(out)
    assert (facts["duration"], facts["loop"]) == (100, 3)


def test_a_video_plays_the_pictures(files, tmp_path):
    pytest.importorskip("imageio_ffmpeg")
    out = encode_video_from_frames(files, tmp_path / "out" / "a.mp4", fps=5)
    read = read_video(out)
    assert read.shape == (4, 22, 32, 3)
    np.testing.assert_allclose(read[:, 5, 5, 0], [0, 60, 120, 180], atol=12)
    assert [path.name for path in out.parent.iterdir()] == ["a.mp4"]


@pytest.mark.parametrize(
    ("name", "package"),
    [("a.gif", "imageio"), ("a.mp4", "imageio"), ("a.mp4", "imageio_ffmpeg")],
)
def test_a_missing_package_is_named(monkeypatch, files, tmp_path, name, package):
    for module in (package, f"{package}.v3"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(RuntimeError, match=rf"{package}, .*pip install .*viz"):
        encode_video_from_frames(files, tmp_path / name)
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"files": []}, ValueError, "files is empty"),
        ({"fps": 0}, ValueError, "fps is 0"),
        ({"more": "odd.png"}, ValueError, r"odd\.png is 5 x 5"),
        ({"quality": 11}, ValueError, "quality is 11"),
        ({"out": "a.webp"}, ValueError, r"'a\.webp' is not a supported film"),
        ({"pix_fmt": "nonsense"}, RuntimeError, "ffmpeg could not.*nonsense"),
    ],
)
def test_films_that_cannot_be(files, tmp_path, options, error, message):
    pytest.importorskip("imageio_ffmpeg")
    (tmp_path / "odd.png").write_bytes(png_from_array(np.zeros((5, 5), np.uint8)))
    out = tmp_path / "films" / options.pop("out", "a.mp4")
    shown = options.pop("files", files)
    if more := options.pop("more", None):
        shown = [*shown, tmp_path / more]
    with pytest.raises(error, match=message):
        encode_video_from_frames(shown, out, **options)
    assert not out.parent.exists() or not list(out.parent.iterdir())


SLANTED = uniform([1, 0.5, 0.2], np.eye(3), np.linspace(0, 1, 7))


def test_frames_hold_the_positions_of_the_plane():
    figure = animate_trajectory(SLANTED, plane="yz", frame_stride=3)
    assert len(figure.frames) == 3
    for frame, index in zip(figure.frames, (0, 3, 6), strict=True):
        np.testing.assert_allclose(frame.data[0].x, SLANTED.positions[index, :, 1])
        np.testing.assert_allclose(frame.data[0].y, SLANTED.positions[index, :, 2])
    np.testing.assert_allclose(figure.data[0].x, SLANTED.positions[0, :, 1])
    assert [step.label for step in figure.layout.sliders[0].steps][-1] == "t = 1"
    assert figure.layout.xaxis.title.text == "y"
    assert figure.layout.yaxis.scaleanchor == "x"


def test_axes_hold_every_frame():
    figure = animate_trajectory(SLANTED.positions, SLANTED.times, "xyz", every_kth=2)
    for axis, name in enumerate("xyz"):
        low, high = figure.layout.scene[f"{name}axis"].range
        assert low < SLANTED.positions[..., axis].min()
        assert high > SLANTED.positions[..., axis].max()
    np.testing.assert_allclose(figure.frames[2].data[0].z, SLANTED.positions[2, ::2, 2])


def test_absent_particles_are_gaps():
    record = absorbing_channel(1.0, 1.0, [0.0, 0.9], [0.0, 0.5])
    figure = animate_trajectory(record, max_points=2)
    np.testing.assert_array_equal(figure.frames[1].data[0].x, [0.5, np.nan])


def test_a_missing_plotly_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    with pytest.raises(RuntimeError, match=r"plotly.*pip install"):
        animate_trajectory(SLANTED)
