"""Attention as one kernel: heads of lines of cells by blocks, weights in registers.

Written out, the weights of all pairs of places are the largest array of the network by
far. Here they live while a block needs them, and are worked out again on the way back.
"""

import functools
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas
from jax.experimental.pallas import triton
from jaxtyping import Array, Bool, Float

# Weights that a block has in registers at a time on the way back, where all that it
# has forward do not fit; with fewer an H200 was left waiting for memory.
LOOKED_BACK = 64 * 128
FEWEST = 16  # rows, columns and sums of a matrix product on the device
SHORT, LONGEST = 64, 128  # shorter lines share a block, longer ones are slower so


@dataclass(frozen=True)
class Shape:
    """How the table is cut into blocks: some lines of cells, padded to even sizes."""

    axis: int  # along which a line lies
    places: int
    lines: int
    size: int  # numbers of a head

    @property
    def long(self) -> int:
        """Places of a line in a block."""
        return max(pallas.next_power_of_2(self.places), FEWEST)

    @property
    def together(self) -> int:
        """Lines of a block."""
        return max(SHORT // self.long, 1)

    @property
    def wide(self) -> int:
        """Cells of a block."""
        return self.together * self.long

    @property
    def scale(self) -> float:
        """Of the products of queries and keys."""
        return float(1.0 / np.sqrt(self.size))

    @property
    def queries(self) -> int:
        """Cells of a block whose weights are worked out at a time on the way back."""
        if self.together > 1:
            return self.wide
        return min(self.wide, max(LOOKED_BACK // self.wide, FEWEST))

    def spec(self, *rest: int) -> pallas.BlockSpec:
        """Return the block of a line and a head in an array of cells and heads."""
        zeros = (0,) * (len(rest) - 1)
        if self.axis == 1:
            block, at = (self.together, self.long), lambda a: (a, 0)
        else:
            block, at = (self.long, self.together), lambda a: (0, a)
        return pallas.BlockSpec((*block, *rest), lambda a, h: (*at(a), *zeros, h))

    def cells(self, first: Any, count: int) -> tuple[Array, Array]:
        """Line and place of so many cells of a block in the order of memory."""
        number = jnp.arange(count)
        if self.axis == 1:
            return number // self.long, first + number % self.long
        return number % self.together, first + number // self.together


def fits(places: int, size: int) -> bool:
    """Return whether the kernel takes lines and heads of these sizes."""
    return places <= LONGEST and size >= FEWEST and size.bit_count() == 1


@functools.partial(jax.custom_vjp, nondiff_argnums=(2, 3, 4))
def attend_by_kernel(
    qkv: Float[Array, "a b 3 inner"],
    mask: Bool[Array, " places"],
    heads: int,
    axis: int,
    interpret: bool = False,
) -> Float[Array, "a b inner"]:
    """Return what each place sees of those along its axis."""
    return _call(_look, (qkv,), mask, heads, axis, interpret)


def _forward(qkv: Array, mask: Array, heads: int, axis: int, interpret: bool):
    seen = attend_by_kernel(qkv, mask, heads, axis, interpret)
    return seen, (qkv, mask)


def _backward(heads: int, axis: int, interpret: bool, kept: Any, change: Array):
    qkv, mask = kept
    back = _call(_look_back, (qkv, change), mask, heads, axis, interpret)
    return back, np.zeros(mask.shape, jax.dtypes.float0)


attend_by_kernel.defvjp(_forward, _backward)


def _call(
    kernel: Any,
    given: tuple[Array, ...],
    mask: Bool[Array, " places"],
    heads: int,
    axis: int,
    interpret: bool,
) -> Array:
    """Return one block of the grid for some lines of cells and each head of them."""
    qkv = given[0]
    *table, three, inner = qkv.shape
    shape = Shape(axis, table[axis], table[1 - axis], inner // heads)
    whole, part = shape.spec(three, shape.size), shape.spec(shape.size)
    there = pallas.BlockSpec((shape.long,), lambda a, h: (0,))
    back = len(given) == 2
    warps = 2 if shape.wide <= SHORT else 4 if back else 8
    return pallas.pallas_call(
        functools.partial(kernel, shape=shape),
        out_shape=jax.ShapeDtypeStruct(
            qkv.shape if back else (*table, inner), qkv.dtype
        ),
        grid=(pallas.cdiv(shape.lines, shape.together), heads),
        in_specs=[whole, *([part] if back else []), there],
        out_specs=whole if back else part,
        compiler_params=triton.CompilerParams(num_warps=warps, num_stages=1),
        interpret=interpret,
    )(*given, mask.astype(jnp.int32))


def _look(qkv_ref: Any, mask_ref: Any, seen_ref: Any, *, shape: Shape) -> None:
    left = _left(shape)
    query, key, value = (
        _load(qkv_ref, i, 0, shape.wide, shape, left) for i in range(3)
    )
    scores = shape.scale * _dot(query, key, 1, 1)
    scores = _cover(scores, _hidden(mask_ref, shape)[None, :], shape)
    risen = jnp.exp(scores - jnp.max(scores, axis=1)[:, None])
    found = _dot(risen.astype(value.dtype), value)
    found = found / jnp.sum(risen, axis=1)[:, None]
    _store(seen_ref, None, 0, found, shape, left)


def _look_back(
    qkv_ref: Any, change_ref: Any, mask_ref: Any, back_ref: Any, *, shape: Shape
) -> None:
    rows, left = shape.queries, _left(shape)
    key, value = (_load(qkv_ref, i, 0, shape.wide, shape, left) for i in (1, 2))
    hidden = _hidden(mask_ref, shape)

    def look_back(part: Any, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        to_key, to_value = carry
        first = part * rows
        query = _load(qkv_ref, 0, first, rows, shape, left)
        change = _load(change_ref, None, first, rows, shape, left)
        scores = shape.scale * _dot(query, key, 1, 1)
        scores = _cover(scores, hidden[None, :], shape)
        most = jnp.max(scores, axis=1)
        risen = jnp.exp(scores - most[:, None])
        total = jnp.sum(risen, axis=1)
        # The Jacobian of a softmax: dS = P (dP - sum of P dP along the row), and that
        # sum is `even` (Dao et al., 2022, appendix B.2).
        slope = _dot(change, value, 1, 1)
        even = jnp.sum(slope * risen, axis=1) / total
        risen = risen * (shape.scale / total)[:, None]
        score = (risen * (slope - even[:, None])).astype(key.dtype)
        _store(back_ref, 0, first, _dot(score, key), shape, left)
        # Once more with queries as columns: products sum over the columns of what
        # they have in registers, and turning it over would go through slower memory.
        level = most + jnp.log(total)
        scores = shape.scale * _dot(key, query, 1, 1)
        scores = _cover(scores, hidden[:, None], shape)
        weights = jnp.exp(scores - level[None, :])
        to_value += _dot(weights.astype(change.dtype), change)
        slope = _dot(value, change, 1, 1)
        score = shape.scale * weights * (slope - even[None, :])
        return to_key + _dot(score.astype(query.dtype), query), to_value

    nothing = jnp.zeros(key.shape, jnp.float32)
    to_key, to_value = jax.lax.fori_loop(
        0, pallas.cdiv(shape.wide, rows), look_back, (nothing, nothing)
    )
    _store(back_ref, 1, 0, to_key, shape, left)
    _store(back_ref, 2, 0, to_value, shape, left)


def _left(shape: Shape) -> Array:
    """Return how many lines there are from the first of this block on."""
    return shape.lines - pallas.program_id(0) * shape.together


def _hidden(mask_ref: Any, shape: Shape) -> Array:
    """Return what is added to the scores of each cell: hidden, or not there."""
    number = jnp.arange(shape.long)
    mask = triton.load(mask_ref, mask=number < shape.places, other=0)
    # Hidden places keep a finite score, so that a line of nothing else has a mean and
    # not 0 / 0; what only fills up the block must have no part in that.
    hidden = jnp.where(mask != 0, 0.0, -1e9)
    hidden = jnp.where(number < shape.places, hidden, -jnp.inf)
    if shape.axis == 1:
        spread = jnp.broadcast_to(hidden[None, :], (shape.together, shape.long))
    else:
        spread = jnp.broadcast_to(hidden[:, None], (shape.long, shape.together))
    return spread.reshape(shape.wide)


def _cover(scores: Array, hidden: Array, shape: Shape) -> Array:
    """Return scores without those of hidden cells and of cells of another line."""
    scores = scores + hidden
    if shape.together == 1:
        return scores
    line, _ = shape.cells(0, shape.wide)
    return jnp.where(line[:, None] == line[None, :], scores, -jnp.inf)


def _where(ref: Any, part: int | None, first: Any, count: int, shape: Shape, left: Any):
    """Return the part of a block that holds some cells, and whether they are there."""
    along = count // shape.together
    some, every = pallas.ds(first, along), pallas.ds(0, shape.together)
    index = (every, some) if shape.axis == 1 else (some, every)
    sizes = (shape.together, along) if shape.axis == 1 else (along, shape.together)
    chosen = ref.at[index] if part is None else ref.at[(*index, jnp.int32(part))]
    line, place = shape.cells(first, count)
    there = (line < left) & (place < shape.places)
    return chosen, there.reshape(*sizes, 1)


def _load(
    ref: Any, part: int | None, first: Any, count: int, shape: Shape, left: Any
) -> Array:
    chosen, there = _where(ref, part, first, count, shape, left)
    return triton.load(chosen, mask=there, other=0.0).reshape(count, shape.size)


def _store(
    ref: Any, part: int | None, first: Any, found: Array, shape: Shape, left: Any
) -> None:
    chosen, there = _where(ref, part, first, found.shape[0], shape, left)
    held = found.astype(ref.dtype).reshape(*there.shape[:2], shape.size)
    triton.store(chosen, held, mask=there)


def _dot(a: Array, b: Array, over_a: int = 1, over_b: int = 0) -> Array:
    return jax.lax.dot_general(
        a, b, (((over_a,), (over_b,)), ((), ())), preferred_element_type=jnp.float32
    )
