"""Films hold as many pictures as they were given, of the size they were given."""

import importlib
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("imageio")
import imageio.v3 as imageio

from jaxrig.report import png_from_array
from jaxtrace.visualization.video import (
    encode_video_from_frames,
    save_gif_from_frames,
)


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
    out = save_gif_from_frames(files, tmp_path / "out" / "a.gif", fps=10, loop=3)
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
    ("make", "package"),
    [
        (save_gif_from_frames, "imageio"),
        (encode_video_from_frames, "imageio"),
        (encode_video_from_frames, "imageio_ffmpeg"),
    ],
)
def test_a_missing_package_is_named(monkeypatch, files, tmp_path, make, package):
    for module in (package, f"{package}.v3"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(RuntimeError, match=rf"{package}, .*pip install .*viz"):
        make(files, tmp_path / "a.gif")
    assert not (tmp_path / "a.gif").exists()


def test_refusals(files, tmp_path):
    with pytest.raises(ValueError, match="files is empty"):
        save_gif_from_frames([], tmp_path / "a.gif")
    with pytest.raises(ValueError, match="fps is 0"):
        save_gif_from_frames(files, tmp_path / "a.gif", fps=0)
    (tmp_path / "odd.png").write_bytes(png_from_array(np.zeros((5, 5), np.uint8)))
    with pytest.raises(ValueError, match=r"odd\.png is 5 x 5"):
        save_gif_from_frames([*files, tmp_path / "odd.png"], tmp_path / "a.gif")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"quality": 11}, ValueError, "quality is 11"),
        ({"out": "a.gif"}, ValueError, r"'a\.gif' is no video"),
        ({"pix_fmt": "nonsense"}, RuntimeError, "ffmpeg could not.*nonsense"),
    ],
)
def test_videos_that_cannot_be(files, tmp_path, options, error, message):
    pytest.importorskip("imageio_ffmpeg")
    out = tmp_path / "films" / options.pop("out", "a.mp4")
    with pytest.raises(error, match=message):
        encode_video_from_frames(files, out, **options)
    assert not out.parent.exists() or not list(out.parent.iterdir())
