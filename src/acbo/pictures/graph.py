"""A causal graph as SVG or PNG: likelier edges are darker and wider, the target stands
out.

Each causal depth has a column. networkx offers such layers too (`multipartite_layout`),
but neither fewer crossings within them nor curves that keep clear of nodes and labels.
"""

import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from acbo.types import check_known
from jaxrig.atomic import write_file
from jaxrig.machine import install_command
from jaxrig.report.axes import PALETTE, document, label, pixel, shorten, text_width
from jaxrig.report.text import escape

SWEEPS = 4
Point = Float[np.ndarray, " two"]
Points = Float[np.ndarray, "n two"]
Matrix = Float[np.ndarray, "d d"]
Pair = tuple[int, int]  # cause and effect
# How far an edge may bend out, in pixels; the first that keeps clear is taken.
BENDS = (0.0, 26.0, -26.0, 48.0, -48.0, 74.0, -74.0, 104.0, -104.0)
MOST_BENT = 0.35  # of the length of an edge
SAMPLES = np.linspace(0.0, 1.0, 65)


@dataclass(frozen=True, eq=False)
class Layout:
    """Column and height of every variable, in steps; heights are centered on 0."""

    column: Int[np.ndarray, " d"]
    height: Float[np.ndarray, " d"]


def likely_dag(probs: Matrix, threshold: float = 0.5) -> Bool[np.ndarray, "d d"]:
    """Return edges above the threshold, the likeliest first, none closing a cycle."""
    d = len(probs)
    chosen = np.zeros((d, d), bool)
    reach = np.eye(d, dtype=bool)  # reach[i, j]: a path leads from i to j, or i is j
    for place in np.argsort(-probs, axis=None, kind="stable"):
        i, j = divmod(int(place), d)
        if probs[i, j] <= threshold:
            break
        if not reach[j, i]:
            chosen[i, j] = True
            reach |= np.outer(reach[:, i], reach[j])
    return chosen


def causal_depths(dag: Bool[np.ndarray, "d d"]) -> Int[np.ndarray, " d"]:
    """Return the length of the longest path to each variable of an acyclic graph."""
    depth = np.zeros(len(dag), int)
    for _ in range(len(dag)):
        depth = np.maximum(depth, np.where(dag, depth[:, None] + 1, 0).max(axis=0))
    return depth


def lay_out(probs: Matrix, threshold: float = 0.5) -> Layout:
    """Place causes left of effects, and variables near those they are linked to.

    Columns are the layers of the graph; within them the barycenter heuristic of
    Sugiyama, Tagawa and Toda (1981) keeps crossings few.
    """
    dag = likely_dag(probs, threshold)
    column, linked = causal_depths(dag), dag | dag.T
    layers = [np.flatnonzero(column == place) for place in range(column.max() + 1)]
    height, spread = np.zeros(len(probs)), lambda n: np.arange(n) - (n - 1) / 2
    for members in layers:
        height[members] = spread(len(members))
    for _ in range(SWEEPS):
        for members in layers:
            wish = [height[linked[i] if linked[i].any() else i].mean() for i in members]
            height[members[np.argsort(wish, kind="stable")]] = spread(len(members))
    return Layout(column, height)


@dataclass(frozen=True, eq=False)
class Arc:
    """A quadratic curve from one point to another, pulled towards a third."""

    start: Point
    control: Point
    stop: Point

    def at(self, share: Float[np.ndarray, " n"]) -> Points:
        """Return points of the curve, from 0 at its start to 1 at its end."""
        t = share[:, None]
        near, far = (1 - t) ** 2 * self.start, t**2 * self.stop
        return near + 2 * t * (1 - t) * self.control + far

    def cut(self, first: float, last: float) -> "Arc":
        """Return the part of the curve between two fractions of it."""
        # De Casteljau: the control point of a part lies on the tangents at its ends.
        start, stop = self.at(np.array([first, last]))
        lead = (1 - first) * self.start + first * self.control
        tail = (1 - first) * self.control + first * self.stop
        return Arc(start, (1 - last) * lead + last * tail, stop)


def bend_line(start: Point, stop: Point, bend: float) -> Arc:
    """Return a curve whose middle is this far to the left of the straight line."""
    along = stop - start
    length = max(float(np.hypot(*along)), 1.0)
    share = np.clip(bend / length, -MOST_BENT, MOST_BENT)
    side = np.array([along[1], -along[0]])
    return Arc(start, (start + stop) / 2 + 2 * share * side, stop)


