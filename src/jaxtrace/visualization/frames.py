"""One picture file for each frame of recorded paths, for videos."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxtrace.visualization.figures import new_figure, save_figure
from jaxtrace.visualization.inputs import (
    Paths,
    axes_of,
    choose,
    choose_frames,
    path_limits,
    read_paths,
)
from jaxtrace.visualization.static import SPACE, label_axes

MARKER = "tab:blue"
FEWEST_DIGITS = 4  # of the number in a file's name


def render_frames_2d(
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
) -> list[Path]:
    """PNG files `frame_0000.png`, ... of particles in a plane, all of one size.

    The title is followed by the time of the frame.
    """
    axes = axes_of(plane)
    paths = read_paths(positions_over_time, times)
    chosen = choose(paths.positions.shape[1], every_kth, max_points)
    figure = new_figure(figsize, show=False)
    drawn = figure.add_subplot()
    dots = drawn.scatter(
        [], [], s=s, alpha=alpha, color=marker_color or MARKER, linewidths=0
    )
    _dress(figure, drawn, bg_color)
    label_axes(drawn, axes, path_limits(paths, axes), None, equal=True)

    def move(frame: int) -> None:
        dots.set_offsets(_present(paths.at(frame, chosen)[:, list(axes)]))
        drawn.set_title(_words(title, paths, frame))

    return _write_frames(figure, paths, frame_stride, move, out_dir, file_prefix, dpi)


def render_frames_3d(
    positions_over_time: Any,
    out_dir: Any,
    *,
    times: Any = None,
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
    file_prefix: str = "frame3d",
    elev: float = 20,
    azim: float = 45,
) -> list[Path]:
    """PNG files `frame3d_0000.png`, ... of particles in space, all of one size."""
    paths = read_paths(positions_over_time, times)
    chosen = choose(paths.positions.shape[1], every_kth, max_points)
    figure = new_figure(figsize, show=False)
    drawn = figure.add_subplot(projection="3d")
    drawn.view_init(elev=elev, azim=azim)
    (dots,) = drawn.plot(
        *np.empty((3, 0)),
        linestyle="none",
        marker=".",
        markersize=2 * s**0.5,
        alpha=alpha,
        color=marker_color or MARKER,
    )
    _dress(figure, drawn, bg_color)
    label_axes(drawn, SPACE, path_limits(paths, SPACE), None, equal=True)

    def move(frame: int) -> None:
        dots.set_data_3d(*_present(paths.at(frame, chosen)).T)
        drawn.set_title(_words(title, paths, frame))

    return _write_frames(figure, paths, frame_stride, move, out_dir, file_prefix, dpi)


def _dress(figure: Any, drawn: Any, bg_color: str) -> None:
    figure.set_facecolor(bg_color)
    drawn.set_facecolor(bg_color)


def _present(
    points: Float[np.ndarray, "chosen axes"],
) -> Float[np.ndarray, "present axes"]:
    return points[np.isfinite(points).all(axis=1)]


def _words(title: str | None, paths: Paths, frame: int) -> str:
    return f"{title}, {paths.clock(frame)}" if title else paths.clock(frame)


def _write_frames(
    figure: Any,
    paths: Paths,
    frame_stride: int,
    move: Callable[[int], None],
    out_dir: Any,
    prefix: str,
    dpi: float,
) -> list[Path]:
    folder = Path(out_dir)
    frames = choose_frames(len(paths.positions), frame_stride)
    digits = max(FEWEST_DIGITS, len(str(len(frames) - 1)))
    files = []
    move(0)
    # Laid out once: a layout that follows each title would make the picture twitch.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for number, frame in enumerate(frames):
        move(frame)
        path = folder / f"{prefix}_{number:0{digits}d}.png"
        files.append(save_figure(figure, path, dpi))
    return files
