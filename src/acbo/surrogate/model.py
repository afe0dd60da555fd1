"""The surrogate network: from a data set to the probability of every edge.

Rows and variables attend in turn; what they learn meets the statistics of each pair,
and the pairs reason over triples. Nothing depends on the order or the number of rows
and variables, so one set of parameters serves every size.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from acbo.surrogate.encode import PAIR_FEATURES, pair_statistics, squash
from acbo.surrogate.layers import Attention, Linear, Norm, Perceptron, drop
from jaxrig.settings import Checked, Count, flag, number, one_of, whole


class TurnBlock(eqx.Module):
    """Attention and a perceptron along one axis, with residuals."""

    attention: Attention
    perceptron: Perceptron
    rate: float = eqx.field(static=True)

    def __init__(self, config: "SurrogateConfig", key: PRNGKeyArray):
        first, last = jax.random.split(key)
        dim, heads = config.dim, config.heads
        self.attention = Attention(dim, heads, config.key_size, first)
        self.perceptron = Perceptron(dim, config.widening_factor, last)
        self.rate = config.dropout

    def __call__(
        self,
        x: Float[Array, "cells dim"],
        table: tuple[int, int],
        mask: Bool[Array, " places"],
        axis: int,
        key: PRNGKeyArray | None,
    ) -> Float[Array, "cells dim"]:
        """Along one axis of the table that the cells make up."""
        one, two = (None, None) if key is None else jax.random.split(key)
        x = x + drop(self.attention(x, table, mask, axis), self.rate, one)
        return x + drop(self.perceptron(x), self.rate, two)


class Round(eqx.Module):
    """Along the variables, then along the rows."""

    variables: TurnBlock
    rows: TurnBlock

    def __init__(self, config: "SurrogateConfig", key: PRNGKeyArray):
        first, last = jax.random.split(key)
        self.variables = TurnBlock(config, first)
        self.rows = TurnBlock(config, last)

    def __call__(
        self,
        x: Float[Array, "cells dim"],
        row_mask: Bool[Array, " n"],
        var_mask: Bool[Array, " d"],
        key: PRNGKeyArray | None,
    ) -> Float[Array, "cells dim"]:
        """Return one exchange in both directions; cells by rows, then by variables."""
        one, two = (None, None) if key is None else jax.random.split(key)
        table = row_mask.shape[0], var_mask.shape[0]
        x = self.variables(x, table, var_mask, 1, one)
        return self.rows(x, table, row_mask, 0, two)


class PairBlock(eqx.Module):
    """Pairs learn from the third variable: i -> k -> j, i <- k -> j and i -> k <- j."""

    norm: Norm
    parts: Linear
    gate: Linear
    out: Linear
    perceptron: Perceptron
    width: int = eqx.field(static=True)

    def __init__(self, dim: int, width: int, factor: int, key: PRNGKeyArray):
        first, second, third, last = jax.random.split(key, 4)
        self.norm = Norm(dim)
        self.parts = Linear(dim, 2 * width, first)
        self.gate = Linear(dim, 2 * width, second)
        self.out = Linear(3 * width, dim, third, 0.1)
        self.perceptron = Perceptron(dim, factor, last)
        self.width = width

    def __call__(
        self, x: Float[Array, "d d dim"], there: Bool[Array, "d d"]
    ) -> Float[Array, "d d dim"]:
        """Return one round over all triples, then over each pair."""
        unit = self.norm(x)
        gated = self.parts(unit) * jax.nn.sigmoid(self.gate(unit))
        gated = jnp.where(there[..., None], gated, 0.0)
        a, b = gated[..., : self.width], gated[..., self.width :]
        # A sum over d thirds grows like the root of d while they are independent: so
        # divided, buckets of all sizes have one scale.
        size = jnp.sqrt(there.any(axis=0).sum().astype(jnp.float32))
        rounds = [
            jnp.einsum("ikc,kjc->ijc", a, b),
            jnp.einsum("kic,kjc->ijc", a, b),
            jnp.einsum("ikc,jkc->ijc", a, b),
        ]
        joined = jnp.concatenate(rounds, axis=-1) / size.astype(x.dtype)
        x = x + self.out(joined)
        return x + self.perceptron(x)


def stack(make: Callable[[PRNGKeyArray], Any], key: PRNGKeyArray, count: int) -> Any:
    """Return `count` blocks as one block whose arrays have a leading axis."""
    return eqx.filter_vmap(make)(jax.random.split(key, count)) if count else None


def fold(
    blocks: Any,
    x: Array,
    apply: Callable[[Any, Array, Int[Array, ""]], Array],
    remat: bool,
) -> Array:
    """Return one block of a stack after the other.

    On a CPU in a loop, whose body is compiled once. A loop copies what the way back
    needs into stacks and out again, which on a GPU takes longer than the blocks do.
    """
    if blocks is None:
        return x
    arrays, rest = eqx.partition(blocks, eqx.is_array)
    count = jax.tree.leaves(arrays)[0].shape[0]

    def go(x: Array, one: tuple[Any, Int[Array, ""]]) -> tuple[Array, None]:
        arrays, index = one
        return apply(eqx.combine(arrays, rest), x, index), None

    step = jax.checkpoint(go) if remat else go
    unroll = jax.default_backend() != "cpu"
    return jax.lax.scan(step, x, (arrays, jnp.arange(count)), unroll=unroll)[0]


CELL_FEATURES = 5
INTERACTION_RANK = 8
LARGEST_SET = 10
SPARSE_PRIOR = -1.5  # log odds of an edge before anything is learned
PRECISIONS = {"float32": jnp.float32, "bfloat16": jnp.bfloat16}


@dataclass(frozen=True)
class SurrogateConfig(Checked):
    """Sizes of the network; each of its `layers` has a block along both axes."""

    dim: Count = 128
    layers: Annotated[int, whole(at_least=0)] = 8
    heads: Count = 8
    key_size: Count = 32
    widening_factor: Count = 4
    dropout: Annotated[float, number(at_least=0, up_to=0.99)] = 0.1
    pair_dim: Count = 64
    pair_layers: Annotated[int, whole(at_least=0)] = 4
    compute_dtype: Annotated[str, one_of(*PRECISIONS)] = "float32"
    remat: Annotated[bool, flag] = False


class Prediction(eqx.Module):
    """What the network says about one data set; logits of what is not there: -inf."""

    edge_logits: Float[Array, "*batch d d"]  # of i -> j
    parent_logits: Float[Array, "*batch d"]  # of the target's column
    member_logits: Float[Array, "*batch d"]
    interaction: Float[Array, "*batch d r"]
    size_bias: Float[Array, "*batch s"]

    @property
    def parent_probs(self) -> Float[Array, "*batch d"]:
        """Return P(i causes the target), 0 for the target itself and the padding."""
        return jax.nn.sigmoid(self.parent_logits)


class SurrogateNetwork(eqx.Module):
    """Alternating attention, pair statistics, reasoning over triples, two heads."""

    embed: Linear
    rounds: Round | None
    norm: Norm
    left: Linear
    right: Linear
    pool: Linear
    pair_embed: Linear
    product: Linear
    pair_blocks: PairBlock | None
    pair_norm: Norm
    head: Linear
    size_head: Linear
    config: SurrogateConfig = eqx.field(static=True)

    def __init__(self, config: SurrogateConfig, key: PRNGKeyArray):
        keys = iter(jax.random.split(key, 10))
        dim, pair, rank = config.dim, config.pair_dim, 16
        self.embed = Linear(CELL_FEATURES, dim, next(keys))
        self.rounds = stack(lambda k: Round(config, k), next(keys), config.layers)
        self.norm = Norm(dim)
        self.left = Linear(dim, rank, next(keys))
        self.right = Linear(dim, rank, next(keys))
        self.pool = Linear(2 * dim, 2 * pair, next(keys))
        self.pair_embed = Linear(PAIR_FEATURES, pair, next(keys))
        self.product = Linear(2 * rank, pair, next(keys))
        self.pair_blocks = stack(
            lambda k: PairBlock(pair, max(pair // 2, 1), 2, k),
            next(keys),
            config.pair_layers,
        )
        self.pair_norm = Norm(pair)
        # Heads start near zero, so that the first predictions are the prior and the
        # first gradients are those of its error.
        self.head = Linear(pair, 2 + INTERACTION_RANK, next(keys), 0.01)
        self.size_head = Linear(pair, LARGEST_SET + 1, next(keys), 0.01)
        self.config = config

    def __call__(
        self,
        values: Float[Array, "n d"],
        intervened: Bool[Array, "n d"],
        row_mask: Bool[Array, " n"],
        var_mask: Bool[Array, " d"],
        target: Int[Array, ""],
        key: PRNGKeyArray | None = None,
    ) -> Prediction:
        """Read one data set of z-scores; a key turns dropout on."""
        pairs = self.pairs(values, intervened, row_mask, var_mask, key)
        return self.read(pairs, var_mask, target)

    def pairs(
        self,
        values: Float[Array, "n d"],
        intervened: Bool[Array, "n d"],
        row_mask: Bool[Array, " n"],
        var_mask: Bool[Array, " d"],
        key: PRNGKeyArray | None = None,
    ) -> Float[Array, "d d pair"]:
        """Return what is known about each ordered pair; the same for every target."""
        kind = PRECISIONS[self.config.compute_dtype]
        # Whatever stands in the padding, nothing below may depend on it.
        cells = row_mask[:, None] & var_mask[None, :]
        values, intervened = jnp.where(cells, values, 0.0), intervened & cells
        there = var_mask[:, None] & var_mask[None, :]
        facts = pair_statistics(values, intervened, row_mask, var_mask)
        cells = self._rows(values, intervened, row_mask, var_mask, key, kind)
        # Pairs are few and their evidence is fine: they stay in single precision.
        x = self.pair_embed(facts) + self._meet(cells, row_mask).astype(jnp.float32)
        apply = lambda block, x, _: block(x, there)
        x = fold(self.pair_blocks, x, apply, self.config.remat)
        return self.pair_norm(x)

    def read(
        self,
        pairs: Float[Array, "d d pair"],
        var_mask: Bool[Array, " d"],
        target: Int[Array, ""],
    ) -> Prediction:
        """Return what the heads say: all edges, and sets of causes of the target."""
        d = var_mask.shape[0]
        read = self.head(pairs)
        other = ~jnp.eye(d, dtype=bool) & var_mask[:, None] & var_mask[None, :]
        edges = jnp.where(other, read[..., 0] + SPARSE_PRIOR, -jnp.inf)
        column = read[:, target]
        cause = other[:, target]
        return Prediction(
            edges,
            edges[:, target],
            jnp.where(cause, column[:, 1] + SPARSE_PRIOR, -jnp.inf),
            jnp.where(cause[:, None], column[:, 2:], 0.0),
            self.size_head(pairs[target, target]),
        )

    def _rows(
        self,
        values: Float[Array, "n d"],
        intervened: Bool[Array, "n d"],
        row_mask: Bool[Array, " n"],
        var_mask: Bool[Array, " d"],
        key: PRNGKeyArray | None,
        kind: jnp.dtype | type,
    ) -> Float[Array, "n d dim"]:
        """Attention along the variables and along the rows in turn."""
        flag = intervened.astype(values.dtype)
        bounded = squash(values)
        cells = jnp.stack(
            [jnp.tanh(values), bounded, flag, flag * bounded, jnp.ones_like(flag)], -1
        )

        def apply(block: Round, x: Array, index: Int[Array, ""]) -> Array:
            own = None if key is None else jax.random.fold_in(key, index)
            return block(x, row_mask, var_mask, own)

        # In one line: what goes cell by cell has no use for the table's two axes.
        x = self.embed(cells.astype(kind).reshape(-1, CELL_FEATURES))
        x = self.norm(fold(self.rounds, x, apply, self.config.remat))
        return x.reshape(*values.shape, -1)

    def _meet(
        self, cells: Float[Array, "n d dim"], row_mask: Bool[Array, " n"]
    ) -> Float[Array, "d d pair"]:
        """Map cells to pairs: pooled variables, and products averaged over the rows."""
        rows = row_mask[:, None, None]
        count = jnp.maximum(row_mask.sum(), 1).astype(cells.dtype)
        there = jnp.where(rows, cells, 0.0)
        mean = there.sum(axis=0) / count
        most = jnp.where(rows, cells, -jnp.inf).max(axis=0)
        most = jnp.where(jnp.isfinite(most), most, 0.0)
        pooled = self.pool(jnp.concatenate([mean, most], axis=-1))
        cause, effect = jnp.split(pooled, 2, axis=-1)
        left, right = self.left(there), self.right(there)
        left = jnp.where(rows, left, 0.0)
        met = jnp.einsum("nic,njc->ijc", left, right) / count
        both = jnp.concatenate([met, met.swapaxes(0, 1)], axis=-1)
        return cause[:, None] + effect[None, :] + self.product(both)


def set_logits(
    prediction: Prediction,
    membership: Bool[Array, "k d"],
    set_mask: Bool[Array, " k"],
) -> Float[Array, " k"]:
    """Return logits of sets of causes: members, pairs of members, and the size."""
    member = membership.astype(jnp.float32)
    single = jnp.where(membership, prediction.member_logits[None], 0.0).sum(axis=-1)
    # sum over pairs a < b of v_a . v_b = (|sum v|^2 - sum |v|^2) / 2: all pairs of a
    # set in time linear in its size (Rendle, 2010, factorization machines).
    joint = member @ prediction.interaction
    own = member @ jnp.square(prediction.interaction)
    pairs = 0.5 * (jnp.square(joint) - own).sum(axis=-1)
    sizes = jnp.minimum(membership.sum(axis=-1), LARGEST_SET)
    return jnp.where(set_mask, single + pairs + prediction.size_bias[sizes], -jnp.inf)
