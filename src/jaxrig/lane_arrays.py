"""Arrays inside a kernel: in memory, or spread over registers entry by entry.

A kernel has numbers and vectors of one number per lane, no arrays of other shapes. So
an array with the axis of the items is a vector for each entry of its other axes, and
whatever moves entries (slicing, stacking, broadcasting) is done while the kernel is
traced.
"""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

LANES = 64  # of a block: two warps
MAX_UNROLLED = 64  # numbers of an array that every lane may hold

Shape = Sequence[int]


class NotInLanes(Exception):
    """An operation that a kernel of independent lanes cannot do; XLA can."""


@dataclass(frozen=True)
class Stored:
    """An array that all items share, or a part of one, in memory until it is loaded."""

    ref: Any
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: Any = 0

    lanes = False

    @classmethod
    def whole(cls, ref: Any, dtype: Any, shape: Shape, offset: Any = 0) -> "Stored":
        """Return the array of a shape that fills a line of memory."""
        strides = tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))
        return cls(ref, np.dtype(dtype), tuple(shape), strides, offset)

    def at(self, offset: Any) -> Any:
        """Load the number, or a number for each lane, that lies at an offset."""
        place = jnp.asarray(added(self.offset, offset), np.int32)
        found = triton().load(self.ref.at[place])
        return found != 0 if self.dtype == bool else found

    def entries(self) -> np.ndarray:
        """Load all of it."""
        steps = lambda place: zip(place, self.strides, strict=True)
        return filled(self.shape, lambda *p: self.at(sum(i * s for i, s in steps(p))))


