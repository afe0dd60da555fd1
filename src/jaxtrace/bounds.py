"""Boxes: every accepted way to write the bounds of a domain, read in one place."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Float64

AXES = "xyz"
COARSE = 2e-6  # of the extent of the data: positions rounded to this are said
PLANES = {"xy": (0, 1), "xz": (0, 2), "yz": (1, 2)}
FORMATS = (
    "[[x0, y0, z0], [x1, y1, z1]], [[x0, x1], [y0, y1], [z0, z1]], "
    "[x0, x1, y0, y1, z0, z1], or in two dimensions [[x0, x1], [y0, y1]] or "
    "[x0, x1, y0, y1]"
)


class Box(NamedTuple):
    """A box along the axes; where `active` is False there is nothing to bound."""

    lo: Float64[np.ndarray, "3"]
    hi: Float64[np.ndarray, "3"]
    active: Bool[np.ndarray, "3"]

    @property
    def size(self) -> Float64[np.ndarray, "3"]:
        """Return length along each axis."""
        return self.hi - self.lo


def box_bounds(bounds: Any) -> Box:
    """Read bounds: shapes (2, 3) and (3, 2), flat 6, and for 2-D (2, 2) and flat 4.

    A (2, 3) array is the two corners, a (3, 2) array one pair per axis. A (2, 2) array
    is one pair per axis where that is a rectangle, and else two corners.
    An axis that 2-D bounds leave out is 0 to 0. That axis, and any other whose ends
    are equal, is not active.
    """
    if isinstance(bounds, Box):
        return bounds
    pairs = np.zeros((3, 2))
    named = _axis_pairs(bounds)
    pairs[: len(named)] = named
    for axis, (low, high) in zip(AXES, pairs, strict=True):
        if not low <= high:
            raise ValueError(
                f"bounds along {axis} are {low:g} to {high:g}: the lower bound must "
                f"come first, in one of the forms {FORMATS}"
            )
    lo, hi = pairs.T.copy()
    return Box(lo, hi, hi > lo)


def axis_number(axis: Any) -> int:
    """Return an axis as 0, 1 or 2, from its name or number."""
    if isinstance(axis, str) and axis in tuple(AXES):
        return AXES.index(axis)
    if isinstance(axis, int) and 0 <= axis < len(AXES):
        return axis
    raise ValueError(f"axis {axis!r}: choose one of {', '.join(AXES)}")


def _axis_pairs(bounds: Any) -> Float64[np.ndarray, "axes 2"]:
    try:
        array = np.asarray(bounds, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"bounds {bounds!r} are not numbers: give {FORMATS}"
        ) from error
    if array.shape == (2, 3):
        array = array.T
    elif array.shape in ((4,), (6,)):
        array = array.reshape(-1, 2)
    elif array.shape not in ((3, 2), (2, 2)):
        raise ValueError(f"bounds of shape {array.shape} are unknown: give {FORMATS}")
    elif array.shape == (2, 2) and _is_corners(array):
        array = array.T
    if not np.isfinite(array).all():
        raise ValueError(f"bounds {array.tolist()} are not finite: give numbers")
    return array


def _is_corners(pairs: Float64[np.ndarray, "2 2"]) -> bool:
    """Return whether two rows are corners of a rectangle and no pairs per axis."""
    proper = (pairs[:, 0] < pairs[:, 1]).all()
    return not proper and bool((pairs[0] < pairs[1]).all())


def coarse_axes(box: Float[np.ndarray, "2 3"], dtype: Any) -> np.ndarray:
    """Return the axes whose offset leaves few digits along them, the fewest first."""
    size, unit = box[1] - box[0], np.abs(box).max(0) * np.finfo(dtype).eps
    found = np.flatnonzero((size > 0) & (unit > COARSE * size))
    return found[np.argsort(-unit[found], kind="stable")]
