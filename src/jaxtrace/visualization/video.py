"""Videos and animated GIFs from picture files, through imageio."""

import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt8

from jaxrig.atomic import atomic_write
from jaxtrace.visualization.packages import load_package

VIDEOS = (".mp4", ".mov", ".mkv")
COARSEST = 51  # of the scale on which H.264 measures what it may lose
Pixels = UInt8[np.ndarray, "height width 3"]


def encode_video_from_frames(
    files: Sequence[Any],
    out: Any,
    *,
    fps: float = 24,
    quality: float = 7,
    pix_fmt: str = "yuv420p",
) -> Path:
    """Write an H.264 video, such as `.mp4`, of picture files of one size.

    `quality` goes from 0 to 10; a picture of odd width or height gains one pixel.
    """
    load_package("imageio", "Videos")
    ffmpeg = load_package("imageio_ffmpeg", "Videos").get_ffmpeg_exe()
    _check(files, fps)
    if not 0 <= quality <= 10:
        raise ValueError(f"quality is {quality}: give a number from 0 to 10")
    path = Path(out)
    if path.suffix.lower() not in VIDEOS:
        raise ValueError(f"{path.name!r} is no video: use one of {', '.join(VIDEOS)}")
    path.parent.mkdir(parents=True, exist_ok=True)
    # The encoder writes by name, so the whole file is made aside and moved.
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".writing-") as folder:
        made = Path(folder) / path.name
        pictures = (_even(picture) for picture in _read(files))
        first = next(pictures)
        height, width, _ = first.shape
        coarseness = round(COARSEST * (1 - quality / 10))
        command = [
            *(ffmpeg, "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24"),
            *("-s", f"{width}x{height}", "-r", f"{fps:g}", "-i", "-"),
            *("-c:v", "libx264", "-crf", f"{coarseness}", "-pix_fmt", pix_fmt),
            str(made),
        ]
        _feed(command, chain([first], pictures), Path(folder) / "said")
        os.replace(made, path)
    return path


def save_gif_from_frames(
    files: Sequence[Any], out: Any, *, fps: float = 24, loop: int = 0
) -> Path:
    """Write an animated GIF of picture files of one size; `loop=0` is for ever."""
    imageio = load_package("imageio.v3", "Animated GIFs")
    _check(files, fps)
    pictures = list(_read(files))
    content = imageio.imwrite(
        "<bytes>", pictures, extension=".gif", duration=1000 / fps, loop=loop
    )
    path = Path(out)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(content)
    return path


def _check(files: Sequence[Any], fps: float) -> None:
    if not len(files):
        raise ValueError("files is empty: a film needs at least one picture")
    if not fps > 0:
        raise ValueError(f"fps is {fps}: give a positive number of frames per second")


def _read(files: Sequence[Any]) -> Iterator[Pixels]:
    imageio = load_package("imageio.v3", "Films")
    size: tuple[int, int] | None = None
    for file in files:
        pixels = imageio.imread(file, mode="RGB")
        height, width, _ = pixels.shape
        if size not in (None, (width, height)):
            raise ValueError(
                f"{file} is {width} x {height} pixels, those before it are of size "
                f"{size}: all pictures of a film must be of one size"
            )
        size = width, height
        yield pixels


def _feed(command: Sequence[str], pictures: Iterable[Pixels], said: Path) -> None:
    """Run the encoder on the pictures; RuntimeError holds what it said if it fails."""
    with said.open("wb") as errors:
        encoder = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=errors)
    assert encoder.stdin is not None
    # Closing waits; an encoder that gives up breaks the pipe and is asked for why.
    with suppress(BrokenPipeError), encoder:
        for picture in pictures:
            encoder.stdin.write(picture.tobytes())
    if encoder.returncode:
        words = said.read_text(errors="replace").strip()
        raise RuntimeError(f"ffmpeg could not write the video: {words}")


def _even(picture: Pixels) -> UInt8[np.ndarray, "even_height even_width 3"]:
    """With its last row and column repeated where a video needs an even size."""
    height, width = picture.shape[:2]
    return np.pad(picture, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
