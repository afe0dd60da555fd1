"""A small policy over a small surrogate, untrained, for commands and pictures."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from acbo.policy.advisor import Policy
from acbo.policy.model import PolicyConfig, PolicyNetwork
from acbo.surrogate.model import SurrogateConfig, SurrogateNetwork
from acbo.surrogate.predictor import Surrogate

SIZES = SurrogateConfig(
    dim=4, layers=1, heads=1, key_size=4, dropout=0.0, pair_dim=4, pair_layers=1
)


def _fill(make, seed):
    """Parameters from NumPy: nothing to compile."""
    random = np.random.default_rng(seed)
    shapes = eqx.filter_eval_shape(make, jax.random.key(0))
    fill = lambda x: jnp.asarray(0.3 * random.normal(size=x.shape), jnp.float32)
    return jax.tree.map(fill, shapes)


@functools.cache
def small_surrogate() -> Surrogate:
    return Surrogate(_fill(lambda key: SurrogateNetwork(SIZES, key), 0))


@functools.cache
def small_policy() -> Policy:
    network = _fill(lambda key: PolicyNetwork(PolicyConfig(dim=4), key), 1)
    return Policy(small_surrogate(), network)
