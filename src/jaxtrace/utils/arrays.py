"""Arrays to and from the device, and functions compiled or batched by choice."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from jaxrig.devices import Device
from jaxtrace.config import get_config, working_device


def to_device(tree: PyTree, device: Device | None = None) -> PyTree:
    """Copy arrays to a device, by default the one that `configure` chose."""
    return jax.device_put(tree, working_device() if device is None else device)


def to_numpy(x: Any) -> np.ndarray:
    """The array on the host."""
    return np.asarray(x)


def asarray(x: Any, dtype: Any = None) -> jax.Array:
    """The array on the device."""
    return jnp.asarray(x, dtype=dtype)


def maybe_jit(
    function: Callable[..., Any],
    enable: bool | None = None,
    static_argnums: Sequence[int] | None = None,
) -> Callable[..., Any]:
    """Compile a function, or not; None follows the setting `use_jax_jit`."""
    if not (get_config().use_jax_jit if enable is None else enable):
        return function
    return jax.jit(function, static_argnums=static_argnums)


def maybe_vmap(
    function: Callable[..., Any],
    enable: bool | None = None,
    in_axes: Any = 0,
    out_axes: Any = 0,
) -> Callable[..., Any]:
    """Map a function over rows at once, or row by row with the same result.

    None follows the setting `use_jax_vmap`.
    """
    if get_config().use_jax_vmap if enable is None else enable:
        return jax.vmap(function, in_axes, out_axes)
    return _row_by_row(function, in_axes, out_axes)


def _row_by_row(
    function: Callable[..., Any], in_axes: Any, out_axes: Any
) -> Callable[..., Any]:
    def mapped(*args: Any) -> Any:
        axes = (in_axes,) * len(args) if isinstance(in_axes, int) else tuple(in_axes)
        pairs = list(zip(args, axes, strict=True))
        sizes = {
            leaf.shape[axis]
            for arg, axis in pairs
            if axis is not None
            for leaf in jax.tree.leaves(arg)
        }
        if len(sizes) != 1:
            raise ValueError(f"mapped arguments have one length, here: {sorted(sizes)}")
        rows = [
            function(*(_row(arg, axis, index) for arg, axis in pairs))
            for index in range(sizes.pop())
        ]
        return jax.tree.map(lambda *leaves: jnp.stack(leaves, out_axes), *rows)

    return mapped


def _row(tree: PyTree, axis: int | None, index: int) -> PyTree:
    if axis is None:
        return tree
    return jax.tree.map(lambda leaf: jnp.take(leaf, index, axis), tree)
