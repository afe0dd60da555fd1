"""Kernel sums over particles, compiled once per shape, in chunks of bounded memory.

Lengths come in units of one smoothing length, so that nothing here has a scale.
"""

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Int32

from jaxrig.batching import ChunkedMap, axis_length, map_chunked, pad_axis
from jaxtrace.config import working_cores

# Cells are this much wider than the reach, so that no rounding of a distance on the
# device can find a neighbor two cells away.
_MARGIN = 2.0**-14
# Cells per axis, so that the key of a cell fits 64 bits.
_MOST_CELLS = {2: 2**30, 3: 2**20}


class CellGrid:
    """Particles sorted by cell; all within `reach` of a point lie in few ranges.

    Cells are at least `reach` wide, so that neighbors lie in the cells around that of
    the point; along the last axis those are adjacent in the sorted order, which leaves
    3 ranges in 2-D and 9 in 3-D. Only occupied cells take space.
    """

    def __init__(self, positions: Float[np.ndarray, "particles dims"], reach: float):
        dims = positions.shape[1]
        self._origin = positions.min(axis=0)
        extent = positions.max(axis=0) - self._origin
        cell = np.maximum(reach * (1 + _MARGIN), extent / _MOST_CELLS[dims])
        self._cell = np.where(cell > 0, cell, 1.0)
        self._shape = np.floor(extent / self._cell).astype(np.int64) + 1
        self._strides = np.append(np.cumprod(self._shape[:0:-1])[::-1], 1)
        keys = self._cells(positions) @ self._strides
        self.order = np.argsort(keys, kind="stable")
        self._keys = keys[self.order]

    def _cells(self, points: Float[np.ndarray, "points dims"]) -> np.ndarray:
        """Return cell indices; points off the grid or NaN are two cells out."""
        scaled = np.floor((points - self._origin) / self._cell)
        beside = np.where(np.isnan(scaled), -2.0, scaled)
        return np.clip(beside, -2, self._shape + 1).astype(np.int64)

    def ranges(
        self, points: Float[np.ndarray, "points dims"]
    ) -> tuple[Int[np.ndarray, "points rows"], Int[np.ndarray, "points rows"]]:
        """Return starts and lengths of the runs of `order` with all neighbors."""
        cells = self._cells(points)
        first = np.maximum(cells[:, -1] - 1, 0)
        last = np.minimum(cells[:, -1] + 1, self._shape[-1] - 1)
        starts, counts = [], []
        for offset in itertools.product((-1, 0, 1), repeat=points.shape[1] - 1):
            row = cells[:, :-1] + np.array(offset)
            exists = ((row >= 0) & (row < self._shape[:-1])).all(axis=1)
            base = row @ self._strides[:-1]
            start = np.searchsorted(self._keys, base + first, side="left")
            stop = np.searchsorted(self._keys, base + last, side="right")
            starts.append(start)
            counts.append(np.where(exists & (first <= last), stop - start, 0))
        return (
            np.stack(starts, axis=1).astype(np.int32),
            np.stack(counts, axis=1).astype(np.int32),
        )


_DIRECT_BLOCK = 256  # particles looked at together, in a sum over all
_RANGE_BLOCK = 64  # and in a sum over ranges, which are shorter
_RANGE_BYTES = 128  # of one range of one query while it is looked up on the host
# Queries of one call. The last bit of a sum may depend on it, so it is the same for any
# number of cores: small enough that all have something to do, large enough to pay.
_LARGEST_CHUNK = 1024
_CHUNKS_ALIVE = 2  # map_chunked starts one while another ends
_TEMPORARIES = 6  # arrays of a block that may be alive at a time


class Sources(NamedTuple):
    """What is summed: particles in units of the smoothing length, on the host."""

    positions: Float[np.ndarray, "particles dims"]
    weights: Float[np.ndarray, " particles"]
    lengths: Float[np.ndarray, " particles"]


def bucket(count: int) -> int:
    """Round up to one of eight sizes per octave: few shapes to compile."""
    # Sizes an eighth of an octave apart waste at most 12.5 % of the work.
    step = 2 ** max(0, count.bit_length() - 4)
    return math.ceil(count / step) * step


def chunk_size(count: int, item_bytes: int, limit_bytes: float) -> int:
    """Return how many items of this working set fit the limit."""
    fits = int(limit_bytes / (_CHUNKS_ALIVE * item_bytes))
    if fits < 1:
        raise ValueError(
            f"memory_limit_gb allows {limit_bytes:.3g} bytes, and the smallest chunk "
            f"takes {_CHUNKS_ALIVE * item_bytes:.3g}: configure at least that"
        )
    return min(fits, _LARGEST_CHUNK, bucket(max(count, 1)))


def chunks_together(chunk: int, item_bytes: int, limit_bytes: float) -> int:
    """Return how many chunks run at once: one per core, and one waits, in the limit."""
    fits = int(limit_bytes / (chunk * item_bytes)) - 1
    return max(1, min(working_cores(), fits))


