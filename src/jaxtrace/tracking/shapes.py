"""What a trajectory accepts: arrays brought to its shapes, and indices to its axes."""

import operator
from typing import Any

import numpy as np
from jaxtyping import Float, Shaped
from numpy.typing import ArrayLike, DTypeLike


def as_floats(values: ArrayLike, name: str) -> Float[np.ndarray, "*shape"]:
    """A host array of at least single precision; no digit of the input is lost."""
    array = np.asarray(values)
    if not np.can_cast(array.dtype, np.float64, "same_kind"):
        raise ValueError(f"{name} are of type {array.dtype}: give real numbers")
    return array.astype(np.result_type(array.dtype, np.float32), copy=False)


def as_paths(values: ArrayLike, name: str) -> Float[np.ndarray, "frames particles 3"]:
    """Points as (frames, particles, 3); a 2-D array is one particle over time."""
    array = as_floats(values, name)
    if array.ndim not in (1, 2, 3) or array.shape[-1] not in (2, 3):
        raise ValueError(
            f"{name} have shape {array.shape}: give (T, N, 3), (T, 3) for one particle "
            "or (3,) for one point, with 2 in place of 3 for planar paths"
        )
    if array.ndim < 3:
        array = array.reshape(-1, 1, array.shape[-1])
    if array.shape[-1] == 2:
        array = np.pad(array, ((0, 0), (0, 0), (0, 1)))
    return array


def as_slots(
    values: ArrayLike, name: str, dtype: DTypeLike, shape: tuple[int, int]
) -> Shaped[np.ndarray, "frames particles"]:
    """One value per frame and particle; (frames,) will do for one particle."""
    array = np.asarray(values)
    array = array if array.dtype == dtype else array.astype(dtype)
    if array.ndim == 1 and shape[1] == 1:
        array = array[:, None]
    require_shape(name, array, shape)
    return array


def require_shape(name: str, array: np.ndarray, shape: tuple[int, ...]) -> None:
    """Raise unless the array has the shape that the positions ask for."""
    if array.shape != shape:
        raise ValueError(
            f"{name} has shape {array.shape}: these positions need {shape}, one entry "
            "per frame or particle"
        )


def as_index(index: Any, size: int, name: str) -> int:
    """A whole number from `-size` to `size - 1`, counted from the front."""
    number = operator.index(index)
    if not -size <= number < size:
        raise IndexError(f"{name} {number} is outside a trajectory of {size} {name}s")
    return number % size


def as_axis_index(key: Any, size: int, name: str) -> slice | np.ndarray:
    """A slice, mask or list of indices as it is; one index as a slice of length 1."""
    if isinstance(key, slice):
        return key
    if np.ndim(key) == 1:
        return np.asarray(key, dtype=None if len(key) else int)
    if np.ndim(key):
        raise IndexError(f"{name}s are picked along one axis, not by {np.ndim(key)}-D")
    start = as_index(key, size, name)
    return slice(start, start + 1)
