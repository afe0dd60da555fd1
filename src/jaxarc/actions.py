"""Structured actions: an operation, and the cells it acts on.

Each class is a pytree of arrays: one action, or a batch of them with a leading axis on
every field, mapped with `jax.vmap`.
"""

from abc import abstractmethod
from functools import partial
from typing import Any, ClassVar, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Int, Shaped

from jaxarc import bits
from jaxarc.bits import PackedGrid
from jaxarc.ops.canvas import Selection, select_rectangle, select_rows
from jaxarc.ops.operations import NUM_OPERATIONS

GridShape: TypeAlias = tuple[int, int]
Corners: TypeAlias = tuple[
    Int[Array, "*batch"],
    Int[Array, "*batch"],
    Int[Array, "*batch"],
    Int[Array, "*batch"],
]


class BaseAction(eqx.Module):
    """An operation number; subclasses say on which cells."""

    operation: Int[Array, "*batch"]

    @abstractmethod
    def to_selection_mask(self, grid_shape: GridShape) -> Bool[Array, "h w"]:
        """Return the selected cells of a grid of this shape."""

    @abstractmethod
    def validate(
        self, grid_shape: GridShape, max_operations: int = NUM_OPERATIONS
    ) -> "BaseAction":
        """Return the nearest action that is in range; never raises."""

    @abstractmethod
    def pack(self, grid_shape: GridShape) -> Selection:
        """Return the selected cells as bits; the action must be in range."""

    @abstractmethod
    def pack_active(self, packed: Selection, grid: PackedGrid) -> Selection:
        """Return the part of the packed cells that lies in the active area."""

    def _clipped_operation(self, max_operations: int) -> Int[Array, "*batch"]:
        return jnp.clip(self.operation, 0, max_operations - 1)


class _RectangleAction(BaseAction):
    """Acts on a rectangle, given by two opposite corners."""

    axes: ClassVar[dict[str, int]]  # the axis of the grid that a field counts along

    @abstractmethod
    def _corners(self) -> Corners:
        """Return rows and columns of two opposite corners: r1, c1, r2, c2."""

    def to_selection_mask(self, grid_shape: GridShape) -> Bool[Array, "h w"]:
        """Return True inside the rectangle; corners are clipped into the grid."""
        # Compared with rows and columns, a batch as long as a side would be taken for
        # them, and give one mask of all its rows mixed.
        if any(map(jnp.ndim, self._corners())):
            raise ValueError(
                "this is a batch of actions, and a selection mask is that of one: "
                "jax.vmap(lambda action: action.to_selection_mask(shape))(actions)"
            )
        return _rectangle_mask(self, tuple(grid_shape))

    def validate(
        self, grid_shape: GridShape, max_operations: int = NUM_OPERATIONS
    ) -> "BaseAction":
        """Clip operation and coordinates into range."""
        cells = {
            name: jnp.clip(getattr(self, name), 0, grid_shape[axis] - 1)
            for name, axis in self.axes.items()
        }
        return type(self)(self._clipped_operation(max_operations), **cells)

    def pack(self, grid_shape: GridShape) -> Selection:
        """Return the rectangle as bits."""
        r1, c1, r2, c2 = (corner.astype(jnp.int32) for corner in self._corners())
        sides = (
            *(jnp.minimum(r1, r2), jnp.minimum(c1, c2)),
            *(jnp.maximum(r1, r2), jnp.maximum(c1, c2)),
        )
        return select_rectangle(*sides, grid_shape[0], bits.word_type(*grid_shape))

    def pack_active(self, packed: Selection, grid: PackedGrid) -> Selection:
        """Cut the rectangle at the far edges of the active area."""
        bottom = jnp.minimum(packed.bottom, grid.size[0] - 1)
        right = jnp.minimum(packed.right, grid.size[1] - 1)
        height, dtype = packed.rows.shape[0], packed.rows.dtype
        return select_rectangle(packed.top, packed.left, bottom, right, height, dtype)


@partial(jax.jit, static_argnames="shape", inline=True)
def _rectangle_mask(action: _RectangleAction, shape: GridShape) -> Bool[Array, "h w"]:
    return bits.unpack_rows(action.validate(shape).pack(shape).rows, shape[1])


