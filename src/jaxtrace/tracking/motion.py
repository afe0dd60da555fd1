"""Equations of motion: tracers that go with the flow, and particles with inertia."""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer as Traced
from jaxtyping import Array, Float

from jaxtrace.fields.analytic import number
from jaxtrace.integrators import Tableau, stability_limit
from jaxtrace.tracking.particles import Draw

Term = Callable[..., Any]
Velocity = Any  # (n, 3), or None where particles carry none


class AbstractMotion(eqx.Module):
    """How a particle moves in a given flow."""

    @property
    def has_velocity(self) -> bool:
        """Return whether particles carry a velocity of their own."""
        return False

    def check(self, dt: float, tableau: Tableau) -> None:
        """Raise if steps this long (negative: backward) cannot work."""
        del dt, tableau

    @abc.abstractmethod
    def rate(
        self, positions: Float[Array, "n 3"], own: Velocity, flow: Velocity, time: Array
    ) -> tuple[Float[Array, "n 3"], Velocity]:
        """Return the rates of change of positions and of particles' own velocities.

        `own` is None where particles carry no velocity, and so is its rate.
        """

    def walk(
        self,
        places: Float[Array, "n 3"],
        time: Array,
        dt: Array,
        draw: Draw,
        scale: Float[Array, "n 3"] | None = None,
    ) -> Float[Array, "n 3"] | None:
        """Return the random displacement of a step that ends at `time`, or None.

        `places` are the positions moved to where a repeating domain knows them; on a
        sphere `scale` is how many meters a unit of each coordinate is there.
        """
        del places, time, dt, draw, scale
        return None


class PassiveTracer(AbstractMotion):
    """Particles that go with the flow, and with whatever terms a user adds.

    A term is a JAX function `term(positions, t, velocity) -> (N, 3)`; its result is
    added to the velocity. The time is one number, or with adaptive steps one per
    particle (N,).
    """

    terms: tuple[Term, ...] = ()

    def rate(
        self, positions: Float[Array, "n 3"], own: Velocity, flow: Velocity, time: Array
    ) -> tuple[Float[Array, "n 3"], Velocity]:
        """Return the velocity of the flow and of every term."""
        return flow + _sum_terms(self.terms, positions, time, flow), None


def _sum_terms(
    terms: tuple[Term, ...], positions: Float[Array, "n 3"], *arguments: Array
) -> Float[Array, "n 3"]:
    """Return the sum of all terms, in the dtype of the positions."""
    added = jnp.zeros_like(positions)
    for term in terms:
        found = jnp.asarray(term(positions, *arguments), positions.dtype)
        if found.shape not in (positions.shape, positions.shape[1:], ()):
            name = getattr(term, "__qualname__", type(term).__name__)
            raise ValueError(
                f"the term {name} returned shape {found.shape} for positions of shape "
                f"{positions.shape}: return {positions.shape}"
            )
        added = added + jnp.broadcast_to(found, positions.shape)
    return added


class Inertial(AbstractMotion):
    """Heavy particles: x' = v, v' = (u - v) / response_time + gravity + terms.

    They start with the velocity of the flow, and so do those that enter later. A
    mirror turns the velocity round, a stop ends it, a period keeps it: whatever a
    boundary does to positions, its derivative does to the velocity. A term is a JAX
    function `term(positions, t, flow, velocity) -> (N, 3)` of the velocity of the flow
    and that of the particle; its result is an acceleration.

    Tracking is forward only: backward in time drag amplifies every error.
    """

    response_time: Float[Array | np.ndarray, ""] = eqx.field(converter=number)
    gravity: Float[Array | np.ndarray, "3"] = eqx.field(
        converter=number, default_factory=lambda: np.zeros(3)
    )
    terms: tuple[Term, ...] = ()

    def __check_init__(self) -> None:
        if self.response_time.shape != ():
            raise ValueError(
                f"response_time of shape {self.response_time.shape}: give one number "
                "for all particles"
            )
        if self.gravity.shape != (3,):
            raise ValueError(f"gravity of shape {self.gravity.shape}: give 3 numbers")
        known = _known(self.response_time)
        if known is not None and not (np.isfinite(known) and known > 0):
            raise ValueError(f"response_time {known:g}: give a time above 0")

    @property
    def has_velocity(self) -> bool:
        """Return True: particles carry their velocity."""
        return True

    def check(self, dt: float, tableau: Tableau) -> None:
        """Raise if drag would make steps this long grow without bound."""
        known = _known(self.response_time)
        if dt < 0:
            raise ValueError(
                f"dt={dt:g} tracks inertial particles backward in time, which is "
                "unstable because of drag: track them forward, or use passive tracers"
            )
        limit = stability_limit(tableau)
        if known is not None and dt > limit * known:
            raise ValueError(
                f"dt={dt:g} is unstable: with {tableau.name} and response_time "
                f"{known:g} steps must not exceed {limit * known:g}; use a "
                "smaller dt or adaptive steps"
            )

    def rate(
        self, positions: Float[Array, "n 3"], own: Velocity, flow: Velocity, time: Array
    ) -> tuple[Float[Array, "n 3"], Velocity]:
        """Return the velocities and accelerations of the particles."""
        dtype = positions.dtype
        # Maxey and Riley (1983) in the limit of particles much denser than the fluid:
        # Stokes drag and weight are what is left.
        drag = (flow - own) / jnp.asarray(self.response_time, dtype)
        weight = jnp.asarray(self.gravity, dtype)[None]
        return own, drag + weight + _sum_terms(self.terms, positions, time, flow, own)


def _known(value: Any) -> float | None:
    """Return a number, unless it is being traced."""
    return None if isinstance(value, Traced) else float(value)