def rescale(sums: np.ndarray, scale: float) -> np.ndarray:
    """Return sums in units of length times a factor that may be beyond float32."""
    return np.multiply(sums, scale, dtype=np.float64).astype(sums.dtype)


def _pad(array: np.ndarray, length: int) -> np.ndarray:
    """Return copies of the last row; in an array of weights, zeros."""
    missing = [(0, length - len(array))] + [(0, 0)] * (array.ndim - 1)
    return np.pad(array, missing, mode="constant" if array.ndim == 1 else "edge")


def _in_blocks(sources: Sources) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return components, weights and lengths in equal blocks, padded by weight 0."""
    # Blocks bound the working set; a bucketed number of them bounds the compilations.
    blocks = bucket(math.ceil(len(sources.weights) / _DIRECT_BLOCK))
    length = blocks * _DIRECT_BLOCK
    parts = _pad(sources.positions, length).reshape(blocks, _DIRECT_BLOCK, -1)
    lengths = np.pad(sources.lengths, (0, length - len(sources.lengths)), mode="edge")
    return (
        np.ascontiguousarray(parts.transpose(0, 2, 1)),
        _pad(sources.weights, length).reshape(blocks, _DIRECT_BLOCK),
        lengths.reshape(blocks, _DIRECT_BLOCK),
    )


def _distance(point: Float[Array, " dims"], parts: Float[Array, "dims block"]) -> Array:
    apart = point[:, None] - parts
    return jnp.sqrt(functools.reduce(jnp.add, [axis * axis for axis in apart]))


def sum_all(
    profile: Callable[..., Array],
    point: Float[Array, " dims"],
    parts: Float[Array, "blocks dims block"],
    weights: Float[Array, "blocks block"],
    lengths: Float[Array, "blocks block"],
) -> Float[Array, ""]:
    """Return the kernel sum at one point over all particles, a block at a time."""

    def add(total: Array, block: tuple[Array, Array, Array]):
        part, weight, length = block
        value = profile(_distance(point, part) / length) * weight
        return total + jnp.sum(value), None

    zero = jnp.zeros((), point.dtype)
    return jax.lax.scan(add, zero, (parts, weights, lengths))[0]


def sum_ranges(
    profile: Callable[..., Array],
    query: tuple[
        Float[Array, " dims"], Int32[Array, " ranges"], Int32[Array, " ranges"]
    ],
    parts: Float[Array, "dims particles"],
    weights: Float[Array, " particles"],
    lengths: Float[Array, " particles"],
) -> Float[Array, ""]:
    """Return the kernel sum at one point over ranges of sorted particles, by blocks."""
    point, starts, counts = query
    lanes = jnp.arange(_RANGE_BLOCK, dtype=jnp.int32)

    def add_range(total: Array, row: tuple[Array, Array]):
        start, count = row

        def add_block(block: Array, total: Array) -> Array:
            offset = block * _RANGE_BLOCK + lanes
            at = jnp.minimum(start + offset, weights.shape[0] - 1)
            value = profile(_distance(point, parts[:, at]) / lengths[at]) * weights[at]
            return total + jnp.sum(jnp.where(offset < count, value, 0.0))

        blocks = (count + _RANGE_BLOCK - 1) // _RANGE_BLOCK
        return jax.lax.fori_loop(0, blocks, add_block, total), None

    zero = jnp.zeros((), point.dtype)
    return jax.lax.scan(add_range, zero, (starts, counts))[0]


def sum_row(
    x: Float[Array, ""],
    parts: Float[Array, "blocks dims block"],
    weights: Float[Array, "blocks block"],
    others: list[Float[Array, " _"]],
) -> Float[Array, "..."]:
    """Return unit normal kernels at one x of a grid, for its other axes."""

    def spread(axis: Array, part: Array) -> Array:
        return jnp.exp(-0.5 * jnp.square(axis[:, None] - part[None, :]))

    def add(total: Array, block: tuple[Array, Array]):
        part, weight = block
        along = weight * jnp.exp(-0.5 * jnp.square(x - part[0]))
        first = spread(others[0], part[1])
        if len(others) == 1:
            value = jnp.dot(first, along, precision="highest")
        else:
            second = spread(others[1], part[2])
            value = jnp.dot(first * along[None, :], second.T, precision="highest")
        return total + value, None

    zero = jnp.zeros([len(axis) for axis in others], x.dtype)
    return jax.lax.scan(add, zero, (parts, weights))[0]


@functools.lru_cache(maxsize=128)
def _program(
    function: Callable[..., Array],
    given: tuple[Any, ...],
    chunk: int,
    together: int,
    *_shapes: Any,
) -> ChunkedMap:
    """Return a sum in chunks, kept for later calls with the same shapes and dtypes."""
    run = functools.partial(function, *given)
    return map_chunked(
        run, chunk_size=chunk, to_host=True, label="queries", together=together
    )


def _run(program: ChunkedMap, items: Any, shared: list[Array]) -> np.ndarray:
    """Run whole chunks, so that no number of queries compiles anew."""
    count = axis_length(items)
    whole = math.ceil(count / program.chunk_size) * program.chunk_size
    return program(pad_axis(items, whole), *shared)[:count]


class DirectSum:
    """Sums over all particles for any point, without a table of all pairs."""

    def __init__(self, sources: Sources):
        blocks = _in_blocks(sources)
        self._shape = (blocks[0].shape, str(blocks[0].dtype))
        self._shared = [jnp.asarray(part) for part in blocks]

    def __call__(
        self, profile: Callable[..., Any], points: np.ndarray, limit_bytes: float
    ) -> Float[np.ndarray, " points"]:
        """Sum of weight * profile(distance / length) at each point."""
        item = _DIRECT_BLOCK * _TEMPORARIES * points.itemsize
        chunk = chunk_size(len(points), item, limit_bytes)
        together = chunks_together(chunk, item, limit_bytes)
        run = _program(sum_all, (profile,), chunk, together, *self._shape)
        return _run(run, points, self._shared)


class NeighborSum:
    """Sums over the particles whose support reaches a point, found by cells.

    Particles are put into levels of lengths within a factor of two, each with cells of
    its own size: a few long ones do not make the search coarse for all.
    """

    def __init__(self, sources: Sources, support: float):
        wide = sources.positions.astype(np.float64)
        shortest = sources.lengths.min()
        level_of = np.floor(np.log2(sources.lengths / shortest)).astype(np.int64)
        self._levels: list[tuple[int, CellGrid]] = []
        orders, offset = [], 0
        for level in np.unique(level_of):
            members = np.flatnonzero(level_of == level)
            reach = support * float(sources.lengths[members].max())
            grid = CellGrid(wide[members], reach)
            self._levels.append((offset, grid))
            orders.append(members[grid.order])
            offset += len(members)
        order = np.concatenate(orders)
        length = bucket(len(order))
        edge = np.append(order, np.repeat(order[-1:], length - len(order)))
        parts = np.ascontiguousarray(sources.positions[edge].T)
        self._shape = (parts.shape, str(parts.dtype))
        arrays = (parts, sources.weights[edge], sources.lengths[edge])
        self._shared = [jnp.asarray(part) for part in arrays]

    def __call__(
        self, profile: Callable[..., Any], points: np.ndarray, limit_bytes: float
    ) -> Float[np.ndarray, " points"]:
        """Sum of weight * profile(distance / length) at each point."""
        dims = points.shape[1]
        item = _RANGE_BLOCK * (_TEMPORARIES + dims) * points.itemsize
        chunk = chunk_size(len(points), item, limit_bytes)
        together = chunks_together(chunk, item, limit_bytes)
        run = _program(sum_ranges, (profile,), chunk, together, *self._shape)
        rooms = int(limit_bytes / (3 ** (dims - 1) * _RANGE_BYTES * chunk))
        width = max(1, rooms) * chunk
        result = np.zeros(len(points), points.dtype)
        for start in range(0, len(points), width):
            rows = slice(start, start + width)
            for offset, grid in self._levels:
                result[rows] += self._sum(run, points[rows], offset, grid)
        return result

    def _sum(
        self, run: ChunkedMap, points: np.ndarray, offset: int, grid: CellGrid
    ) -> np.ndarray:
        starts, counts = grid.ranges(points.astype(np.float64))
        # A chunk takes as long as its longest query: put like with like.
        order = np.argsort(counts.sum(axis=1), kind="stable")
        starts += np.int32(offset)
        result = np.empty(len(points), points.dtype)
        queries = (points[order], starts[order], counts[order])
        result[order] = _run(run, queries, self._shared)
        return result


def separable_sum(
    sources: Sources, axes: list[np.ndarray], limit_bytes: float
) -> Float[np.ndarray, "..."]:
    """Return normal kernels of unit length on a whole grid: exact, by matrix products.

    exp(-|x - y|^2 / 2) is a product over the axes, so that a grid of n^d points takes
    d n exponentials per particle instead of n^d.
    """
    parts, weights, _ = _in_blocks(sources)
    counts = [len(axis) for axis in axes]
    cells = math.prod(counts[1:])
    item = (_DIRECT_BLOCK * counts[1] + 3 * cells) * weights.itemsize
    chunk = min(chunk_size(counts[0], item, limit_bytes), counts[0])
    key = (parts.shape, tuple(counts), str(parts.dtype))
    run = _program(sum_row, (), chunk, chunks_together(chunk, item, limit_bytes), *key)
    others = [jnp.asarray(axis) for axis in axes[1:]]
    return run(axes[0], jnp.asarray(parts), jnp.asarray(weights), others)