def choose_arc(
    start: Point, stop: Point, others: Points, room: Point, straight: bool = True
) -> Arc:
    """Return the straightest curve that keeps `room` (x, y) from other places."""
    # Two edges between the same two places keep apart, each to its own left.
    bends = BENDS if straight else [bend for bend in BENDS if bend > 0]
    arcs = [bend_line(start, stop, bend) for bend in bends]
    if not len(others):
        return arcs[0]
    clear = lambda arc: float(_room(arc.at(SAMPLES), others, room).min())
    return max(arcs, key=lambda arc: min(clear(arc), 1.0))


def shown_edges(probs: Matrix, least: float) -> Iterator[Pair]:
    """Yield pairs whose probability is at least `least`, faint ones first."""
    order = np.argsort(probs, axis=None, kind="stable")
    for place in order:
        i, j = divmod(int(place), len(probs))
        if i != j and probs[i, j] >= least:
            yield i, j


LEAST = 0.1  # edges less likely than this are left out
LABELED = 0.2  # fainter ones say their number only when pointed at
NODE_HEIGHT, NODE_WIDTH, WIDEST_NODE = 36.0, 54.0, 160.0
GAP_ACROSS, PITCH_DOWN = 96.0, 84.0
MANY, WIDER = 8, 1.5  # more variables than this get more room
MARGIN = 12.0
ARROW = 11.0
PLACES = np.array([0.5, 0.4, 0.6, 0.32, 0.68])  # along an edge, for its label
LABEL_SIZE = 13
LABEL_ROOM = np.array([34.0, 15.0])
LINE_ROOM = np.array([17.0, 8.0])
TRUE, WRONG, TARGET = PALETTE[0], PALETTE[1], PALETTE[1]


@dataclass(frozen=True, eq=False)
class Placement:
    """Where the variables are, in pixels, and how large."""

    centers: Float[np.ndarray, "d two"]
    widths: Float[np.ndarray, " d"]


def draw_graph(
    names: Sequence[str],
    probs: Matrix,
    target: str | None = None,
    *,
    truth: Bool[np.ndarray, "d d"] | None = None,
    least: float = LEAST,
) -> str:
    """Draw P(i causes j) as SVG, causes left of effects.

    With `truth`, edges that are not in it are dashed, and edges of it that are less
    likely than `least` are dotted.
    """
    given = check_probs(names, probs)
    if target is not None:
        check_known(target, names, "target")
    placement, arcs, spots = sketch_graph(names, given, least)
    missed = np.zeros_like(given, bool) if truth is None else truth & (given < least)
    pairs = [*zip(*map(np.ndarray.tolist, np.nonzero(missed)), strict=True)]
    body = [_missed(edge_arc(placement, given, least, i, j)) for i, j in pairs]
    for (i, j), arc in arcs.items():
        wrong = truth is not None and not truth[i, j]
        words = f"{names[i]} to {names[j]}: {given[i, j]:.3f}"
        body.append(_edge(arc, float(given[i, j]), wrong, words))
    for pair, (x, y) in spots.items():
        size = f' font-size="{LABEL_SIZE}"'
        faint = f' fill-opacity="{0.55 + 0.45 * given[pair]:.2f}"'
        text = f"{given[pair]:.2f}"
        body.append(label(float(x), float(y), text, "middle", size + faint))
    for place, name in enumerate(names):
        body.append(_node(placement, place, name, name == target))
    corner, size = _extent(placement, arcs.values(), spots.values())
    shift = f'<g transform="translate({pixel(corner[0])} {pixel(corner[1])})">'
    words = f"Causal graph over {', '.join(names)}"
    return document(*size, words, "", [shift, *body, "</g>"])


def check_probs(names: Sequence[str], probs: Matrix) -> Matrix:
    """Return probabilities as floats, 0 on the diagonal; ValueError if invalid."""
    given = np.array(probs, np.float64)
    if given.shape != (len(names), len(names)):
        raise ValueError(
            f"probs of shape {given.shape} need a row and a column for each of "
            f"{len(names)} names"
        )
    np.fill_diagonal(given, 0.0)
    if not ((given >= 0) & (given <= 1)).all():
        raise ValueError("probs must lie within 0 and 1")
    return given


