"""How particles follow the flow: what is integrated, and what chance adds."""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxtrace.integrators.tableau import Tableau
from jaxtrace.tracking.noise import Draw
from jaxtrace.tracking.particles import Particles, move

Term = Callable[..., Any]


class AbstractMotion(eqx.Module):
    """The unknowns of a particle and their rate of change in a given flow."""

    @property
    def carries(self) -> bool:
        """Whether particles carry a velocity of their own."""
        return False

    def begin(self, velocity: Float[Array, "n 3"]) -> Float[Array, "n 3"] | None:
        """The own velocity of new particles where the flow has this one."""
        del velocity
        return None

    def check(self, dt: float, tableau: Tableau) -> None:
        """Raise if steps this long (negative: backward) cannot work."""
        del dt, tableau

    @abc.abstractmethod
    def unknowns(self, particles: Particles) -> Any:
        """What the integrator advances."""

    @abc.abstractmethod
    def places(self, unknowns: Any) -> Float[Array, "n 3"]:
        """The positions among the unknowns."""

    @abc.abstractmethod
    def rate(self, unknowns: Any, velocity: Float[Array, "n 3"], time: Array) -> Any:
        """How the unknowns change where the flow has this velocity."""

    @abc.abstractmethod
    def settle(self, particles: Particles, unknowns: Any) -> Particles:
        """The particles after a step."""

    def scatter(
        self,
        particles: Particles,
        places: Float[Array, "n 3"],
        time: Array,
        dt: Array,
        draw: Draw,
    ) -> Particles:
        """The random part of a step that ends at `time`.

        `places` are the positions moved to where a repeating domain knows them.
        """
        del places, time, dt, draw
        return particles


class Tracer(AbstractMotion):
    """Particles that go with the flow, and with whatever terms a user adds.

    A term is a JAX function `term(positions, t, velocity) -> (N, 3)`; its result is
    added to the velocity. The time is one number, or with adaptive steps one per
    particle (N,).
    """

    terms: tuple[Term, ...] = ()

    def unknowns(self, particles: Particles) -> Float[Array, "n 3"]:
        """The positions."""
        return particles.positions

    def places(self, unknowns: Float[Array, "n 3"]) -> Float[Array, "n 3"]:
        """The positions."""
        return unknowns

    def rate(
        self, unknowns: Float[Array, "n 3"], velocity: Float[Array, "n 3"], time: Array
    ) -> Float[Array, "n 3"]:
        """The velocity of the flow and of every term."""
        return velocity + total(self.terms, unknowns, time, velocity)

    def settle(self, particles: Particles, unknowns: Float[Array, "n 3"]) -> Particles:
        """The particles where the step ends."""
        return move(particles, unknowns)


def total(
    terms: tuple[Term, ...], positions: Float[Array, "n 3"], *arguments: Array
) -> Float[Array, "n 3"]:
    """The sum of all terms, in the dtype of the positions."""
    added = jnp.zeros_like(positions)
    for term in terms:
        found = jnp.asarray(term(positions, *arguments), positions.dtype)
        if found.shape not in (positions.shape, positions.shape[1:], ()):
            name = getattr(term, "__qualname__", type(term).__name__)
            raise ValueError(
                f"the term {name} answered shape {found.shape} for positions of shape "
                f"{positions.shape}: return {positions.shape}"
            )
        added = added + jnp.broadcast_to(found, positions.shape)
    return added
