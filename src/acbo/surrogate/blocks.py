"""The two stages of the network: rows and variables in turn, then pairs of them."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from acbo.surrogate.layers import Attention, Linear, Norm, Perceptron, drop


class TurnBlock(eqx.Module):
    """Attention and a perceptron along one axis, with residuals."""

    attention: Attention
    perceptron: Perceptron
    rate: float = eqx.field(static=True)

    def __init__(
        self,
        dim: int,
        heads: int,
        key_size: int,
        factor: int,
        rate: float,
        key: PRNGKeyArray,
    ):
        first, last = jax.random.split(key)
        self.attention = Attention(dim, heads, key_size, first)
        self.perceptron = Perceptron(dim, factor, last)
        self.rate = rate

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

    def __init__(
        self,
        dim: int,
        heads: int,
        key_size: int,
        factor: int,
        rate: float,
        key: PRNGKeyArray,
    ):
        first, last = jax.random.split(key)
        self.variables = TurnBlock(dim, heads, key_size, factor, rate, first)
        self.rows = TurnBlock(dim, heads, key_size, factor, rate, last)

    def __call__(
        self,
        x: Float[Array, "cells dim"],
        row_mask: Bool[Array, " n"],
        var_mask: Bool[Array, " d"],
        key: PRNGKeyArray | None,
    ) -> Float[Array, "cells dim"]:
        """One exchange in both directions; cells by rows, then by variables."""
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
        """One round over all triples, then over each pair."""
        unit = self.norm(x)
        gated = self.parts(unit) * jax.nn.sigmoid(self.gate(unit))
        gated = jnp.where(there[..., None], gated, 0.0)
        a, b = gated[..., : self.width], gated[..., self.width :]
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
    """`count` blocks of one kind as one block whose arrays have a further axis."""
    return eqx.filter_vmap(make)(jax.random.split(key, count)) if count else None


def fold(
    blocks: Any,
    x: Array,
    apply: Callable[[Any, Array, Int[Array, ""]], Array],
    remat: bool,
) -> Array:
    """One block of a stack after the other.

    A loop in the program would copy what the way back needs into stacks and out again,
    which on a GPU takes longer than the blocks do.
    """
    if blocks is None:
        return x
    arrays, rest = eqx.partition(blocks, eqx.is_array)
    count = jax.tree.leaves(arrays)[0].shape[0]

    def go(x: Array, arrays: Any, index: Int[Array, ""]) -> Array:
        return apply(eqx.combine(arrays, rest), x, index)

    step = jax.checkpoint(go) if remat else go
    for index in range(count):
        x = step(x, jax.tree.map(lambda a, i=index: a[i], arrays), jnp.asarray(index))
    return x