def place_nodes(names: Sequence[str], probs: Matrix) -> Placement:
    """Return places and sizes of the variables."""
    layout, wanted = lay_out(probs), [text_width(name) + 22 for name in names]
    widths = np.clip(wanted, NODE_WIDTH, WIDEST_NODE)
    columns = range(layout.column.max() + 1)
    wide = np.array([widths[layout.column == c].max() for c in columns])
    gap = GAP_ACROSS * (WIDER if len(names) > MANY else 1.0)
    lefts = np.concatenate([[0.0], np.cumsum(wide + gap)])[:-1]
    x = (lefts + wide / 2)[layout.column]
    return Placement(np.stack([x, layout.height * PITCH_DOWN], axis=1), widths)


def sketch_graph(
    names: Sequence[str], probs: Matrix, least: float
) -> tuple[Placement, dict[Pair, Arc], dict[Pair, Point]]:
    """Return where the variables go, the edges, faint ones first, and the labels of
    those that have one; the likeliest choose their place first.
    """
    placement = place_nodes(names, probs)
    pairs = shown_edges(probs, least)
    arcs = {pair: edge_arc(placement, probs, least, *pair) for pair in pairs}
    taken, spots = list(placement.centers), {}
    for pair, arc in reversed(arcs.items()):
        if probs[pair] >= LABELED:
            rest = [each.at(SAMPLES) for place, each in arcs.items() if place != pair]
            spots[pair] = _label_spot(arc, taken, rest)
            taken.append(spots[pair])
    return placement, arcs, spots


def _extent(
    placement: Placement,
    arcs: Iterable[Arc],
    labels: Iterable[Point],
) -> tuple[Point, tuple[float, float]]:
    """Return how far to shift everything to the right and down, and its size."""
    half = np.stack(
        [placement.widths / 2, np.full(len(placement.widths), NODE_HEIGHT / 2)], 1
    )
    inside = [placement.centers - half, placement.centers + half]
    inside += [arc.at(SAMPLES) for arc in arcs]
    inside += [np.stack([spot - 9, spot + 9]) for spot in labels]
    points = np.concatenate(inside)
    low, high = points.min(axis=0) - MARGIN, points.max(axis=0) + MARGIN
    width, height = (high - low).tolist()
    return -low, (width, height)


def edge_arc(placement: Placement, probs: Matrix, least: float, i: int, j: int) -> Arc:
    """Route an edge from border to border; edges both ways never overlap."""
    others = np.delete(placement.centers, [i, j], axis=0)
    room = np.array([placement.widths.max() / 2 + 8, NODE_HEIGHT / 2 + 8])
    ends = placement.centers[i], placement.centers[j]
    whole = choose_arc(*ends, others, room, straight=bool(probs[j, i] < least))
    points = whole.at(SAMPLES)
    left = np.flatnonzero(_outside(placement, i, points, 2.0))
    before = np.flatnonzero(_outside(placement, j, points, 5.0))
    return whole.cut(float(SAMPLES[left[0]]), float(SAMPLES[before[-1]]))


def _outside(
    placement: Placement, place: int, points: Points, gap: float
) -> Bool[np.ndarray, " n"]:
    """Return which points lie outside the box of a node and a gap around it."""
    half = np.array([placement.widths[place] / 2, NODE_HEIGHT / 2]) + gap
    return (np.abs(points - placement.centers[place]) > half).any(axis=1)


def _curve(arc: Arc) -> str:
    spell = lambda p: f"{pixel(p[0])} {pixel(p[1])}"
    return f"M{spell(arc.start)}Q{spell(arc.control)} {spell(arc.stop)}"


def _edge(arc: Arc, prob: float, wrong: bool, name: str) -> str:
    color = WRONG if wrong else TRUE
    opacity, width = 0.35 + 0.65 * prob, 1.0 + 2.5 * prob
    dash = ' stroke-dasharray="7 5"' if wrong else ""
    along = arc.stop - arc.control
    along = along / max(np.hypot(*along), 1e-9)
    side = np.array([-along[1], along[0]])
    back = arc.stop - ARROW * along
    corners = (arc.stop, back + 0.45 * ARROW * side, back - 0.45 * ARROW * side)
    head = " ".join(f"{pixel(x)},{pixel(y)}" for x, y in corners)
    line = Arc(arc.start, arc.control, back)
    return (
        f'<g data-edge="{prob:.3f}" opacity="{opacity:.2f}"><title>{escape(name)}'
        f'</title><path d="{_curve(line)}" fill="none" stroke="{color}" '
        f'stroke-width="{width:.2f}"{dash}/><polygon points="{head}" '
        f'fill="{color}"/></g>'
    )


