"""Parameters of networks drawn in NumPy, so that nothing compiles."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np


def fill(make, *args, seed=0, scale=1.0):
    """What `make(*args)` would give, with every array replaced by random numbers."""
    random = np.random.default_rng(seed)
    shapes = eqx.filter_eval_shape(make, *args)

    def number(leaf):
        if not isinstance(leaf, jax.ShapeDtypeStruct):
            return leaf
        return jnp.asarray(scale * random.normal(size=leaf.shape), jnp.float32)

    return jax.tree.map(number, shapes)
