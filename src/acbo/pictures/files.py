"""Pictures as files: SVG as it is, and a graph as PNG where matplotlib is installed."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from acbo.pictures import graph
from jaxrig.atomic import write_file
from jaxrig.machine import install_command

FORMATS = (".svg", ".png")
PIXELS_PER_INCH = 100


def save_graph(
    path: Path,
    names: Sequence[str],
    probs: Float[np.ndarray, "d d"],
    target: str | None = None,
    least: float = graph.LEAST,
) -> Path:
    """Write a graph in the format of the file's suffix, .svg or .png."""
    kind = path.suffix.lower()
    if kind not in FORMATS:
        raise ValueError(f"{path.name!r} ends in {kind!r}: use .svg or .png")
    if kind == ".svg":
        return write_file(path, graph.draw_graph(names, probs, target, least=least))
    return write_file(path, graph_png(names, probs, target, least))


def graph_png(
    names: Sequence[str],
    probs: Float[np.ndarray, "d d"],
    target: str | None = None,
    least: float = graph.LEAST,
) -> bytes:
    """Return the drawing of `draw_graph` as the bytes of a PNG, on white."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            f"PNG needs matplotlib: {install_command('viz')}, or write .svg"
        ) from error
    given = graph.check_probs(names, probs)
    placement, arcs, spots = graph.sketch_graph(names, given, least)
    size = np.ptp(placement.centers, axis=0) + np.array(
        [placement.widths.max() + 60, 160]
    )
    figure = Figure(figsize=tuple(size / PIXELS_PER_INCH), dpi=2 * PIXELS_PER_INCH)
    axes: Any = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    for pair, arc in arcs.items():
        _add_edge(axes, arc, float(given[pair]))
    for pair, spot in spots.items():
        axes.text(*spot, f"{given[pair]:.2f}", ha="center", va="center", fontsize=8)
    for place, name in enumerate(names):
        color = graph.TARGET if name == target else "black"
        shape = {"boxstyle": "round,pad=0.5", "fc": "white", "ec": color}
        x, y = placement.centers[place]
        axes.text(x, y, name, ha="center", va="center", bbox=shape, parse_math=False)
    (left, top), (right, low) = placement.centers.min(0), placement.centers.max(0)
    side = (size[0] - (right - left)) / 2
    axes.set_xlim(left - side, right + side)
    axes.set_ylim(low + 80, top - 80)  # downwards, as in SVG
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


def _add_edge(axes: Any, arc: graph.Arc, prob: float) -> None:
    look = {"color": graph.TRUE, "alpha": 0.2 + 0.8 * prob, "lw": 0.8 + 1.6 * prob}
    points = arc.at(graph.SAMPLES)
    axes.plot(*points[:-3].T, **look)
    head = {"arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 0, **look}
    axes.annotate("", arc.stop, points[-4], arrowprops=head)
