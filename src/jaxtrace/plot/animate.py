"""Interactive pages, made with Plotly: play, zoom and turn in a browser."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxtrace.plot.figures import load_package
from jaxtrace.plot.inputs import (
    axis_names,
    choose,
    choose_frames,
    path_limits,
    read_paths,
    view_axes,
)

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
    axes = view_axes(plane)
    flat = len(axes) == 2
    paths = read_paths(positions_over_time, times)
    chosen = choose(paths.positions.shape[1], every_kth, max_points)
    frames = [
        (paths.clock(index), paths.at(index, chosen)[:, list(axes)])
        for index in choose_frames(len(paths.positions), frame_stride)
    ]
    scatter = plotly.Scattergl if flat else plotly.Scatter3d
    marker = {"size": marker_size, "color": marker_color}
    make = lambda points: scatter(
        **dict(zip("xyz", points.T, strict=False)), mode="markers", marker=marker
    )
    figure = _assemble(plotly, frames, make)
    ends = path_limits(paths, axes)
    named = [
        {"title": name, "range": end}
        for name, end in zip(axis_names(axes), ends, strict=True)
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
