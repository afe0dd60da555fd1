"""Cells of a grid as single numbers, and sums over rows with the same number."""

from typing import Any

import numpy as np
from jaxtyping import Int64

KEY_BITS = 63  # what a signed 64-bit key has room for


def grid_hash(
    points: Any, cell_size: Any, origin: Any = 0.0
) -> tuple[Int64[np.ndarray, " points"], Int64[np.ndarray, "points axes"]]:
    """One key per point, equal for points in the same grid cell, and the cells.

    Keys are packed cell indices, so two cells never share one. `cell_size` and
    `origin` are one number or one per axis; there are two or three axes.
    """
    rows = np.asarray(points, np.float64)
    if rows.ndim != 2 or rows.shape[1] not in (2, 3):
        raise ValueError(f"points of shape {rows.shape} are not rows of 2 or 3 numbers")
    size = np.asarray(cell_size, np.float64)
    if not (size > 0).all():
        raise ValueError(f"cell_size={size.tolist()} must be above 0")
    indices = np.floor((rows - np.asarray(origin, np.float64)) / size)
    bits = KEY_BITS // rows.shape[1]
    reach = 2 ** (bits - 1)
    if not ((indices >= -reach) & (indices < reach)).all():  # NaN fails too
        raise ValueError(
            f"points must be finite and within {reach} cells of the origin: use larger "
            "cells, or an origin among the points"
        )
    cells = indices.astype(np.int64)
    keys = np.zeros(len(rows), np.int64)
    for column in (cells + reach).T:
        keys = (keys << bits) | column
    return keys, cells


def unique_ids(keys: Any) -> tuple[np.ndarray, np.ndarray]:
    """The different keys, sorted, and for each input which of them it is."""
    different, which = np.unique(np.asarray(keys), return_inverse=True)
    return different, which


def segment_sum(
    values: Any, segment_ids: Any, num_segments: int | None = None
) -> np.ndarray:
    """Sums of the rows with the same id, one row per id from 0."""
    rows, ids = np.asarray(values), _ids(segment_ids)
    count = _count(ids) if num_segments is None else num_segments
    if count < _count(ids):
        raise ValueError(f"segment id {ids.max()} is not below num_segments={count}")
    sums = np.zeros((count, *rows.shape[1:]), rows.dtype)
    np.add.at(sums, ids, rows)
    return sums


def bincount_sum(ids: Any, weights: Any = None, minlength: int = 0) -> np.ndarray:
    """How often each id from 0 occurs, or the sum of its weights."""
    whole = None if weights is None else np.asarray(weights)
    return np.bincount(_ids(ids), whole, minlength)


def _ids(ids: Any) -> Int64[np.ndarray, " rows"]:
    found = np.asarray(ids)
    if found.size and (found.dtype.kind not in "iu" or found.min() < 0):
        raise ValueError("ids are whole numbers from 0")
    return found.astype(np.int64)


def _count(ids: np.ndarray) -> int:
    return int(ids.max()) + 1 if ids.size else 0
