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
from jaxtrace.tracking.particles import Draw, Particles, move

Term = Callable[..., Any]


class AbstractMotion(eqx.Module):
    """The unknowns of a particle and their rate of change in a given flow."""

    @property
    def has_velocity(self) -> bool:
        """Return whether particles carry a velocity of their own."""
        return False

    def initial_velocity(
        self, velocity: Float[Array, "n 3"]
    ) -> Float[Array, "n 3"] | None:
        """Return the velocity of new particles where the flow has this one."""
        del velocity
        return None

    def check(self, dt: float, tableau: Tableau) -> None:
        """Raise if steps this long (negative: backward) cannot work."""
        del dt, tableau

    @abc.abstractmethod
    def unknowns(self, particles: Particles) -> Any:
        """Return what the integrator advances."""

    @abc.abstractmethod
    def positions(self, unknowns: Any) -> Float[Array, "n 3"]:
        """Return the positions among the unknowns."""

    @abc.abstractmethod
    def rate(self, unknowns: Any, velocity: Float[Array, "n 3"], time: Array) -> Any:
        """Return how the unknowns change where the flow has this velocity."""

    @abc.abstractmethod
    def update(self, particles: Particles, unknowns: Any) -> Particles:
        """Return the particles after a step."""

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

    def unknowns(self, particles: Particles) -> Float[Array, "n 3"]:
        """Return the positions."""
        return particles.positions

    def positions(self, unknowns: Float[Array, "n 3"]) -> Float[Array, "n 3"]:
        """Return the positions."""
        return unknowns

    def rate(
        self, unknowns: Float[Array, "n 3"], velocity: Float[Array, "n 3"], time: Array
    ) -> Float[Array, "n 3"]:
        """Return the velocity of the flow and of every term."""
        return velocity + _sum_terms(self.terms, unknowns, time, velocity)

    def update(self, particles: Particles, unknowns: Float[Array, "n 3"]) -> Particles:
        """Return the particles where the step ends."""
        return move(particles, unknowns)


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


Unknowns = tuple[Float[Array, "n 3"], Float[Array, "n 3"]]


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

    def initial_velocity(self, velocity: Float[Array, "n 3"]) -> Float[Array, "n 3"]:
        """Return the velocity of the flow."""
        return velocity

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

    def unknowns(self, particles: Particles) -> Unknowns:
        """Return positions and velocities."""
        return particles.positions, particles.velocity

    def positions(self, unknowns: Unknowns) -> Float[Array, "n 3"]:
        """Return the positions."""
        return unknowns[0]

    def rate(
        self, unknowns: Unknowns, velocity: Float[Array, "n 3"], time: Array
    ) -> Unknowns:
        """Return the velocities and accelerations of the particles."""
        positions, own = unknowns
        dtype = positions.dtype
        # Maxey and Riley (1983) in the limit of particles much denser than the fluid:
        # Stokes drag and weight are what is left.
        drag = (velocity - own) / jnp.asarray(self.response_time, dtype)
        weight = jnp.asarray(self.gravity, dtype)[None]
        terms = _sum_terms(self.terms, positions, time, velocity, own)
        return own, drag + weight + terms

    def update(self, particles: Particles, unknowns: Unknowns) -> Particles:
        """Return the particles where the step ends, with their velocity there."""
        positions, own = unknowns
        moved = move(particles, positions)
        kept = jnp.where(particles.alive[:, None], own, particles.velocity)
        return eqx.tree_at(lambda p: p.velocity, moved, kept)


def _known(value: Any) -> float | None:
    """Return a number, unless it is being traced."""
    return None if isinstance(value, Traced) else float(value)
