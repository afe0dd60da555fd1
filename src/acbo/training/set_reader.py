"""A surrogate that was trained on sets of causes, read as one of edges."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from acbo.graphs.parent_sets import bucket_parent_sets
from acbo.surrogate.encode import standardize
from acbo.surrogate.model import Prediction, set_logits
from acbo.surrogate.predictor import Surrogate


class SetReader(Surrogate):
    """Edges of the target are the marginals of its posterior over sets of causes;
    other edges are what the head of set members says of each variable as a target.

    The steps by example train that head alone, so the head of edges says nothing yet.
    """

    max_parents: int = eqx.field(static=True, default=3)

    def read(
        self,
        values: Float[Array, "n d"],
        intervened: Bool[Array, "n d"],
        row_mask: Bool[Array, " n"],
        var_mask: Bool[Array, " d"],
        target: Int[Array, ""],
    ) -> Prediction:
        """All that the network says about one data set in its own units."""
        network, rest = self.network, (intervened, row_mask, var_mask)
        pairs = network.pairs(standardize(values, *rest), *rest)
        found = network.read(pairs, var_mask, target)
        columns = jnp.arange(var_mask.shape[0])
        members = lambda column: network.read(pairs, var_mask, column).member_logits
        set_mask, held = bucket_parent_sets(var_mask, target, self.max_parents)
        own = _marginal_logits(set_logits(found, held, set_mask), held)
        own = jnp.where(jnp.isfinite(found.member_logits), own, -jnp.inf)
        others = jax.vmap(members)(columns).T
        edges = jnp.where((columns == target)[None], own[:, None], others)
        return eqx.tree_at(
            lambda each: (each.edge_logits, each.parent_logits), found, (edges, own)
        )


def _marginal_logits(
    logits: Float[Array, " k"], held: Bool[Array, "k d"]
) -> Float[Array, " d"]:
    """Log odds that a set drawn by its logits holds each variable."""
    total = lambda those: jax.nn.logsumexp(
        jnp.where(those, logits[:, None], -jnp.inf), axis=0
    )
    return total(held) - total(~held)
