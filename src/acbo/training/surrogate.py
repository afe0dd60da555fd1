"""Training of the surrogate: models, data, loss and update in one compiled scan.

It learns the true graph, or the exact posterior given the rows: what a learner without
a prior over families should say. The true graph teaches it those families as well.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from acbo.graphs import bucket_parent_sets
from acbo.posterior.exact import parent_posterior
from acbo.posterior.scores import parent_marginals
from acbo.random_models import DataConfig, Dataset, draw_dataset
from acbo.surrogate.encode import standardize
from acbo.surrogate.model import (
    Prediction,
    SurrogateConfig,
    SurrogateNetwork,
    set_logits,
)
from jaxrig.keys import batch_keys, named_key
from jaxrig.learn.optimizer import FlatTree, improve, start_optimizer
from jaxrig.sharding import constrain, map_shares


class Targets(eqx.Module):
    """Probabilities of edges [i, j] and of the target's sets of causes."""

    edges: Float[Array, "*batch d d"]
    sets: Float[Array, "*batch k"]  # all 0 where the true set is no candidate


def true_targets(data: Dataset, max_parents: int) -> Targets:
    """Return the graph that the rows come from."""
    there, members = bucket_parent_sets(data.var_mask, data.target, max_parents)
    causes = data.adjacency[:, data.target]
    same = (members == causes[None]).all(axis=1) & there
    return Targets(data.adjacency.astype(jnp.float32), same.astype(jnp.float32))


def exact_targets(data: Dataset, max_parents: int) -> Targets:
    """Return the exact posterior of the target's causes; other edges as they are."""
    among = data.var_mask, data.target
    logs = parent_posterior(
        data.values, data.intervened, data.row_mask, *among, max_parents=max_parents
    )
    causes = parent_marginals(logs, *among, max_parents=max_parents)
    edges = data.adjacency.astype(causes.dtype).at[:, data.target].set(causes)
    return Targets(edges, jnp.exp(logs))


@dataclass(frozen=True)
class SurrogateRecipe:
    """How the surrogate is trained: data by bucket, batches, steps and rates."""

    model: SurrogateConfig = field(default_factory=SurrogateConfig)
    data: tuple[DataConfig, ...] = (DataConfig(),)
    batches: tuple[int, ...] = (32,)
    steps: int = 1000
    steps_per_update: int = 10
    learning_rate: float = 1e-3
    warmup: int = 200
    weight_decay: float = 1e-4
    max_grad_norm: float = 1.0
    graph_weight: float = 0.5
    set_weight: float = 0.1
    max_parents: int = 3

    def __post_init__(self) -> None:
        if len(self.batches) != len(self.data):
            raise ValueError(
                f"{len(self.batches)} batch sizes for {len(self.data)} buckets of data"
            )
        if self.steps % self.steps_per_update:
            raise ValueError(
                f"steps={self.steps} is not a multiple of "
                f"steps_per_update={self.steps_per_update}"
            )


class SurrogateState(eqx.Module):
    """Everything the next update needs; saved and loaded, training goes on exactly."""

    network: SurrogateNetwork
    optimizer: PyTree
    key: PRNGKeyArray
    step: Int[Array, ""]
    total: Int[Array, ""]


class SurrogateMetrics(eqx.Module):
    """Means over one update, by variable in nats: the target's causes, all edges, and
    the set of causes as a whole.
    """

    loss: Float[Array, ""]
    parents: Float[Array, ""]
    edges: Float[Array, ""]
    sets: Float[Array, ""]
    gradient_norm: Float[Array, ""]


def make_optimizer(
    recipe: SurrogateRecipe, rate: float | Float[Array, ""]
) -> optax.GradientTransformation:
    """Return AdamW with clipped gradients, at the learning rate of one step."""
    return optax.chain(
        optax.clip_by_global_norm(recipe.max_grad_norm),
        optax.adamw(rate, weight_decay=recipe.weight_decay),
    )


def learning_rate(
    step: Int[Array, ""], total: Int[Array, ""], recipe: SurrogateRecipe
) -> Float[Array, ""]:
    """Return the rate of a step: linear warmup, then cosine decay to a hundredth of the
    peak.

    The number of steps is traced: runs of any length share one compiled program.
    """
    done = step.astype(jnp.float32)
    warm = jnp.minimum((done + 1) / max(recipe.warmup, 1), 1.0)
    share = jnp.clip(done / jnp.maximum(total, 1).astype(jnp.float32), 0.0, 1.0)
    fall = 0.01 + 0.99 * 0.5 * (1 + jnp.cos(np.float32(np.pi) * share))
    return recipe.learning_rate * warm * fall


def start_surrogate(key: PRNGKeyArray, recipe: SurrogateRecipe) -> SurrogateState:
    """Return a network at its start."""
    network = SurrogateNetwork(recipe.model, named_key(key, "network"))
    optimizer = make_optimizer(recipe, recipe.learning_rate)
    memory = start_optimizer(optimizer, FlatTree(network))
    counts = jnp.asarray(0), jnp.asarray(recipe.steps)
    return SurrogateState(network, memory, named_key(key, "steps"), *counts)


