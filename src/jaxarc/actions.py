"""Structured actions: an operation, and the cells it acts on.

Each class is a pytree of arrays: one action, or a batch of them with a leading axis on
every field, mapped with `jax.vmap`.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, TypeAlias

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Int

from jaxarc.ops.names import NUM_OPERATIONS

GridShape: TypeAlias = tuple[int, int]


class BaseAction(eqx.Module):
    """An operation number; subclasses say on which cells."""

    operation: Int[Array, "*batch"]

    @abstractmethod
    def to_selection_mask(self, grid_shape: GridShape) -> Bool[Array, "h w"]:
        """The selected cells of a grid of this shape."""

    @abstractmethod
    def validate(
        self, grid_shape: GridShape, max_operations: int = NUM_OPERATIONS
    ) -> "BaseAction":
        """The nearest action that is in range; never raises."""

    def _clipped_operation(self, max_operations: int) -> Int[Array, "*batch"]:
        return jnp.clip(self.operation, 0, max_operations - 1)


class PointAction(BaseAction):
    """Acts on one cell, counted from 0; coordinates are clipped into the grid."""

    row: Int[Array, "*batch"]
    col: Int[Array, "*batch"]

    def to_selection_mask(self, grid_shape: GridShape) -> Bool[Array, "h w"]:
        """One True cell."""
        height, width = grid_shape
        return (
            _between(self.row, self.row, height)[:, None]
            & _between(self.col, self.col, width)[None, :]
        )

    def validate(
        self, grid_shape: GridShape, max_operations: int = NUM_OPERATIONS
    ) -> "PointAction":
        """Operation and coordinates clipped into range."""
        return PointAction(
            self._clipped_operation(max_operations),
            _clip(self.row, grid_shape[0]),
            _clip(self.col, grid_shape[1]),
        )


class BboxAction(BaseAction):
    """Acts on a rectangle between two opposite corners, both included, in any order."""

    r1: Int[Array, "*batch"]
    c1: Int[Array, "*batch"]
    r2: Int[Array, "*batch"]
    c2: Int[Array, "*batch"]

    def to_selection_mask(self, grid_shape: GridShape) -> Bool[Array, "h w"]:
        """True inside the rectangle; corners are clipped into the grid."""
        height, width = grid_shape
        return (
            _between(self.r1, self.r2, height)[:, None]
            & _between(self.c1, self.c2, width)[None, :]
        )

    def validate(
        self, grid_shape: GridShape, max_operations: int = NUM_OPERATIONS
    ) -> "BboxAction":
        """Operation and corners clipped into range."""
        height, width = grid_shape
        return BboxAction(
            self._clipped_operation(max_operations),
            _clip(self.r1, height),
            _clip(self.c1, width),
            _clip(self.r2, height),
            _clip(self.c2, width),
        )


class MaskAction(BaseAction):
    """Acts on any set of cells."""

    selection: Bool[Array, "*batch h w"]

    def to_selection_mask(self, grid_shape: GridShape) -> Bool[Array, "h w"]:
        """The mask itself."""
        if self.selection.shape != tuple(grid_shape):
            raise ValueError(
                f"the selection has shape {self.selection.shape}, the grid "
                f"{tuple(grid_shape)}: make the mask of the grid's padded shape"
            )
        return self.selection

    def validate(
        self, grid_shape: GridShape, max_operations: int = NUM_OPERATIONS
    ) -> "MaskAction":
        """Operation clipped into range; the mask has nothing to clip."""
        return MaskAction(self._clipped_operation(max_operations), self.selection)


StructuredAction: TypeAlias = PointAction | BboxAction | MaskAction


def _clip(index: Int[Array, "*batch"], size: int) -> Int[Array, "*batch"]:
    return jnp.clip(index, 0, size - 1)


def _between(
    one: Int[Array, ""], other: Int[Array, ""], size: int
) -> Bool[Array, " size"]:
    """True from the lower to the higher index, both clipped into the axis."""
    one, other = _clip(one, size), _clip(other, size)
    index = jnp.arange(size, dtype=one.dtype)
    return (index >= jnp.minimum(one, other)) & (index <= jnp.maximum(one, other))


def _whole(value: ArrayLike) -> Array:
    return jnp.asarray(value, jnp.int32)


def create_point_action(
    operation: ArrayLike, row: ArrayLike, col: ArrayLike
) -> PointAction:
    """A point action from Python integers."""
    return PointAction(_whole(operation), _whole(row), _whole(col))


def create_bbox_action(
    operation: ArrayLike, r1: ArrayLike, c1: ArrayLike, r2: ArrayLike, c2: ArrayLike
) -> BboxAction:
    """A rectangle action from Python integers."""
    return BboxAction(*map(_whole, (operation, r1, c1, r2, c2)))


def create_mask_action(operation: ArrayLike, selection: ArrayLike) -> MaskAction:
    """A mask action from a Python integer and anything that is an array of truths."""
    return MaskAction(_whole(operation), jnp.asarray(selection, bool))


def select_active(
    action: Any, working_grid_mask: Bool[Array, "h w"]
) -> Bool[Array, "h w"]:
    """The selected cells that lie in the active area of the grid."""
    height, width = working_grid_mask.shape
    return action.to_selection_mask((height, width)) & working_grid_mask


point_handler = bbox_handler = mask_handler = select_active
_FORMATS = ("point", "bbox", "mask")


def get_action_handler(selection_format: str) -> Callable[..., Bool[Array, "h w"]]:
    """What turns an action of this format into the cells it acts on."""
    if selection_format not in _FORMATS:
        raise ValueError(
            f"selection format {selection_format!r} is not one of: "
            f"{', '.join(_FORMATS)}"
        )
    return select_active