def _missed(arc: Arc) -> str:
    return (
        f'<path data-missed="true" d="{_curve(arc)}" fill="none" stroke="currentColor" '
        f'stroke-opacity="0.55" stroke-width="1.5" stroke-dasharray="1.5 5"/>'
    )


def _label_spot(arc: Arc, taken: list[Point], lines: list[Points]) -> Point:
    """Return a free place beside an edge for its label, off places and lines."""
    along = arc.stop - arc.start
    side = np.array([along[1], -along[0]]) / max(np.hypot(*along), 1e-9)
    pulled = float(side @ (arc.control - arc.start))
    if pulled < -1 or (abs(pulled) <= 1 and side[1] > 0):  # outwards, else upwards
        side = -side
    step = side * (9 + 10 * abs(side[0]))
    spots = np.concatenate([arc.at(PLACES) + step, arc.at(PLACES) - step])
    free = np.minimum(_room(spots, np.stack(taken), LABEL_ROOM), 1.0)
    if lines:
        free += 0.5 * np.minimum(_room(spots, np.concatenate(lines), LINE_ROOM), 1.0)
    return spots[int(np.argmax(free))]


def _room(
    spots: Float[np.ndarray, "m two"],
    places: Points,
    room: Point,
) -> Float[np.ndarray, " m"]:
    """Return the distance of each spot to the nearest place, in units of `room`."""
    gaps = np.abs(spots[:, None] - places[None]) / room
    return gaps.max(axis=-1).min(axis=-1)


def _node(placement: Placement, place: int, name: str, is_target: bool) -> str:
    (x, y), width = placement.centers[place], float(placement.widths[place])
    color = TARGET if is_target else "currentColor"
    fill = 0.22 if is_target else 0.06
    stroke = 2.5 if is_target else 1.2
    words = shorten(name, width - 16)
    bold = ' font-weight="600"' if is_target else ""
    return (
        f'<g data-node="{escape(name)}"><title>{escape(name)}</title>'
        f'<rect x="{pixel(x - width / 2)}" y="{pixel(y - NODE_HEIGHT / 2)}" '
        f'width="{pixel(width)}" height="{pixel(NODE_HEIGHT)}" '
        f'rx="{pixel(NODE_HEIGHT / 2)}" fill="{color}" fill-opacity="{fill}" '
        f'stroke="{color}" stroke-width="{stroke}" stroke-opacity="0.8"/>'
        f"{label(float(x), float(y), words, 'middle', bold)}</g>"
    )


FORMATS = (".svg", ".png")
PIXELS_PER_INCH = 100


def save_graph(
    path: Path,
    names: Sequence[str],
    probs: Float[np.ndarray, "d d"],
    target: str | None = None,
    least: float = LEAST,
) -> Path:
    """Write a graph in the format of the file's suffix, .svg or .png."""
    kind = path.suffix.lower()
    if kind not in FORMATS:
        raise ValueError(f"{path.name!r} ends in {kind!r}: use .svg or .png")
    if kind == ".svg":
        return write_file(path, draw_graph(names, probs, target, least=least))
    return write_file(path, graph_png(names, probs, target, least))


def graph_png(
    names: Sequence[str],
    probs: Float[np.ndarray, "d d"],
    target: str | None = None,
    least: float = LEAST,
) -> bytes:
    """Return the drawing of `draw_graph` as the bytes of a PNG, on white."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            f"PNG needs matplotlib: {install_command('viz')}, or write .svg"
        ) from error
    given = check_probs(names, probs)
    placement, arcs, spots = sketch_graph(names, given, least)
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
        color = TARGET if name == target else "black"
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


def _add_edge(axes: Any, arc: Arc, prob: float) -> None:
    look = {"color": TRUE, "alpha": 0.2 + 0.8 * prob, "lw": 0.8 + 1.6 * prob}
    points = arc.at(SAMPLES)
    axes.plot(*points[:-3].T, **look)
    head = {"arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 0, **look}
    axes.annotate("", arc.stop, points[-4], arrowprops=head)
