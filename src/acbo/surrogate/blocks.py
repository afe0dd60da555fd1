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
        x: Float[Array, "a b dim"],
        mask: Bool[Array, " b"],
        key: PRNGKeyArray | None,
    ) -> Float[Array, "a b dim"]:
        """Along the second axis."""
        one, two = (None, None) if key is None else jax.random.split(key)
        x = x + drop(self.attention(x, mask), self.rate, one)
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
        x: Float[Array, "n d dim"],
        row_mask: Bool[Array, " n"],
        var_mask: Bool[Array, " d"],
        key: PRNGKeyArray | None,
    ) -> Float[Array, "n d dim"]:
        """One exchange in both directions."""
        one, two = (None, None) if key is None else jax.random.split(key)
        x = self.variables(x, var_mask, one)
        return self.rows(x.swapaxes(0, 1), row_mask, two).swapaxes(0, 1)


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
    """One block of a stack after the other; compiled once however many there are."""
    if blocks is None:
        return x
    arrays, rest = eqx.partition(blocks, eqx.is_array)
    count = jax.tree.leaves(arrays)[0].shape[0]

    def go(x: Array, item: tuple[Any, Int[Array, ""]]):
        return apply(eqx.combine(item[0], rest), x, item[1]), None

    step = jax.checkpoint(go) if remat else go
    return jax.lax.scan(step, x, (arrays, jnp.arange(count)))[0]
