"""Films of recorded paths: pictures, videos, GIFs, and pages that play in a browser."""

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, UInt8

from jaxrig.atomic import write_file
from jaxtrace.plot import inputs
from jaxtrace.plot.inputs import load_package, new_axes, save_figure
from jaxtrace.plot.pictures import label_axes

MARKER = "tab:blue"
FEWEST_DIGITS = 4  # of the number in a file's name


def render_frames(
    positions_over_time: Any,
    out_dir: Any,
    *,
    times: Any = None,
    plane: str = "xy",
    every_kth: int = 1,
    frame_stride: int = 1,
    max_points: int | None = None,
    figsize: tuple[float, float] = (6.0, 6.0),
    dpi: float = 120,
    s: float = 2.0,
    alpha: float = 0.9,
    title: str | None = None,
    bg_color: str = "white",
    marker_color: Any = None,
    file_prefix: str = "frame",
    elev: float = 20,
    azim: float = 45,
) -> list[Path]:
    """Write one PNG per frame, `frame_0000.png`, ..., all of the same size.

    `plane` is "xy", "xz", "yz", or "xyz" for a view from `elev` and `azim`, in degrees.
    Each title ends with the time of its frame.
    """
    axes = inputs.view_axes(plane)
    paths = inputs.read_paths(positions_over_time, times)
    chosen = inputs.choose(paths.N, every_kth, max_points)
    drawn = new_axes(len(axes), figsize)
    if len(axes) == 3:
        drawn.view_init(elev=elev, azim=azim)
    figure = drawn.figure
    style = {"alpha": alpha, "color": marker_color or MARKER}
    place = _make_dots(drawn, len(axes) == 2, s, style)
    figure.set_facecolor(bg_color)
    drawn.set_facecolor(bg_color)
    names, ends = inputs.axis_names(axes, paths), inputs.path_limits(paths, axes)
    label_axes(drawn, names, ends, None, equal=True)

    def move(frame: int) -> None:
        points = paths.at(frame, chosen)[:, list(axes)]
        place(points[np.isfinite(points).all(axis=1)])
        clock = paths.clock(frame)
        drawn.set_title(f"{title}, {clock}" if title else clock)

    frames = inputs.choose_frames(paths.T, frame_stride)
    digits = max(FEWEST_DIGITS, len(str(len(frames) - 1)))
    files = []
    move(0)
    # Laid out once: a layout that follows each title would make the picture twitch.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for number, frame in enumerate(frames):
        move(frame)
        path = Path(out_dir) / f"{file_prefix}_{number:0{digits}d}.png"
        files.append(save_figure(figure, path, dpi))
    return files


