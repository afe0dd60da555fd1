"""Exogenous noise of unit variance: Gaussian, Laplace, uniform, and heteroscedastic."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

GAUSSIAN, LAPLACE, UNIFORM, HETEROSCEDASTIC = range(4)
NOISE_KINDS = {
    "gaussian": GAUSSIAN,
    "laplace": LAPLACE,
    "uniform": UNIFORM,
    "heteroscedastic": HETEROSCEDASTIC,
}


def draw_noise(key: PRNGKeyArray, kind: Int[Array, " d"]) -> Float[Array, " d"]:
    """One draw for each variable, of mean 0 and variance 1."""
    d = kind.shape[0]
    gaussian = jax.random.normal(key, (d,))
    laplace = jax.random.laplace(key, (d,)) / float(np.sqrt(2.0))
    bound = float(np.sqrt(3.0))
    uniform = jax.random.uniform(key, (d,), minval=-bound, maxval=bound)
    return jnp.select([kind == LAPLACE, kind == UNIFORM], [laplace, uniform], gaussian)


def noise_factor(
    kind: Int[Array, "*n"], mean: Float[Array, "*n"]
) -> Float[Array, "*n"]:
    """What the noise is multiplied by: between 1/2 and 3/2, growing with the mean,
    for heteroscedastic noise, and 1 for the rest.
    """
    return jnp.where(kind == HETEROSCEDASTIC, 0.5 + jax.nn.sigmoid(mean), 1.0)