@dataclass(frozen=True)
class Held:
    """An array in registers: a number, or one for each lane, per entry of `parts`.

    `lanes` says whether the axis of the items is its first; `parts` has the others.
    """

    parts: np.ndarray
    lanes: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the lengths of the axes besides that of the items."""
        return self.parts.shape

    def chosen(self, axis: int, number: Any) -> "Held":
        """Return what has a number along an axis: registers have no index."""
        if self.lanes:
            raise NotInLanes("an index among what each item has")
        found, *before = reversed(
            [self.parts.take(i, axis) for i in range(self.shape[axis])]
        )
        for i, part in zip(reversed(range(len(before))), before, strict=True):
            found = each(lambda a, b, i=i: jnp.where(number <= i, a, b), part, found)
        return Held(boxed(found), lanes=False)

    def number(self) -> Any:
        """Return the only entry, which all items share."""
        if self.lanes:
            raise NotInLanes("a choice by each item")
        return jnp.asarray(self.parts.reshape(-1)[0])

    def spread(self) -> list[Any]:
        """Return the entries, with a number for every lane also where all are alike."""
        every = lambda x: (
            jnp.broadcast_to(x, (LANES,)) if self.lanes else jnp.asarray(x)
        )
        return [every(x) for x in self.parts.reshape(-1)]


Value = Stored | Held


def filled(shape: Shape, entry: Callable[..., Any]) -> np.ndarray:
    """Return an array of what a function gives for each place of a shape."""
    if math.prod(shape) > MAX_UNROLLED:
        raise NotInLanes(f"an array of shape {tuple(shape)} per item")
    box = np.empty(tuple(shape), object)
    for place in np.ndindex(box.shape):
        box[place] = entry(*place)
    return box


def each(function: Callable[..., Any], *arrays: Any) -> np.ndarray:
    """Return a function of every entry of arrays, which broadcast."""
    boxes = np.broadcast_arrays(*(boxed(x) for x in arrays))

    def entry(*place: int) -> Any:
        args = [box[place] for box in boxes]
        if any(np.ndim(x) for x in args):
            return function(*(jnp.broadcast_to(x, (LANES,)) for x in args))
        return function(*(jnp.asarray(x) for x in args))

    return filled(boxes[0].shape, entry)


def boxed(entries: Any) -> np.ndarray:
    """Return entries as an array, also where NumPy has handed out the only one."""
    if isinstance(entries, np.ndarray) and entries.dtype == object:
        return entries
    return filled((), lambda: entries)


def restored(entries: Sequence[Any], like: Sequence[tuple[Shape, bool]]) -> list[Held]:
    """Return values of shapes, with lanes or not, from all entries in a row."""
    rest: Iterator[Any] = iter(entries)
    return [Held(filled(shape, lambda *_: next(rest)), lanes) for shape, lanes in like]


def constant(value: Any, dtype: Any) -> Held:
    """Return a small array as numbers that are written into the kernel."""
    array = np.asarray(value)
    return Held(
        filled(array.shape, lambda *p: np.dtype(dtype).type(array[p])), lanes=False
    )


def added(a: Any, b: Any) -> Any:
    """Return the sum of offsets, without an operation where one is nothing."""
    if isinstance(a, int) and a == 0:
        return b
    return a if isinstance(b, int) and b == 0 else a + b


def triton() -> Any:
    """Return the part of JAX that writes GPU kernels; experimental, hence on use."""
    from jax.experimental.pallas import triton

    return triton


# --- entries from other places; `shape` and `lanes` are those of the result ------


def broadcast_in_dim(held: Held, params: Any, shape: Shape, lanes: bool) -> Held:
    """Return entries along more axes."""
    dimensions = list(params["broadcast_dimensions"])
    if held.lanes and (not lanes or dimensions[0] != 0):
        raise NotInLanes("a broadcast that moves the items")
    kept, parts = [d - lanes for d in dimensions[held.lanes :]], held.parts
    if -1 in kept:  # an axis of length one along the items
        kept, parts = kept[1:], parts.reshape(parts.shape[1:])
    inner = [1] * len(shape)
    for axis, place in enumerate(kept):
        inner[place] = parts.shape[axis]
    return Held(np.broadcast_to(parts.reshape(inner), shape), lanes)


def reshape(
    value: Value, params: Any, shape: Shape, lanes: bool, squeezed: bool
) -> Value:
    """Return the same entries with other axes."""
    if isinstance(value, Stored):
        if squeezed:
            kept = [i for i in range(len(value.shape)) if i not in params["dimensions"]]
            strides = tuple(value.strides[i] for i in kept)
            return replace(value, shape=tuple(shape), strides=strides)
        whole = Stored.whole(value.ref, value.dtype, value.shape)
        if value.strides == whole.strides:
            return Stored.whole(value.ref, value.dtype, shape, value.offset)
        value = Held(value.entries(), lanes=False)
    if lanes != value.lanes:
        raise NotInLanes("a reshape of the items")
    return Held(value.parts.reshape(shape), lanes)


def cut(value: Value, params: Any, shape: Shape, lanes: bool) -> Value:
    """Return a slice."""
    first, last = params["start_indices"], params["limit_indices"]
    by = params["strides"] or (1,) * len(first)
    if isinstance(value, Stored):
        moved = sum(f * s for f, s in zip(first, value.strides, strict=True))
        strides = tuple(s * b for s, b in zip(value.strides, by, strict=True))
        offset = added(value.offset, moved)
        return replace(value, shape=tuple(shape), strides=strides, offset=offset)
    if value.lanes != lanes:
        raise NotInLanes("a slice of the items")
    ranges = [slice(*r) for r in zip(first, last, by, strict=True)]
    return Held(value.parts[tuple(ranges[lanes:])], lanes)


def between(value: Value, axis: int, first: int, last: int) -> Value:
    """Return what lies between two places along an axis, items not counted."""
    begin, end = [0] * len(value.shape), list(value.shape)
    begin[axis], end[axis] = first, last
    if value.lanes:  # whose slice takes all of them
        begin, end = [0, *begin], [0, *end]
    shape = [e - b for b, e in zip(begin, end, strict=True)][value.lanes :]
    params = {"start_indices": begin, "limit_indices": end, "strides": None}
    return cut(value, params, shape, value.lanes)


def row_of(rows: Stored, number: Any) -> Stored:
    """Return one of the first axis."""
    offset = added(rows.offset, number * rows.strides[0])
    return replace(rows, shape=rows.shape[1:], strides=rows.strides[1:], offset=offset)


def dynamic_slice(value: Value, starts: Sequence[Any], shape: Shape) -> Value:
    """Return a slice that begins where numbers say, kept within the array."""
    offset: Any = 0
    for axis, start in enumerate(starts):
        length = value.shape[axis]
        if length == shape[axis]:
            continue
        start = jnp.clip(start, 0, length - shape[axis]).astype(np.int32)
        if isinstance(value, Stored):
            offset = added(offset, start * value.strides[axis])
        elif shape[axis] == 1:
            one = value.chosen(axis, start)
            value = Held(np.expand_dims(one.parts, axis), lanes=False)
        else:
            raise NotInLanes("a range of what is in registers")
    if isinstance(value, Stored):
        offset = added(value.offset, offset)
        return replace(value, shape=tuple(shape), offset=offset)
    return value


def joined(parts: list[Held], axis: int, lanes: bool, new: bool) -> Held:
    """Return arrays side by side along an axis, which may be a new one."""
    if lanes and axis == 0:
        raise NotInLanes("another axis of the items")
    join = np.stack if new else np.concatenate
    return Held(join([part.parts for part in parts], axis - lanes), lanes)


def folded(operation: Callable[..., Any], held: Held, axes: Sequence[int]) -> Held:
    """Return the entries along axes reduced to one."""
    if held.lanes and 0 in axes:
        raise NotInLanes("a reduction over the items")
    parts = held.parts
    for axis in sorted((a - held.lanes for a in axes), reverse=True):
        some = [parts.take(i, axis) for i in range(parts.shape[axis])]
        parts = functools.reduce(functools.partial(each, operation), some)
    return Held(boxed(parts), held.lanes)


# --- arithmetic that the compiler of kernels lacks --------------------------------

ROTATIONS = (13, 15, 26, 6), (17, 29, 16, 24)  # of Threefry-2x32, in turns


def threefry(key0: Any, key1: Any, x0: Any, x1: Any) -> tuple[Any, Any]:
    """Return two random words: Threefry-2x32, 20 rounds (Salmon et al., SC 2011)."""
    keys = key0, key1, key0 ^ key1 ^ np.uint32(0x1BD11BDA)
    x0, x1 = x0 + keys[0], x1 + keys[1]
    for block in range(5):
        for by in ROTATIONS[block % 2]:
            x0 = x0 + x1
            x1 = x0 ^ (x1 << np.uint32(by) | x1 >> np.uint32(32 - by))
        x0 = x0 + keys[(block + 1) % 3]
        x1 = x1 + keys[(block + 2) % 3] + np.uint32(block + 1)
    return x0, x1


def less_in_order(a: Array, b: Array) -> Array:
    """Compare floats as sorting does: -0 before 0, and NaN last."""

    def rank(x: Array) -> Array:
        # The bits of a float count up as integers do, and down where it is negative.
        kind = np.int64 if x.dtype == np.float64 else np.int32
        bits = jax.lax.bitcast_convert_type(x, kind)
        return jnp.where(bits < 0, bits ^ np.iinfo(kind).max, bits)

    floats = jnp.issubdtype(a.dtype, np.floating)
    return rank(a) < rank(b) if floats else a < b


def rounded(x: Array, exponent_bits: int, mantissa_bits: int) -> Array:
    """Return the nearest float32 of fewer bits, ties to even."""
    if x.dtype != np.float32 or exponent_bits != 8 or mantissa_bits >= 23:
        raise NotInLanes("rounding to this kind of number")
    dropped = 23 - mantissa_bits
    kept, half = np.uint32(2**32 - 2**dropped), np.uint32(2 ** (dropped - 1) - 1)
    bits = jax.lax.bitcast_convert_type(x, np.uint32)
    near = bits + half + (bits >> np.uint32(dropped) & np.uint32(1)) & kept
    return jnp.where(x == x, jax.lax.bitcast_convert_type(near, np.float32), x)