def _make_dots(
    drawn: Any, flat: bool, s: float, style: dict[str, Any]
) -> Callable[[np.ndarray], None]:
    """Return a function that moves the dots of a picture."""
    if flat:
        return drawn.scatter([], [], s=s, linewidths=0, **style).set_offsets
    # Markers of a line: a 3-D scatter cannot be given another number of points.
    (line,) = drawn.plot(
        *np.empty((3, 0)), linestyle="none", marker=".", ms=2 * s**0.5, **style
    )
    return lambda points: line.set_data_3d(*points.T)


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
    loop: int = 0,
) -> Path:
    """Write a film of picture files of one size: H.264, such as `.mp4`, or a `.gif`.

    `quality` of a video goes from 0 to 10; a picture of odd width or height gains one
    pixel. A GIF plays `loop` times, 0 being for ever.
    """
    if not len(files):
        raise ValueError("files is empty: a film needs at least one picture")
    if not fps > 0:
        raise ValueError(f"fps is {fps}: give a positive number of frames per second")
    path = Path(out)
    if path.suffix.lower() == ".gif":
        imageio = load_package("imageio.v3", "Films")
        options = {"extension": ".gif", "duration": 1000 / fps, "loop": loop}
        content = imageio.imwrite("<bytes>", list(_read(files)), **options)
        return write_file(path, content)
    if path.suffix.lower() not in VIDEOS:
        raise ValueError(
            f"{path.name!r} is not a supported film: use {', '.join(VIDEOS)} or .gif"
        )
    load_package("imageio", "Films")
    ffmpeg = load_package("imageio_ffmpeg", "Films").get_ffmpeg_exe()
    if not 0 <= quality <= 10:
        raise ValueError(f"quality is {quality}: give a number from 0 to 10")
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
    """Repeat the last row and column where a video needs an even size."""
    height, width = picture.shape[:2]
    return np.pad(picture, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")


MILLISECONDS = 50  # a frame is shown for


def animate_trajectory(
    positions_over_time: Any,
    times: Any = None,
    plane: str = "xy",
    every_kth: int = 1,
    frame_stride: int = 1,
    max_points: int | None = None,
    marker_size: float = 3.0,
    width: int = 900,
    height: int = 700,
    title: str | None = None,
    marker_color: Any = None,
) -> Any:
    """Return a Plotly figure that plays particles.

    `plane` is "xy", "xz", "yz", or "xyz" for a view in space that can be turned. The
    figure's own `write_html` saves it as a page.
    """
    plotly = load_package("plotly.graph_objects", "Interactive pages")
    axes = inputs.view_axes(plane)
    flat = len(axes) == 2
    paths = inputs.read_paths(positions_over_time, times)
    chosen = inputs.choose(paths.N, every_kth, max_points)
    frames = [
        (paths.clock(index), paths.at(index, chosen)[:, list(axes)])
        for index in inputs.choose_frames(paths.T, frame_stride)
    ]
    scatter = plotly.Scattergl if flat else plotly.Scatter3d
    marker = {"size": marker_size, "color": marker_color}
    make = lambda points: scatter(
        **dict(zip("xyz", points.T, strict=False)), mode="markers", marker=marker
    )
    figure = _assemble(plotly, frames, make)
    ends = inputs.path_limits(paths, axes)
    named = [
        {"title": name, "range": end}
        for name, end in zip(inputs.axis_names(axes, paths), ends, strict=True)
    ]
    if flat:
        across, up = named
        layout = {
            "xaxis": {**across, "constrain": "domain"},
            "yaxis": {**up, "scaleanchor": "x"},
        }
    else:
        scene = {f"{a}axis": axis for a, axis in zip("xyz", named, strict=True)}
        layout = {"scene": {**scene, "aspectmode": "data"}}
    figure.update_layout(
        **layout,
        width=width,
        height=height,
        title=title,
        showlegend=False,
        template="plotly_white",
    )
    return figure


_Frame = tuple[str, Float[np.ndarray, "chosen axes"]]


def _assemble(
    plotly: Any,
    frames: Sequence[_Frame],
    make: Callable[[Float[np.ndarray, "chosen axes"]], Any],
) -> Any:
    """Return the first frame as a figure, the others behind a slider and buttons."""
    # Frames go by number: their words need not differ.
    names = [str(number) for number in range(len(frames))]
    figure = plotly.Figure(
        data=[make(frames[0][1])],
        frames=[
            plotly.Frame(data=[make(points)], name=name)
            for name, (_, points) in zip(names, frames, strict=True)
        ],
    )
    now = {
        "mode": "immediate",
        "frame": {"duration": 0, "redraw": True},
        "transition": {"duration": 0},
    }
    playing = {
        "frame": {"duration": MILLISECONDS, "redraw": True},
        "transition": {"duration": 0},
        "fromcurrent": True,
    }
    buttons = [
        {"label": "Play", "method": "animate", "args": [None, playing]},
        {"label": "Pause", "method": "animate", "args": [[None], now]},
    ]
    steps = [
        {"label": words, "method": "animate", "args": [[name], now]}
        for name, (words, _) in zip(names, frames, strict=True)
    ]
    figure.update_layout(
        updatemenus=[
            {
                "type": "buttons",
                "direction": "left",
                "buttons": buttons,
                "x": 0,
                "y": 0,
                "xanchor": "left",
                "yanchor": "top",
                "pad": {"t": 60},
            }
        ],
        sliders=[{"steps": steps, "x": 0.2, "len": 0.8, "pad": {"t": 40}}],
    )
    return figure
