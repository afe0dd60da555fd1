"""Pages to turn, zoom and play in a browser, made with Plotly."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxrig.atomic import atomic_write
from jaxtrace.visualization.inputs import (
    axes_of,
    axis_names,
    choose,
    choose_frames,
    path_limits,
    read_paths,
)
from jaxtrace.visualization.packages import load_package

MILLISECONDS = 50  # a frame is shown for


def animate_trajectory_plotly_2d(
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
    """A Plotly figure that plays particles in a plane."""
    plotly = load_package("plotly.graph_objects", "Interactive pages")
    axes = axes_of(plane)
    make = lambda points, marker: plotly.Scattergl(
        x=points[:, 0], y=points[:, 1], mode="markers", marker=marker
    )
    marker = {"size": marker_size, "color": marker_color}
    frames, limits = _read_frames(
        positions_over_time, times, axes, every_kth, frame_stride, max_points
    )
    figure = _assemble(plotly, frames, lambda points: make(points, marker))
    names = axis_names(axes)
    figure.update_layout(
        xaxis={"title": names[0], "range": limits[0], "constrain": "domain"},
        yaxis={"title": names[1], "range": limits[1], "scaleanchor": "x"},
        **_frame_of_page(width, height, title),
    )
    return figure


def animate_trajectory_plotly_3d(
    positions_over_time: Any,
    times: Any = None,
    every_kth: int = 1,
    frame_stride: int = 1,
    max_points: int | None = None,
    marker_size: float = 2.5,
    width: int = 900,
    height: int = 700,
    title: str | None = None,
    marker_color: Any = None,
) -> Any:
    """A Plotly figure that plays particles in space and can be turned."""
    plotly = load_package("plotly.graph_objects", "Interactive pages")
    marker = {"size": marker_size, "color": marker_color}
    make = lambda points: plotly.Scatter3d(
        x=points[:, 0], y=points[:, 1], z=points[:, 2], mode="markers", marker=marker
    )
    frames, limits = _read_frames(
        positions_over_time, times, (0, 1, 2), every_kth, frame_stride, max_points
    )
    figure = _assemble(plotly, frames, make)
    scene: dict[str, Any] = {
        f"{letter}axis": {"title": letter, "range": ends}
        for letter, ends in zip("xyz", limits, strict=True)
    }
    figure.update_layout(
        scene={**scene, "aspectmode": "data"}, **_frame_of_page(width, height, title)
    )
    return figure


def save_html(figure: Any, path: Any) -> Path:
    """Write a Plotly figure as one page that needs no network."""
    path = Path(path)
    page = figure.to_html(include_plotlyjs=True, full_html=True, auto_play=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(page.encode())
    return path


_Frame = tuple[str, Float[np.ndarray, "chosen axes"]]


def _read_frames(
    given: Any,
    times: Any,
    axes: Sequence[int],
    every_kth: int,
    frame_stride: int,
    max_points: int | None,
) -> tuple[list[_Frame], list[tuple[float, float]]]:
    paths = read_paths(given, times)
    chosen = choose(paths.positions.shape[1], every_kth, max_points)
    frames = [
        (paths.clock(index), paths.at(index, chosen)[:, list(axes)])
        for index in choose_frames(len(paths.positions), frame_stride)
    ]
    return frames, path_limits(paths, axes)


def _assemble(
    plotly: Any,
    frames: Sequence[_Frame],
    make: Callable[[Float[np.ndarray, "chosen axes"]], Any],
) -> Any:
    """The first frame as a figure, the others behind a slider and two buttons."""
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


def _frame_of_page(width: int, height: int, title: str | None) -> dict[str, Any]:
    return {
        "width": width,
        "height": height,
        "title": title,
        "showlegend": False,
        "template": "plotly_white",
    }
