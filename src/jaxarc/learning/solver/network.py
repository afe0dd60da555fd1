"""A looped transformer that fills in the hidden outputs of a task's pairs.

One token is one cell of one pair: the color of the input and, unless it is hidden, that
of the output. A few more tokens name the task (a learned id) and how it was turned and
recolored. The same blocks are applied several times to a state that starts from learned
values; after each loop the state is read out, and the loss asks all of them to be right
(deep supervision).
"""

from dataclasses import dataclass
from typing import Annotated

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from jaxarc.tasks.augment import COLORS, SYMMETRIES
from jaxrig.settings import Checked, Count, whole

OUTSIDE = COLORS  # a cell beyond the grid: also what the network predicts there
HIDDEN = COLORS + 1  # an output cell to predict
ABSENT = COLORS + 2  # a pair that the task does not have
CLASSES = COLORS + 1
EPSILON = 1e-6


@dataclass(frozen=True)
class NetworkConfig(Checked):
    """The sizes of a network: grids of `height` x `width`, `pairs` of them at once.

    `tasks` is the number of learned ids, of `id_tokens` tokens each.
    """

    height: Count
    width: Count
    tasks: Annotated[int, whole(0)]
    pairs: Annotated[int, whole(2)] = 4
    features: Count = 256
    heads: Count = 4
    hidden: Count = 512
    blocks: Count = 2
    loops: Count = 4
    id_tokens: Count = 8

    def __post_init__(self):
        super().__post_init__()
        if self.features % self.heads:
            raise ValueError(
                f"features is {self.features}: it must be a multiple of heads, "
                f"{self.heads}"
            )

    @property
    def cells(self) -> int:
        """Number of cell tokens."""
        return self.pairs * self.height * self.width

    @property
    def tokens(self) -> int:
        """Number of tokens in all."""
        return self.cells + self.id_tokens + COLORS


class Example(eqx.Module):
    """A batch of tasks: pairs with outputs shown, hidden or absent, and what is known.

    `task` is the row of the learned id, `symmetry` and `colors` the augmentation; their
    last values (the number of tasks, 8 and 10) stand for unknown.
    """

    inputs: Int[Array, "batch pairs h w"]
    outputs: Int[Array, "batch pairs h w"]
    task: Int[Array, " batch"]
    symmetry: Int[Array, " batch"]
    colors: Int[Array, "batch ten"]


