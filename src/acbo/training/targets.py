"""What the surrogate is told about a data set: the true graph, or what can be known.

The exact posterior given the rows is what a learner without a prior over families
should say; the true graph teaches it the families it is trained on as well.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from acbo.datasets import Dataset
from acbo.experts.exact import parent_posterior
from acbo.experts.local import marginals_of
from acbo.graphs.parent_sets import bucket_parent_sets


class Targets(eqx.Module):
    """Probabilities of edges [i, j] and of the target's sets of causes."""

    edges: Float[Array, "*batch d d"]
    sets: Float[Array, "*batch k"]  # all 0 where the true set is no candidate


def true_targets(data: Dataset, max_parents: int) -> Targets:
    """The graph that the rows come from."""
    there, members = bucket_parent_sets(data.var_mask, data.target, max_parents)
    causes = data.adjacency[:, data.target]
    same = (members == causes[None]).all(axis=1) & there
    return Targets(data.adjacency.astype(jnp.float32), same.astype(jnp.float32))


def exact_targets(data: Dataset, max_parents: int) -> Targets:
    """The exact posterior of the target's causes; other edges as they are."""
    among = data.var_mask, data.target
    logs = parent_posterior(
        data.values, data.intervened, data.row_mask, *among, max_parents=max_parents
    )
    causes = marginals_of(logs, *among, max_parents=max_parents)
    edges = data.adjacency.astype(causes.dtype).at[:, data.target].set(causes)
    return Targets(edges, jnp.exp(logs))
