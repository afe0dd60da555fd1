"""Structural causal models on the device, and interventions on them as arrays.

Variables are columns of fixed order; a model may be padded with variables that do not
exist (`mask` is False), so that models of many sizes share one compiled program.
"""

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from acbo.mechanisms import Features, draw_noise, noise_factor
from acbo.types import Index
from jaxrig.keys import batch_keys


class Intervention(eqx.Module):
    """Perfect where `mask` holds: the mechanism is replaced by `values`. Soft where
    `scale` is not one or `shift` not zero: what the mechanism gives, noise included, is
    multiplied by the one, then the other is added.
    """

    mask: Bool[Array, "*batch d"]
    values: Float[Array, "*batch d"]
    shift: Float[Array, "*batch d"]
    scale: Float[Array, "*batch d"]


def no_intervention(d: int) -> Intervention:
    """Return an intervention that changes nothing: observational data."""
    return change_variables(jnp.zeros(d), jnp.ones(d))


def set_variable(index: Index, value: Float[Array, ""], d: int) -> Intervention:
    """Return do(X_index = value), a perfect intervention on one of d variables."""
    mask = jnp.arange(d) == index
    return set_variables(mask, jnp.full(d, value))


def set_variables(
    mask: Bool[Array, "*batch d"], values: Float[Array, "*batch d"]
) -> Intervention:
    """Return perfect interventions on every variable of the mask."""
    kept = jnp.zeros_like(values), jnp.ones_like(values)
    return Intervention(mask, jnp.where(mask, values, 0.0), *kept)


def change_variables(
    shift: Float[Array, "*batch d"], scale: Float[Array, "*batch d"]
) -> Intervention:
    """Return soft interventions: mechanisms are scaled, then shifted."""
    return Intervention(jnp.zeros(shift.shape, bool), 0 * shift, shift, scale)


class AbstractSCM(eqx.Module):
    """What samplers, environments and experts ask of a structural causal model."""

    target: eqx.AbstractVar[Index]
    low: eqx.AbstractVar[Float[Array, "*batch d"]]
    high: eqx.AbstractVar[Float[Array, "*batch d"]]
    mask: eqx.AbstractVar[Bool[Array, "*batch d"]]

    @abstractmethod
    def draw(self, key: PRNGKeyArray) -> Any:
        """Draw the exogenous noise of one row: everything random about it."""

    @abstractmethod
    def respond(
        self, noise: Any, intervention: Intervention, clip_to_range: bool = False
    ) -> Float[Array, " d"]:
        """Return the row that follows from this noise under an intervention.

        With `clip_to_range` every variable but the target stays within its range.
        """

    @property
    def size(self) -> int:
        """Return the number of columns, padding included."""
        return self.mask.shape[-1]

    @property
    def allowed(self) -> Bool[Array, "*batch d"]:
        """Return which variables may be set: all but padding and the target."""
        places = jnp.expand_dims(jnp.arange(self.size), range(self.target.ndim))
        return self.mask & (places != jnp.expand_dims(self.target, -1))


class SCM(AbstractSCM):
    """Parametric model: feature mechanisms over a graph, noise added to each.

    `adjacency[i, j]` holds when i causes j; `order` lists the variables, causes first.
    """

    adjacency: Bool[Array, "*batch d d"]
    order: Int[Array, "*batch d"]
    features: Features
    noise_scale: Float[Array, "*batch d"]
    noise_kind: Int[Array, "*batch d"]
    low: Float[Array, "*batch d"]
    high: Float[Array, "*batch d"]
    target: Int[Array, "*batch"]
    mask: Bool[Array, "*batch d"]

    def draw(self, key: PRNGKeyArray) -> Float[Array, " d"]:
        """Draw noise of unit variance for every variable."""
        return draw_noise(key, self.noise_kind)

    def respond(
        self,
        noise: Float[Array, " d"],
        intervention: Intervention,
        clip_to_range: bool = False,
    ) -> Float[Array, " d"]:
        """Sample ancestrally: each variable in turn from its causes and its noise."""
        # A scan over causal order with the whole row as carry: its shapes depend on
        # the bucket alone, so all graphs of a size share one program.
        places = jnp.arange(self.size)

        def settle(row: Float[Array, " d"], j: Int[Array, ""]):
            mean = self.features.of(j, row)
            spread = self.noise_scale[j] * noise_factor(self.noise_kind[j], mean)
            value = mean + spread * noise[j]
            value = intervention.scale[j] * value + intervention.shift[j]
            if clip_to_range:
                bounded = jnp.clip(value, self.low[j], self.high[j])
                value = jnp.where(j == self.target, value, bounded)
            # Last, so that what is set is neither shifted nor clipped.
            value = jnp.where(intervention.mask[j], intervention.values[j], value)
            return jnp.where((places == j) & self.mask, value, row), None

        return jax.lax.scan(settle, jnp.zeros(self.size), self.order)[0]


def sample_rows(
    key: PRNGKeyArray,
    scm: AbstractSCM,
    count: int,
    intervention: Intervention,
    clip_to_range: bool = False,
) -> Float[Array, "count d"]:
    """Sample rows under one intervention. The noise of row i depends on the key and i
    only, so two interventions with one key differ by their effect alone.
    """
    # A key for each row: the first rows do not change when more are asked for.
    noise = jax.vmap(scm.draw)(batch_keys(key, count))
    respond = lambda each: scm.respond(each, intervention, clip_to_range)
    return jax.vmap(respond)(noise)


def sample_each(
    key: PRNGKeyArray,
    scm: AbstractSCM,
    interventions: Intervention,
    clip_to_range: bool = False,
) -> Float[Array, "count d"]:
    """Sample one row for each of a stack of interventions."""
    count = interventions.mask.shape[0]
    noise = jax.vmap(scm.draw)(batch_keys(key, count))
    return jax.vmap(lambda e, i: scm.respond(e, i, clip_to_range))(noise, interventions)
