"""Mechanisms as sums of features of the causes, one form for every kind.

f_j(x) = intercept_j + sum_h outer_jh * act_jh(inner_jh . x + bias_jh): linear with one
identity unit, quadratic with a square beside it, tanh with one unit, a network with
many tanh units, random Fourier features with many cosines, waves with three of them.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

IDENTITY, SQUARE, TANH, COSINE = range(4)


def activate(kind: Int[Array, "*n"], x: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """The unit's function by its number."""
    return jnp.select(
        [kind == IDENTITY, kind == SQUARE, kind == TANH],
        [x, jnp.square(x), jnp.tanh(x)],
        jnp.cos(x),
    )


class Features(eqx.Module):
    """Parameters of the mechanisms of d variables, with h units each."""

    inner: Float[Array, "*batch d h d"]  # [child, unit, cause]; zero for no cause
    bias: Float[Array, "*batch d h"]
    outer: Float[Array, "*batch d h"]
    activation: Int[Array, "*batch d h"]
    intercept: Float[Array, "*batch d"]

    def of(self, j: Int[Array, ""], row: Float[Array, " d"]) -> Float[Array, ""]:
        """The mechanism of variable j at a row of values."""
        units = activate(self.activation[j], self.inner[j] @ row + self.bias[j])
        return self.intercept[j] + self.outer[j] @ units


def linear_features(
    weight: Float[Array, "d d"], intercept: Float[Array, " d"]
) -> Features:
    """x_j = intercept_j + sum_i weight[i, j] x_i."""
    d = intercept.shape[0]
    return Features(
        weight.T[:, None, :],
        jnp.zeros((d, 1)),
        jnp.ones((d, 1)),
        jnp.full((d, 1), IDENTITY),
        intercept,
    )
