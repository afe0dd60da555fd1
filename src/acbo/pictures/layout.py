"""Where the variables of a graph go: a column for each causal depth, few crossings."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

SWEEPS = 4
# How far an edge may swing out, in pixels; the first that keeps clear is taken.
SWINGS = (0.0, 26.0, -26.0, 48.0, -48.0, 74.0, -74.0, 104.0, -104.0)
MOST_BENT = 0.35  # of the length of an edge
SAMPLES = np.linspace(0.0, 1.0, 65)


@dataclass(frozen=True, eq=False)
class Layout:
    """Column and height of every variable, in steps; heights are centered on 0."""

    column: Int[np.ndarray, " d"]
    height: Float[np.ndarray, " d"]


def likely_dag(
    probs: Float[np.ndarray, "d d"], threshold: float = 0.5
) -> Bool[np.ndarray, "d d"]:
    """Edges likelier than the threshold, the likeliest first, none closing a cycle."""
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
    """Edges on the longest path to each variable of an acyclic graph."""
    depth = np.zeros(len(dag), int)
    for _ in range(len(dag)):
        depth = np.maximum(depth, np.where(dag, depth[:, None] + 1, 0).max(axis=0))
    return depth


def lay_out(probs: Float[np.ndarray, "d d"], threshold: float = 0.5) -> Layout:
    """Causes left of effects; in a column, variables near those they are linked to."""
    dag = likely_dag(probs, threshold)
    column = causal_depths(dag)
    linked = dag | dag.T
    height = np.zeros(len(probs))
    for place in range(column.max() + 1):
        _spread(height, np.flatnonzero(column == place))
    for _ in range(SWEEPS):
        for place in range(column.max() + 1):
            members = np.flatnonzero(column == place)
            wish = [
                height[linked[i]].mean() if linked[i].any() else height[i]
                for i in members
            ]
            _spread(height, members[np.argsort(wish, kind="stable")])
    return Layout(column, height)


def _spread(height: Float[np.ndarray, " d"], members: Int[np.ndarray, " m"]) -> None:
    """Evenly around 0 in the order given."""
    height[members] = np.arange(len(members)) - (len(members) - 1) / 2


@dataclass(frozen=True, eq=False)
class Arc:
    """A quadratic curve from one point to another, pulled towards a third."""

    start: Float[np.ndarray, " two"]
    control: Float[np.ndarray, " two"]
    stop: Float[np.ndarray, " two"]

    def at(self, share: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n two"]:
        """Points of the curve, from 0 at its start to 1 at its end."""
        t = share[:, None]
        near, far = (1 - t) ** 2 * self.start, t**2 * self.stop
        return near + 2 * t * (1 - t) * self.control + far

    def cut(self, first: float, last: float) -> "Arc":
        """The part of the curve between two shares of it."""
        start, stop = self.at(np.array([first, last]))
        lead = (1 - first) * self.start + first * self.control
        tail = (1 - first) * self.control + first * self.stop
        return Arc(start, (1 - last) * lead + last * tail, stop)


def swing_out(
    start: Float[np.ndarray, " two"], stop: Float[np.ndarray, " two"], swing: float
) -> Arc:
    """A curve whose middle is this far to the left of the straight line."""
    along = stop - start
    length = max(float(np.hypot(*along)), 1.0)
    bend = np.clip(swing / length, -MOST_BENT, MOST_BENT)
    side = np.array([along[1], -along[0]])
    return Arc(start, (start + stop) / 2 + 2 * bend * side, stop)


def choose_arc(
    start: Float[np.ndarray, " two"],
    stop: Float[np.ndarray, " two"],
    others: Float[np.ndarray, "n two"],
    room: Float[np.ndarray, " two"],
    straight: bool = True,
) -> Arc:
    """The straightest curve that keeps clear of other places by `room`, x and y."""
    # Two edges between the same two places keep apart, each to its own left.
    swings = SWINGS if straight else [swing for swing in SWINGS if swing > 0]
    arcs = [swing_out(start, stop, swing) for swing in swings]
    return max(arcs, key=lambda arc: min(_clearance(arc, others, room), 1.0))


def _clearance(
    arc: Arc, others: Float[np.ndarray, "n two"], room: Float[np.ndarray, " two"]
) -> float:
    """Smallest distance to the other places in units of the room they need."""
    if not len(others):
        return np.inf
    gaps = np.abs(arc.at(SAMPLES)[:, None] - others[None]) / room
    return float(gaps.max(axis=-1).min())


def shown_edges(
    probs: Float[np.ndarray, "d d"], least: float
) -> Iterator[tuple[int, int]]:
    """Pairs whose probability is at least `least`, faint ones first."""
    order = np.argsort(probs, axis=None, kind="stable")
    for place in order:
        i, j = divmod(int(place), len(probs))
        if i != j and probs[i, j] >= least:
            yield i, j
