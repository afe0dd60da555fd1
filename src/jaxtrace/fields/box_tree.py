"""A tree of boxes that finds every item near a place, without a stack.

Nodes lie in depth-first order: a box that is touched is followed by its children, one
that is not by the node its skip link names.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

SMALLEST_GROUP, GROUPS = 256, 8  # rows worked on together, and in how many groups
# Boxes looked at between visits: a test whether any lane still moves reduces over all
# lanes, so that several looks share one.
SEEKS, SEEKS_PER_TEST = 8, 4

Lanes = Any  # a pytree of arrays with one row per query


class Tree(eqx.Module):
    """Boxes (low corner, high corner), skip links, and the item of every leaf.

    Several trees may lie end to end; part i is nodes starts[i] to starts[i + 1].
    """

    boxes: Float[Array | np.ndarray, "*batch nodes corners"]
    skips: Int[Array | np.ndarray, "*batch nodes"]
    items: Int[Array | np.ndarray, "*batch nodes"]  # -1 where not a leaf
    starts: Int[Array | np.ndarray, "*batch ends"]

    @property
    def dimension(self) -> int:
        """Return how many coordinates a place has."""
        return self.boxes.shape[-1] // 2


def build_tree(
    low: Float[np.ndarray, "items dim"],
    high: Float[np.ndarray, "items dim"],
    ordered: bool = False,
) -> Tree:
    """Build a balanced tree of boxes, halved along the longest axis of centers.

    Items that are `ordered`, along a space-filling curve say, are halved as they lie.
    """
    count = len(low)
    depth = max(int(np.ceil(np.log2(max(count, 1)))), 0)
    items = np.arange(count)
    if not ordered:
        items = _halved(0.5 * (low + high), depth)[:count]
        low, high = low[items], high[items]
    lows, highs = [low], [high]
    for _ in range(depth):
        lows.insert(0, _pairs(np.minimum, lows[0]))
        highs.insert(0, _pairs(np.maximum, highs[0]))
    return _depth_first(lows, highs, items)


def _pairs(choose: np.ufunc, rows: np.ndarray) -> np.ndarray:
    """Return one row for every two; the last stands for itself if it is alone."""
    both = choose(rows[:-1:2], rows[1::2])
    return both if len(rows) % 2 == 0 else np.concatenate([both, rows[-1:]])


def _halved(centers: Float[np.ndarray, "items dim"], depth: int) -> np.ndarray:
    """Return items in leaf order; places left over hold the number of items."""
    count = len(centers)
    order = np.full(2**depth, count)
    order[:count] = np.arange(count)
    centers = np.concatenate([centers, np.full((1, centers.shape[1]), np.nan)])
    for level in range(depth):
        rows = order.reshape(2**level, -1)
        with np.errstate(invalid="ignore"):
            here = centers[rows]
            spread = np.fmax.reduce(here, 1) - np.fmin.reduce(here, 1)
        axis = np.argmax(np.nan_to_num(spread, nan=-1.0), 1)
        along = np.take_along_axis(here, axis[:, None, None], 2)[..., 0]
        half = rows.shape[1] // 2
        place = np.argpartition(np.nan_to_num(along, nan=np.inf), half, 1)
        order = np.take_along_axis(rows, place, 1).ravel()
    return order


def _depth_first(lows: list[Any], highs: list[Any], items: np.ndarray) -> Tree:
    """Return nodes of all levels in depth-first order."""
    # Nodes of a full tree that have no item come after all others in this order.
    depth, total = len(lows) - 1, sum(map(len, lows))
    boxes = np.empty((total, 2 * lows[0].shape[1]), lows[0].dtype)
    skips = np.empty(total, np.int32)
    found = np.full(total, -1, np.int32)
    place = np.zeros(1, np.int64)
    for level, (low, high) in enumerate(zip(lows, highs, strict=True)):
        place = place[: len(low)]
        size = 2 ** (depth - level + 1) - 1
        boxes[place] = np.concatenate([low, high], 1)
        skips[place] = np.minimum(place + size, total)
        if level == depth:
            found[place] = items
        left = place + 1
        place = np.stack([left, left + size // 2], 1).ravel()
    return Tree(boxes, skips, found, np.array([0, total], np.int32))


def build_parts(
    low: Float[np.ndarray, "items dim"],
    high: Float[np.ndarray, "items dim"],
    part: Int[np.ndarray, " items"],
    ordered: bool = False,
) -> Tree:
    """Build one tree per part of the items, end to end; no part may be empty."""
    if not part.any():
        return build_tree(low, high, ordered)
    trees = []
    for number in range(int(part.max()) + 1):
        members = np.flatnonzero(part == number)
        tree = build_tree(low[members], high[members], ordered)
        named = np.where(tree.items < 0, -1, members[tree.items])
        trees.append((tree.boxes, tree.skips, named))
    sizes = [len(skips) for _, skips, _ in trees]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    return Tree(
        np.concatenate([boxes for boxes, _, _ in trees]),
        np.concatenate([t[1] + s for t, s in zip(trees, starts[:-1], strict=True)]),
        np.concatenate([items for _, _, items in trees]).astype(np.int32),
        starts,
    )


def rows(table: Any, index: Int[Array, "..."]) -> Array:
    """Return rows of a table at indices known to be in range."""
    return jnp.asarray(table).at[index].get(mode="promise_in_bounds")


def traverse(
    tree: Tree,
    lanes: Lanes,
    active: Bool[Array, " lanes"],
    touches: Callable[[Lanes, Array], Array],
    visit: Callable[[Lanes, Array, Array], tuple[Lanes, Array]],
    first: Int[Array, " lanes"] | None = None,
    part: Int[Array, " lanes"] | None = None,
    costly: bool = False,
) -> Lanes:
    """Let every active lane visit the items whose boxes it touches.

    `touches(lanes, boxes)` says which lanes touch their box; `visit(lanes, items,
    here)` changes the lanes that are `here` and says which have seen enough. Items in
    `first` are visited before all others (-1: none); lanes keep to their `part`. When
    visits are `costly`, all lanes seek until each has an item to visit.
    """
    size = tree.boxes.shape[-2]
    root, end = jnp.zeros((), np.int32), jnp.asarray(size, np.int32)
    if part is not None:
        root, end = rows(tree.starts, part), rows(tree.starts, part + 1)
    node = jnp.where(active, root, end)
    none = jnp.full_like(node, -1)

    def seek(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        node, item, lanes = carry
        moving = (node < end) & (item < 0)
        at = jnp.minimum(node, size - 1)
        touched = moving & touches(lanes, rows(tree.boxes, at))
        onward = jnp.where(touched, node + 1, rows(tree.skips, at))
        item = jnp.where(touched, rows(tree.items, at), item)
        return jnp.where(moving, onward, node), item, lanes

    def step(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        node, item, lanes = carry
        here = item >= 0
        lanes, enough = visit(lanes, jnp.maximum(item, 0), here)
        node = jnp.where(here & enough, end, node)
        if costly:
            seeking = lambda carry: jnp.any((carry[0] < end) & (carry[1] < 0))
            seek_on = in_rounds(seek, SEEKS_PER_TEST)
            return lax.while_loop(seeking, seek_on, (node, none, lanes))
        return lax.fori_loop(0, SEEKS, lambda _, c: seek(c), (node, none, lanes))

    going = lambda carry: jnp.any((carry[0] < end) | (carry[1] >= 0))
    start = (node, none if first is None else first, lanes)
    return lax.while_loop(going, step, start)[2]


def in_rounds(work: Callable[[Any], Any], count: int) -> Callable[[Any], Any]:
    """Return work done several times per round of a loop on a GPU, else once.

    There a test whether any lane goes on costs as much as the work itself. Work must
    leave lanes alone that are through.
    """
    if jax.default_backend() != "gpu":
        return work

    def several(carry: Any) -> Any:
        for _ in range(count):
            carry = work(carry)
        return carry

    return several


def distances(x: Float[Array, "n dim"], boxes: Float[Array, "n corners"]) -> Array:
    """Return squared distances of places from boxes, 0 inside."""
    d = x.shape[1]
    boxes = boxes.astype(x.dtype)
    beyond = jnp.maximum(jnp.maximum(boxes[:, :d] - x, x - boxes[:, d:]), 0)
    return jnp.sum(beyond * beyond, -1)


def descend(
    tree: Tree, x: Float[Array, "n dim"], part: Int[Array, " n"] | None = None
) -> Int[Array, " n"]:
    """Return an item near each place, by going to the nearer box all the way down.

    It need not be the nearest, but it is a bound that spares most of the search for it.
    """
    node = jnp.zeros(x.shape[0], np.int32) if part is None else rows(tree.starts, part)
    size = tree.boxes.shape[-2]

    def inner(node: Array) -> Array:
        return rows(tree.items, node) < 0

    def down(node: Array) -> Array:
        left = jnp.minimum(node + 1, size - 1)
        right = rows(tree.skips, left)
        both = right < rows(tree.skips, node)
        right = jnp.where(both, right, left)
        near = distances(x, rows(tree.boxes, left))
        far = distances(x, rows(tree.boxes, right))
        child = jnp.where(far < near, right, left)
        return jnp.where(inner(node), child, node)

    node = lax.while_loop(lambda node: jnp.any(inner(node)), down, node)
    return rows(tree.items, node)


def select(chosen: Bool[Array, " lanes"], new: Lanes, old: Lanes) -> Lanes:
    """Return the new rows where chosen, the old ones elsewhere."""

    def pick(a: Array, b: Array) -> Array:
        mask = chosen.reshape(chosen.shape + (1,) * (a.ndim - 1))
        return jnp.where(mask, a, b)

    return jax.tree.map(pick, new, old)


def in_groups(
    wanted: Bool[Array, " n"],
    given: Lanes,
    results: Lanes,
    work: Callable[[Lanes, Array], Lanes],
    groups: int = GROUPS,
) -> Lanes:
    """Compute the wanted rows of results anew, a group at a time.

    `work(rows of given, which of them count)` answers with rows of results; few wanted
    rows cost little, however many rows there are.
    """
    count = wanted.shape[0]
    if count == 0:
        return results
    group = min(count, max(SMALLEST_GROUP, -(-count // groups)))
    room = -(-count // group) * group
    rank = jnp.cumsum(wanted.astype(np.int32)) - 1
    order = jnp.full(room, count, np.int32)
    everyone = jnp.arange(count, dtype=np.int32)
    order = order.at[jnp.where(wanted, rank, room)].set(everyone, mode="drop")

    def turn(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        done, results = carry
        mine = lax.dynamic_slice(order, (done,), (group,))
        at = jnp.minimum(mine, count - 1)
        new = work(jax.tree.map(lambda a: rows(a, at), given), mine < count)
        write = lambda old, new: old.at[mine].set(new, mode="drop")
        return done + group, jax.tree.map(write, results, new)

    start = (jnp.zeros((), np.int32), results)
    return lax.while_loop(lambda carry: carry[0] <= rank[-1], turn, start)[1]
