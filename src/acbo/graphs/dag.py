"""Directed graphs as boolean matrices: `adjacency[i, j]` holds when i causes j."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int


def ancestors(adjacency: Bool[Array, "d d"]) -> Bool[Array, "d d"]:
    """`result[i, j]` holds when a path of at least one edge leads from i to j."""
    reach = adjacency
    for _ in range(max(adjacency.shape[0] - 1, 1).bit_length()):
        steps = reach.astype(jnp.float32)
        reach = reach | (steps @ steps > 0)
    return reach


def depths(adjacency: Bool[Array, "d d"]) -> Int[Array, " d"]:
    """Edges on the longest path that leads to each variable of an acyclic graph."""

    def relax(depth: Int[Array, " d"], _: None):
        longer = jnp.where(adjacency, depth[:, None] + 1, 0).max(axis=0)
        return jnp.maximum(depth, longer), None

    start = jnp.zeros(adjacency.shape[0], jnp.int32)
    return jax.lax.scan(relax, start, None, adjacency.shape[0])[0]
