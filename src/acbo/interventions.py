"""Interventions as arrays: which variables are set or shifted, and to what."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from acbo.types import Index


class Intervention(eqx.Module):
    """Perfect where `mask` holds: the mechanism is replaced by `values`. Soft where
    `shift` is not zero: it is added to what the mechanism gives.
    """

    mask: Bool[Array, "*batch d"]
    values: Float[Array, "*batch d"]
    shift: Float[Array, "*batch d"]


def no_intervention(d: int) -> Intervention:
    """Nothing is changed: observational data."""
    return Intervention(jnp.zeros(d, bool), jnp.zeros(d), jnp.zeros(d))


def set_variable(index: Index, value: Float[Array, ""], d: int) -> Intervention:
    """do(X_index = value), a perfect intervention on one of d variables."""
    mask = jnp.arange(d) == index
    return Intervention(mask, jnp.where(mask, value, 0.0), jnp.zeros(d))


def set_variables(
    mask: Bool[Array, "*batch d"], values: Float[Array, "*batch d"]
) -> Intervention:
    """Perfect interventions on every variable of the mask."""
    return Intervention(mask, jnp.where(mask, values, 0.0), jnp.zeros_like(values))


def shift_variables(shift: Float[Array, "*batch d"]) -> Intervention:
    """Soft interventions: each mechanism keeps its causes and is moved by `shift`."""
    return Intervention(jnp.zeros(shift.shape, bool), jnp.zeros_like(shift), shift)