class Block(eqx.Module):
    """Self-attention, then a gated layer, each on normalized input and added."""

    attention_scale: Float[Array, " d"]
    qkv: Float[Array, "d d3"]
    mix: Float[Array, "d d"]
    gate_scale: Float[Array, " d"]
    up: Float[Array, "d f2"]
    down: Float[Array, "f d"]
    heads: int = eqx.field(static=True)

    def __init__(self, key: PRNGKeyArray, config: NetworkConfig):
        d, f = config.features, config.hidden
        keys = jax.random.split(key, 4)
        self.attention_scale, self.gate_scale = jnp.ones(d), jnp.ones(d)
        self.qkv = _normal(keys[0], (d, 3 * d), d**-0.5)
        self.mix = _normal(keys[1], (d, d), 0.3 * d**-0.5)
        self.up = _normal(keys[2], (d, 2 * f), d**-0.5)
        self.down = _normal(keys[3], (f, d), 0.3 * f**-0.5)
        self.heads = config.heads

    def __call__(
        self, state: Float[Array, "batch tokens d"]
    ) -> Float[Array, "batch tokens d"]:
        """Return the next state."""
        batch, tokens, d = state.shape
        cast = lambda weights: weights.astype(state.dtype)
        heads = (batch, tokens, self.heads, d // self.heads)
        mixed = normalize(state, self.attention_scale) @ cast(self.qkv)
        query, key, value = (x.reshape(heads) for x in jnp.split(mixed, 3, axis=-1))
        # Normalized queries and keys bound the logits, which bf16 and Muon need.
        ones = jnp.ones(d // self.heads)
        attended = jax.nn.dot_product_attention(
            normalize(query, ones),
            normalize(key, ones),
            value,
            scale=12.0 / heads[-1],
            implementation="cudnn" if state.dtype == jnp.bfloat16 else None,
        )
        state = state + attended.reshape(state.shape) @ cast(self.mix)
        gate, up = jnp.split(
            normalize(state, self.gate_scale) @ cast(self.up), 2, axis=-1
        )
        return state + (jax.nn.silu(gate) * up) @ cast(self.down)


class SolverNetwork(eqx.Module):
    """The network: embeddings, blocks applied `loops` times, a head for the colors."""

    input_colors: Float[Array, "colors d"]
    output_colors: Float[Array, "colors d"]
    row: Float[Array, "h d"]
    column: Float[Array, "w d"]
    pair: Float[Array, "pairs d"]
    ids: Float[Array, "tasks tokens_d"]
    symmetries: Float[Array, "nine d"]
    color_from: Float[Array, "ten d"]
    color_to: Float[Array, "eleven d"]
    start: Float[Array, "tokens d"]
    blocks: tuple[Block, ...]
    state_scale: Float[Array, " d"]
    head_scale: Float[Array, " d"]
    head: Float[Array, "d classes"]
    config: NetworkConfig = eqx.field(static=True)

    def __init__(self, key: PRNGKeyArray, config: NetworkConfig):
        d = config.features
        rows = {
            "input_colors": ABSENT + 1,
            "output_colors": ABSENT + 1,
            "row": config.height,
            "column": config.width,
            "pair": config.pairs,
            "symmetries": SYMMETRIES + 1,
            "color_from": COLORS,
            "color_to": COLORS + 1,
        }
        keys = iter(jax.random.split(key, len(rows) + 3 + config.blocks))
        for name, count in rows.items():
            setattr(self, name, _normal(next(keys), (count, d), 0.5))
        self.ids = _normal(next(keys), (config.tasks + 1, config.id_tokens * d), 0.3)
        self.start = _normal(next(keys), (config.tokens, d), 0.1)
        self.head = _normal(next(keys), (d, CLASSES), d**-0.5)
        self.blocks = tuple(Block(k, config) for k in keys)
        self.state_scale, self.head_scale = jnp.ones(d), jnp.ones(d)
        self.config = config

    def __call__(
        self, example: Example
    ) -> Float[Array, "loops batch pairs h w classes"]:
        """Return logits of every output cell after every loop."""
        x = self._embed(example)
        state = jnp.broadcast_to(self.start.astype(x.dtype), x.shape)
        read = []
        # Unrolled: a scan would copy every activation that is saved for the gradient.
        for _ in range(self.config.loops):
            state = normalize(state, self.state_scale) + x
            for block in self.blocks:
                state = block(state)
            cells = normalize(state[:, : self.config.cells], self.head_scale)
            read.append(cells @ self.head.astype(x.dtype))
        shape = (-1, *example.inputs.shape, CLASSES)
        return jnp.stack(read).reshape(shape).astype(jnp.float32)

    def _embed(self, example: Example) -> Float[Array, "batch tokens d"]:
        batch, d = example.task.shape[0], self.config.features
        color = _look_up(self.input_colors, example.inputs)
        color = color + _look_up(self.output_colors, example.outputs)
        place = self.pair[:, None, None] + (self.row[:, None] + self.column[None])[None]
        cells = (color + place.astype(color.dtype)[None]).reshape(batch, -1, d)
        ids = _look_up(self.ids, example.task).reshape(batch, -1, d)
        ids = ids + _look_up(self.symmetries, example.symmetry)[:, None]
        recolored = _look_up(self.color_to, example.colors)
        recolored = recolored + self.color_from.astype(color.dtype)[None]
        return jnp.concatenate([cells, ids, recolored], axis=1)


def normalize(
    x: Float[Array, "*batch d"], scale: Float[Array, " d"]
) -> Float[Array, "*batch d"]:
    """Divide by the root mean square, in single precision; then scale."""
    wide = x.astype(jnp.float32)
    size = jnp.sqrt(jnp.mean(jnp.square(wide), axis=-1, keepdims=True) + EPSILON)
    return (wide / size * scale.reshape((1,) * (x.ndim - 1) + (-1,))).astype(x.dtype)


def _look_up(
    table: Float[Array, "n d"], index: Int[Array, "*batch"]
) -> Float[Array, "*batch d"]:
    # A product with one-hot rows: the gradient of a gather is a scatter, which adds
    # into few rows from everywhere and takes longer than the product on a GPU.
    # Half the bits where hardware has them, for all matrix products that follow.
    dtype = jnp.bfloat16 if jax.default_backend() == "gpu" else jnp.float32
    return jax.nn.one_hot(index, len(table), dtype=dtype) @ table.astype(dtype)


def _normal(key: PRNGKeyArray, shape: tuple[int, ...], scale: float) -> Array:
    return scale * jax.random.normal(key, shape)


def answer_loss(
    logits: Float[Array, "loops batch pairs h w classes"],
    answers: Int[Array, "batch pairs h w"],
    asked: Bool[Array, "batch pairs"],
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return the mean loss of the hidden pairs, and the share of them that is right.

    Later loops count more: loop i of n weighs i / (1 + ... + n).
    """
    loops = logits.shape[0]
    chosen = jax.nn.one_hot(answers, CLASSES)[None]
    cells = -jnp.sum(jax.nn.log_softmax(logits) * chosen, axis=-1)
    weight = asked.astype(jnp.float32)
    total = jnp.maximum(jnp.sum(weight), 1.0)
    by_loop = jnp.sum(jnp.mean(cells, axis=(-2, -1)) * weight[None], axis=(1, 2))
    share = np.arange(1, loops + 1, dtype=np.float32)
    loss = jnp.sum(by_loop / total * jnp.asarray(share / share.sum()))
    right = jnp.all(jnp.argmax(logits[-1], axis=-1) == answers, axis=(-2, -1))
    return loss, jnp.sum(jnp.where(right, weight, 0.0)) / total
