"""The dtypes JAX computes with, and the smallest one that keeps every value."""

from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

_BUILTIN = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 "
    "float16 float32 float64 complex64 complex128"
)
_EXTENDED = (
    "bfloat16 float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn "
    "float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu float4_e2m1fn "
    "int2 int4 uint2 uint4"
)
# Every dtype JAX computes with, by name, in the byte order of files.
DTYPES = {
    name: np.dtype(np.dtype(name).newbyteorder("<").str) for name in _BUILTIN.split()
} | {
    name: np.dtype(getattr(ml_dtypes, name))
    for name in _EXTENDED.split()
    if hasattr(ml_dtypes, name)  # the narrow ones came with later releases
}

_RELATIVE_TOLERANCE = 1e-6


def is_key(dtype: Any) -> bool:
    """Return whether a dtype is that of typed PRNG keys, of any implementation."""
    return jnp.issubdtype(dtype, jax.dtypes.prng_key)


def smallest_dtype(array: np.ndarray) -> np.dtype:
    """Return the narrowest dtype of the same kind that holds all values.

    Signed integers stay signed, since unsigned ones would wrap where differences are
    taken later. float32 is chosen when every value stays within a relative 1e-6 and
    none overflows to infinity or falls to zero. All other dtypes, and empty arrays,
    keep theirs.

        smallest_dtype(np.array([1000, 2000]))  # int16
    """
    if array.size == 0:
        return array.dtype
    if array.dtype.kind == "u":
        return np.min_scalar_type(int(array.max()))
    if array.dtype.kind == "i":
        # Of a number above 0 the mirror image, to which NumPy gives a signed dtype.
        ends = min(int(array.min()), -1), -1 - max(int(array.max()), 0)
        return np.promote_types(*map(np.min_scalar_type, ends))
    if array.dtype.type is np.float64 and _survives_float32(array):
        return np.dtype(np.float32)
    return array.dtype


def _survives_float32(array: np.ndarray) -> bool:
    with np.errstate(all="ignore"):
        narrow = array.astype(np.float32).astype(np.float64)
        # False for what became infinite or zero: those are off by all of their value.
        close = np.abs(narrow - array) <= _RELATIVE_TOLERANCE * np.abs(array)
    same = (narrow == array) | (np.isnan(narrow) & np.isnan(array))
    return bool(np.all(close | same))
