"""How alike two grids are: equal cells over the cells that either of them has."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, UInt

from jaxarc import bits


def similarity(
    planes: UInt[Array, "*batch planes h"],
    size: Int[Array, "*batch two"],
    wanted: UInt[Array, "*batch planes h"],
    wanted_size: Int[Array, "*batch two"],
) -> Float[Array, "*batch"]:
    """1 exactly when size and content are the same; 0 when both are empty."""
    common = jnp.minimum(size, wanted_size)
    shared = bits.active_rows(common, planes.shape[-1], planes.dtype)
    differs = bits.words(0, planes.dtype)
    for plane in range(bits.PLANES):
        differs = differs | (planes[..., plane, :] ^ wanted[..., plane, :])
    matches = bits.count(shared & ~differs)
    union = _area(size) + _area(wanted_size) - _area(common)
    return matches.astype(jnp.float32) / jnp.maximum(union, 1).astype(jnp.float32)


def _area(size: Int[Array, "*batch two"]) -> Int[Array, "*batch"]:
    return size[..., 0] * size[..., 1]
