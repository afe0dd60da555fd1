"""Small surrogates for tests: the real network at its least, and stand-ins."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp

from acbo.surrogate.model import Prediction
from acbo.training.parent_set_model import ParentSetModel, create_parent_set_model
from causal_parameters import fill

SMALL = {
    **{"layers": 1, "dim": 8, "dropout": 0.0, "heads": 2, "key_size": 4},
    **{"widening_factor": 2, "pair_dim": 8, "pair_layers": 1},
}


def small_model(**changes) -> ParentSetModel:
    return create_parent_set_model({**SMALL, **changes})


def draw_parameters(model, seed=0):
    """Parameters from NumPy: nothing to compile."""
    return fill(model.init, jax.random.key(0), seed=seed, scale=0.3)


class Moments(eqx.Module):
    """Looks at second moments alone; equivariant, and quick to run eagerly."""

    weight: jax.Array
    branches: bool = eqx.field(static=True)

    def __init__(self, branches, key):
        self.weight = jax.random.normal(key, (4,))
        self.branches = branches

    def __call__(self, values, intervened, row_mask, var_mask, target, key=None):
        count = jnp.maximum(row_mask.sum(), 1).astype(values.dtype)
        moments = values.T @ values / count
        if self.branches and float(moments.sum()) > 1e9:
            moments = -moments
        d = var_mask.shape[0]
        other = ~jnp.eye(d, dtype=bool) & var_mask[:, None] & var_mask[None, :]
        scores = self.weight[0] * jnp.tanh(moments) + self.weight[1]
        edges = jnp.where(other, scores, -jnp.inf)
        column, cause = edges[:, target], other[:, target]
        pair = jnp.where(cause, self.weight[2] * jnp.tanh(moments[:, target]), 0.0)
        bias = self.weight[3] * jnp.arange(11, dtype=values.dtype)
        return Prediction(edges, column, column, pair[:, None], bias)


def stand_in(branches=False) -> ParentSetModel:
    """A model of the same contract; with `branches` no tracer passes through it."""
    return ParentSetModel(functools.partial(Moments, branches), 3)
