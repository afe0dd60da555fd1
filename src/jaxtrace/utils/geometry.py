"""Boxes of any dimension, and moving, stretching and turning points."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float


@dataclass(frozen=True, eq=False)
class AABB:
    """A box along the axes, given by its lower and upper corner."""

    lo: Any
    hi: Any

    def __post_init__(self) -> None:
        lo, hi = np.asarray(self.lo, np.float64), np.asarray(self.hi, np.float64)
        if lo.ndim != 1 or lo.shape != hi.shape:
            raise ValueError(f"corners of shape {lo.shape} and {hi.shape} make no box")
        if not (lo <= hi).all():
            raise ValueError(f"lo={lo.tolist()} must not exceed hi={hi.tolist()}")
        object.__setattr__(self, "lo", lo)
        object.__setattr__(self, "hi", hi)

    @property
    def dim(self) -> int:
        """Number of axes."""
        return len(self.lo)

    def size(self) -> Float[np.ndarray, " axes"]:
        """Length along each axis."""
        return self.hi - self.lo

    def contains(self, points: Any) -> Bool[np.ndarray, "*points"]:
        """Which points lie in the box, its faces included."""
        rows = np.asarray(points)
        return np.asarray(((rows >= self.lo) & (rows <= self.hi)).all(axis=-1))

    def intersects(self, other: "AABB") -> bool:
        """Whether the boxes share a point."""
        return bool((self.hi >= other.lo).all() and (other.hi >= self.lo).all())

    def expand(self, margin: Any) -> "AABB":
        """The box with every face moved out by a margin, one or one per axis."""
        return AABB(self.lo - np.asarray(margin), self.hi + np.asarray(margin))

    def clamp_points(self, points: Any) -> np.ndarray:
        """The nearest points of the box."""
        return np.clip(_floats(points), self.lo, self.hi)


def translate(points: Any, t: Any) -> np.ndarray:
    """Points moved by a vector."""
    rows = _floats(points)
    return rows + np.asarray(t, rows.dtype)


def scale(points: Any, s: Any) -> np.ndarray:
    """Points stretched from the origin, by one factor or one per axis."""
    rows = _floats(points)
    return rows * np.asarray(s, rows.dtype)


def rotate2d(points: Any, theta: float) -> np.ndarray:
    """Points of a plane turned counter-clockwise by an angle in radians."""
    return _turn(points, _rotation("z", theta)[:2, :2])


def rotate3d_euler(points: Any, angles: Any, order: str = "xyz") -> np.ndarray:
    """Points turned about the fixed axes in `order`, by one angle for each."""
    names = order.lower()
    if len(names) != len(angles) or set(names) - set("xyz"):
        raise ValueError(
            f"order={order!r} names x, y or z once for each of {len(angles)} angles"
        )
    matrix = np.eye(3)
    for axis, angle in zip(names, angles, strict=True):
        matrix = _rotation(axis, angle) @ matrix
    return _turn(points, matrix)


def transform_points(
    points: Any, *, s: Any = 1.0, R: Any = None, t: Any = None
) -> np.ndarray:
    """Points stretched by `s`, turned by the matrix `R`, then moved by `t`."""
    moved = scale(points, s)
    if R is not None:
        moved = _turn(moved, np.asarray(R))
    return moved if t is None else translate(moved, t)


def _rotation(axis: str, angle: float) -> Float[np.ndarray, "3 3"]:
    first, second = {"x": (1, 2), "y": (2, 0), "z": (0, 1)}[axis]
    matrix = np.eye(3)
    matrix[[first, second], [first, second]] = np.cos(angle)
    matrix[second, first] = np.sin(angle)
    matrix[first, second] = -np.sin(angle)
    return matrix


def _turn(points: Any, matrix: np.ndarray) -> np.ndarray:
    rows = _floats(points)
    return rows @ matrix.T.astype(rows.dtype)


def _floats(points: Any) -> np.ndarray:
    """The points as floats, of their own dtype if they have one."""
    rows = np.asarray(points)
    return rows if np.issubdtype(rows.dtype, np.floating) else rows.astype(np.float64)
