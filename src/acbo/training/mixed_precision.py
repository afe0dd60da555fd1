"""Which precision parameters, computation and results have."""

from typing import Any, NamedTuple

import jax.numpy as jnp


class PrecisionPolicy(NamedTuple):
    """Floating-point types by role. Steps take one as `compute_dtype`; parameters and
    results of a step are always in single precision.
    """

    compute_dtype: Any
    param_dtype: Any = jnp.dtype(jnp.float32)
    output_dtype: Any = jnp.dtype(jnp.float32)


def create_policy(compute_dtype: Any = jnp.bfloat16) -> PrecisionPolicy:
    """Return half precision for computation, single for parameters and results."""
    if not jnp.issubdtype(compute_dtype, jnp.floating):
        raise ValueError(f"{compute_dtype} is not a floating-point type")
    return PrecisionPolicy(jnp.dtype(compute_dtype))
