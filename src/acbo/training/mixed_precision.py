"""Which precision parameters, computation and results have."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PyTree


def _cast(tree: PyTree, dtype: Any) -> PyTree:
    change = lambda x: x.astype(dtype) if jnp.issubdtype(x.dtype, jnp.floating) else x
    is_array = lambda x: hasattr(x, "dtype") and hasattr(x, "astype")
    return jax.tree.map(lambda x: change(x) if is_array(x) else x, tree)


@dataclass(frozen=True)
class PrecisionPolicy:
    """Floating-point types by role. Steps take one as `compute_dtype`."""

    compute_dtype: Any
    param_dtype: Any
    output_dtype: Any

    def cast_to_compute(self, tree: PyTree) -> PyTree:
        """Floating-point arrays in the type that is computed in."""
        return _cast(tree, self.compute_dtype)

    def cast_to_param(self, tree: PyTree) -> PyTree:
        """Floating-point arrays in the type that parameters are kept in."""
        return _cast(tree, self.param_dtype)

    def cast_to_output(self, tree: PyTree) -> PyTree:
        """Floating-point arrays in the type of results."""
        return _cast(tree, self.output_dtype)


def create_policy(
    compute_dtype: Any = jnp.bfloat16,
    param_dtype: Any = jnp.float32,
    output_dtype: Any = jnp.float32,
) -> PrecisionPolicy:
    """Return half precision for computation, single for parameters and results."""
    kinds = compute_dtype, param_dtype, output_dtype
    for kind in kinds:
        if not jnp.issubdtype(kind, jnp.floating):
            raise ValueError(f"{kind} is not a floating-point type")
    return PrecisionPolicy(*map(jnp.dtype, kinds))