def cross_entropy(
    logits: Float[Array, "*n"], chance: Float[Array, "*n"]
) -> Float[Array, "*n"]:
    """Return -E[log p] in nats; 0 where the logit is masked (-inf)."""
    there = jnp.isfinite(logits)
    safe = jnp.where(there, logits, 0.0)
    # -log sigmoid(x) is softplus(-x), which neither overflows nor loses its gradient.
    lost = chance * jax.nn.softplus(-safe) + (1 - chance) * jax.nn.softplus(safe)
    return jnp.where(there, lost, 0.0)


def set_loss(
    prediction: Prediction,
    chances: Float[Array, " k"],
    target: Int[Array, ""],
    var_mask: Bool[Array, " d"],
    max_parents: int,
) -> Float[Array, ""]:
    """Return -E[log p] of the set of causes, over all candidates."""
    set_mask, membership = bucket_parent_sets(var_mask, target, max_parents)
    scores = jax.nn.log_softmax(set_logits(prediction, membership, set_mask))
    return -jnp.where(set_mask, chances * scores, 0.0).sum()


class Losses(eqx.Module):
    """The parts of the loss of one data set."""

    parents: Float[Array, "*batch"]
    edges: Float[Array, "*batch"]
    sets: Float[Array, "*batch"]


def losses_of(
    network: SurrogateNetwork,
    data: Dataset,
    wanted: Targets,
    key: PRNGKeyArray | None,
    max_parents: int,
) -> Losses:
    """Return log loss by variable of the target's causes, all edges and the set."""
    z = standardize(data.values, data.intervened, data.row_mask, data.var_mask)
    found = network(z, data.intervened, data.row_mask, data.var_mask, data.target, key)
    size = data.var_mask.sum().astype(z.dtype)
    edges = cross_entropy(found.edge_logits, wanted.edges)
    others = jnp.maximum(size - 1, 1)
    return Losses(
        edges[:, data.target].sum() / others,
        edges.sum() / (size * others),
        set_loss(found, wanted.sets, data.target, data.var_mask, max_parents),
    )


def _bucket_losses(
    network: SurrogateNetwork,
    key: PRNGKeyArray,
    count: int,
    config: DataConfig,
    recipe: SurrogateRecipe,
    mesh: Mesh | None,
) -> Losses:
    """Return the losses of new data sets of one bucket, over the devices of a mesh."""
    targets = exact_targets if config.exact else true_targets

    def one(network: Any, data_key: PRNGKeyArray, key: PRNGKeyArray) -> Losses:
        data = draw_dataset(data_key, config)
        # Without a key no block derives two keys of its own in vain.
        own = key if recipe.model.dropout > 0 else None
        wanted = targets(data, recipe.max_parents)
        return losses_of(network, data, wanted, own, recipe.max_parents)

    keys = [batch_keys(named_key(key, use), count) for use in ("data", "dropout")]
    if mesh is not None and count % mesh.size:
        raise ValueError(
            f"{count} models in a step do not divide over {mesh.size} devices"
        )
    each = lambda network, keys: jax.vmap(partial(one, network))(*keys)
    return map_shares(each, mesh, network, keys)


def _step_loss(
    network: SurrogateNetwork,
    key: PRNGKeyArray,
    recipe: SurrogateRecipe,
    mesh: Mesh | None,
) -> tuple[Float[Array, ""], tuple[Float[Array, ""], Losses]]:
    """Return the mean loss over all buckets' batches, and its parts."""
    buckets = zip(recipe.batches, recipe.data, strict=True)
    parts = [
        _bucket_losses(network, jax.random.fold_in(key, i), *bucket, recipe, mesh)
        for i, bucket in enumerate(buckets)
    ]
    joined = jax.tree.map(lambda *each: jnp.concatenate(each).mean(), *parts)
    total = (
        joined.parents
        + recipe.graph_weight * joined.edges
        + recipe.set_weight * joined.sets
    )
    return total, (total, joined)


def update_surrogate(
    state: SurrogateState, recipe: SurrogateRecipe, mesh: Mesh | None = None
) -> tuple[SurrogateState, SurrogateMetrics]:
    """Take `steps_per_update` steps, each on new models; compile it once and call it.

    With a mesh the models of a step are shared out over its devices.
    """

    def take_step(carry: tuple[FlatTree, PyTree], step: Int[Array, ""]):
        key = jax.random.fold_in(state.key, step)
        network, memory, (loss, parts), norm = improve(
            make_optimizer(recipe, learning_rate(step, state.total, recipe)),
            lambda network: _step_loss(network.restore(), key, recipe, mesh),
            *carry,
        )
        metrics = SurrogateMetrics(loss, parts.parents, parts.edges, parts.sets, norm)
        return (network, memory), metrics

    steps = state.step + jnp.arange(recipe.steps_per_update)
    start = FlatTree(state.network), state.optimizer
    (network, memory), metrics = jax.lax.scan(take_step, start, steps)
    done = state.step + recipe.steps_per_update
    following = network.restore(), memory, state.key, done, state.total
    # Copied again, or the next call would compile for what XLA chose instead.
    following = constrain(following, mesh)
    return SurrogateState(*following), jax.tree.map(jnp.mean, metrics)
