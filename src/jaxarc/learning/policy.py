"""A policy network that chooses an operation, then the cell to act on."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from jaxarc.actions import PointAction
from jaxarc.tasks.augment import COLORS
from jaxrig.learn import Choice, Evaluation

CLASSES = COLORS + 1  # every color, and "no cell"


class Block(eqx.Module):
    """Two convolutions around which the input goes unchanged."""

    first: eqx.nn.Conv2d
    second: eqx.nn.Conv2d

    def __init__(self, key: PRNGKeyArray, features: int):
        one, two = jax.random.split(key)
        self.first = eqx.nn.Conv2d(features, features, 3, padding=1, key=one)
        self.second = eqx.nn.Conv2d(features, features, 3, padding=1, key=two)

    def __call__(self, x: Float[Array, "f h w"]) -> Float[Array, "f h w"]:
        """Return the input plus its residual."""
        return x + self.second(jax.nn.relu(self.first(jax.nn.relu(x))))


class PointPolicy(eqx.Module):
    """Probabilities of `operation`, then of a cell given the operation; and a value.

    Grids come in as classes (colors and "no cell") on every channel, with two channels
    that say where a cell lies. `operations` are the operations it may choose. With
    `dtype` "bfloat16" convolutions run in half precision; parameters stay float32.
    """

    entry: eqx.nn.Conv2d
    blocks: list[Block]
    cells: eqx.nn.Conv2d
    operation_head: eqx.nn.Linear
    value_head: eqx.nn.MLP
    operations: tuple[int, ...] = eqx.field(static=True)
    dtype: str = eqx.field(static=True)

    def __init__(
        self,
        key: PRNGKeyArray,
        channels: int,
        operations: tuple[int, ...],
        features: int = 64,
        depth: int = 2,
        dtype: str = "float32",
    ):
        keys = jax.random.split(key, depth + 4)
        seen = channels * CLASSES + 2
        self.entry = eqx.nn.Conv2d(seen, features, 1, key=keys[0])
        self.blocks = [Block(k, features) for k in keys[4:]]
        self.cells = eqx.nn.Conv2d(features, len(operations), 1, key=keys[1])
        pooled = 2 * features
        self.operation_head = eqx.nn.Linear(pooled, len(operations), key=keys[2])
        self.value_head = eqx.nn.MLP(pooled, "scalar", features, 1, key=keys[3])
        self.operations = tuple(int(operation) for operation in operations)
        self.dtype = dtype

    def sample(
        self, key: PRNGKeyArray, observation: Int[Array, "h w *channels"]
    ) -> Choice:
        """Draw an action."""
        operation_key, cell_key = jax.random.split(key)
        log_operation, log_cell, value = self.distribution(observation)
        operation = jax.random.categorical(operation_key, log_operation)
        cell = jax.random.categorical(cell_key, log_cell[operation])
        log_prob = log_operation[operation] + log_cell[operation, cell]
        return Choice(self._action(operation, cell, observation), log_prob, value)

    def best(self, observation: Int[Array, "h w *channels"]) -> PointAction:
        """Return the most likely operation, and the most likely cell for it."""
        log_operation, log_cell, _ = self.distribution(observation)
        operation = jnp.argmax(log_operation)
        return self._action(operation, jnp.argmax(log_cell[operation]), observation)

    def evaluate(
        self, observation: Int[Array, "h w *channels"], action: PointAction
    ) -> Evaluation:
        """Return an action's log-probability, the entropy of the choice, and value."""
        log_operation, log_cell, value = self.distribution(observation)
        known = jnp.asarray(self.operations, jnp.int32)
        operation = jnp.argmax(known == action.operation)
        cell = action.row * observation.shape[1] + action.col
        log_prob = log_operation[operation] + log_cell[operation, cell]
        # H = -sum p log p over the joint distribution of operations and cells.
        joint = log_operation[:, None] + log_cell
        entropy = -jnp.sum(jnp.exp(joint) * joint)
        return Evaluation(log_prob, entropy, value)

    def distribution(
        self, observation: Int[Array, "h w *channels"]
    ) -> tuple[Float[Array, " operations"], Float[Array, "operations cells"], Any]:
        """Return log-probabilities of operations, of cells given each, and value."""
        # A GPU's time is that of moving images of 64 features, which this halves.
        cast = lambda leaf: leaf.astype(self.dtype)
        net = jax.tree.map(cast, (self.entry, self.blocks, self.cells))
        entry, blocks, cells = net
        x = entry(cast(_features(observation)))
        for block in blocks:
            x = block(x)
        x = jax.nn.relu(x)
        wide = x.astype(jnp.float32)
        # Mean and maximum: how much of a feature there is, and whether there is any.
        pooled = jnp.concatenate([wide.mean(axis=(1, 2)), wide.max(axis=(1, 2))])
        log_operation = jax.nn.log_softmax(self.operation_head(pooled))
        scores = cells(x).astype(jnp.float32).reshape(len(self.operations), -1)
        return log_operation, jax.nn.log_softmax(scores), self.value_head(pooled)

    def _action(
        self, operation: Int[Array, ""], cell: Int[Array, ""], observation: Array
    ) -> PointAction:
        width = observation.shape[1]
        known = jnp.asarray(self.operations, jnp.int32)
        cell = cell.astype(jnp.int32)
        return PointAction(known[operation], cell // width, cell % width)


class RandomPolicy(eqx.Module):
    """Every operation and every cell as likely as any other."""

    operations: tuple[int, ...] = eqx.field(static=True)

    def sample(
        self, key: PRNGKeyArray, observation: Int[Array, "h w *channels"]
    ) -> Choice:
        """Draw an action."""
        height, width = observation.shape[:2]
        bounds = jnp.asarray([len(self.operations), height, width], jnp.int32)
        drawn = jax.random.randint(key, (3,), 0, bounds, jnp.int32)
        operation = jnp.asarray(self.operations, jnp.int32)[drawn[0]]
        log_prob = -jnp.log(jnp.prod(bounds.astype(jnp.float32)))
        return Choice(
            PointAction(operation, drawn[1], drawn[2]), log_prob, jnp.zeros(())
        )


def _features(observation: Int[Array, "h w *channels"]) -> Float[Array, "f h w"]:
    height, width = observation.shape[:2]
    grids = observation.reshape(height, width, -1)
    classes = jax.nn.one_hot(grids + 1, CLASSES).reshape(height, width, -1)
    row = jnp.broadcast_to(jnp.linspace(-1.0, 1.0, height)[:, None], (height, width))
    column = jnp.broadcast_to(jnp.linspace(-1.0, 1.0, width)[None], (height, width))
    places = jnp.stack([row, column], axis=-1)
    return jnp.moveaxis(jnp.concatenate([classes, places], axis=-1), -1, 0)