class PointAction(_RectangleAction):
    """Acts on one cell, counted from 0."""

    axes: ClassVar[dict[str, int]] = {"row": 0, "col": 1}
    row: Int[Array, "*batch"]
    col: Int[Array, "*batch"]

    def _corners(self) -> Corners:
        return self.row, self.col, self.row, self.col


class BboxAction(_RectangleAction):
    """Acts on a rectangle between two opposite corners, both included, in any order."""

    axes: ClassVar[dict[str, int]] = {"r1": 0, "c1": 1, "r2": 0, "c2": 1}
    r1: Int[Array, "*batch"]
    c1: Int[Array, "*batch"]
    r2: Int[Array, "*batch"]
    c2: Int[Array, "*batch"]

    def _corners(self) -> Corners:
        return self.r1, self.c1, self.r2, self.c2


class MaskAction(BaseAction):
    """Acts on any set of cells.

    A step also takes a selection of numbers: of fractions it selects those from
    `action.selection_threshold` on, of integers all but 0.
    """

    selection: Shaped[Array, "*batch h w"]

    def to_selection_mask(self, grid_shape: GridShape) -> Bool[Array, "h w"]:
        """Return the mask itself."""
        if self.selection.shape != tuple(grid_shape):
            raise ValueError(
                f"the selection has shape {self.selection.shape}, the grid "
                f"{tuple(grid_shape)}: make the mask of the grid's padded shape"
            )
        if self.selection.dtype != bool:
            raise TypeError(
                f"the selection is {self.selection.dtype}, not boolean: compare it "
                "with a threshold, or give it to a step, which does"
            )
        return self.selection

    def validate(
        self, grid_shape: GridShape, max_operations: int = NUM_OPERATIONS
    ) -> "MaskAction":
        """Clip the operation into range; the mask has nothing to clip."""
        return MaskAction(self._clipped_operation(max_operations), self.selection)

    def pack(self, grid_shape: GridShape) -> Selection:
        """Return the mask as bits."""
        return select_rows(bits.pack_rows(self.to_selection_mask(grid_shape)))

    def pack_active(self, packed: Selection, grid: PackedGrid) -> Selection:
        """Return the selected cells of the active area."""
        return select_rows(packed.rows & grid.active())


StructuredAction: TypeAlias = PointAction | BboxAction | MaskAction


_INT32 = np.dtype(np.int32)


def as_int32(value: Any, name: str) -> Array:
    """Return whole numbers as int32; those beyond its range become its ends."""
    # A weak type, which Python numbers have, would compile a program of its own.
    if not getattr(value, "weak_type", True) and value.dtype == _INT32:
        return value
    on_device = isinstance(value, jax.Array)  # a traced one too: it stays where it is
    numbers: Any = value if on_device else np.asarray(value)
    if not jnp.issubdtype(numbers.dtype, jnp.integer):
        raise TypeError(
            f"{name} is {value!r}: it must be a whole number or an array of them"
        )
    held, wanted = jnp.iinfo(numbers.dtype), jnp.iinfo(_INT32)
    ends = max(int(held.min), int(wanted.min)), min(int(held.max), int(wanted.max))
    if ends != (int(held.min), int(held.max)):
        numbers = numbers.clip(*ends)
    numbers = numbers.astype(_INT32)
    return numbers if on_device else jax.device_put(numbers)


def create_point_action(
    operation: ArrayLike, row: ArrayLike, col: ArrayLike
) -> PointAction:
    """Return a point action from Python integers."""
    return PointAction(**_as_int32(operation=operation, row=row, col=col))


def create_bbox_action(
    operation: ArrayLike, r1: ArrayLike, c1: ArrayLike, r2: ArrayLike, c2: ArrayLike
) -> BboxAction:
    """Return a rectangle action from Python integers."""
    return BboxAction(**_as_int32(operation=operation, r1=r1, c1=c1, r2=r2, c2=c2))


def _as_int32(**numbers: ArrayLike) -> dict[str, Array]:
    return {name: as_int32(number, name) for name, number in numbers.items()}


def create_mask_action(operation: ArrayLike, selection: ArrayLike) -> MaskAction:
    """Return a mask action from a Python integer and cells, booleans or fractions.

    Of fractions a step selects from its threshold on, which is not known here.
    """
    cells = jnp.asarray(selection)
    fractions = jnp.issubdtype(cells.dtype, jnp.floating)
    cells = cells if fractions else cells.astype(bool)
    return MaskAction(as_int32(operation, "operation"), cells)
