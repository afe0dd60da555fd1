"""Arrays of a batch as a few figures, worked out where the arrays are."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp


def aggregate(data: Mapping[str, Any]) -> dict[str, float]:
    """Mean, standard deviation, least and greatest of arrays; single numbers as are.

    Of an array of truths, such as `success_mask`, the share of True (`success_rate`).

    >>> aggregate({"policy_loss": 0.5, "success_mask": jnp.array([True, False])})
    {'policy_loss': 0.5, 'success_rate': 0.5}
    """
    found: dict[str, Any] = {}
    for name, value in data.items():
        array = jnp.asarray(value)
        if array.size == 0:
            raise ValueError(f"{name} has shape {array.shape}: there is nothing in it")
        if array.ndim == 0:
            found[name] = array
        elif array.dtype == bool:
            found[f"{name.removesuffix('_mask')}_rate"] = jnp.mean(array)
        else:
            numbers = array.astype(jnp.float32)
            found |= {
                f"{name}_mean": jnp.mean(numbers),
                f"{name}_std": jnp.std(numbers),
                f"{name}_min": jnp.min(numbers),
                f"{name}_max": jnp.max(numbers),
            }
    return {name: value.item() for name, value in jax.device_get(found).items()}
