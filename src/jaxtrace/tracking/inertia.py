"""Particles with inertia: drag pulls their own velocity towards that of the flow."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from jaxtrace.fields.analytic import number
from jaxtrace.integrators.tableau import Tableau, stability_limit
from jaxtrace.tracking.motion import AbstractMotion, Term, total
from jaxtrace.tracking.particles import Particles, move

Unknowns = tuple[Float[Array, "n 3"], Float[Array, "n 3"]]


def _resting() -> Float[np.ndarray, "3"]:
    return np.zeros(3)


class Inertial(AbstractMotion):
    """Heavy particles: x' = v, v' = (u - v) / response_time + gravity + terms.

    They start with the velocity of the flow, and so do those that enter later. A
    mirror turns the velocity round, a stop ends it, a period keeps it: whatever a
    boundary does to positions, its derivative does to the velocity. A term is a JAX
    function `term(positions, t, velocity, own) -> (N, 3)` of the velocity of the flow
    and the particle's own; its result is an acceleration.

    Tracking is forward only: backward in time drag feeds every error.
    """

    response_time: Float[Array | np.ndarray, ""] = eqx.field(converter=number)
    gravity: Float[Array | np.ndarray, "3"] = eqx.field(
        converter=number, default_factory=_resting
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
    def carries(self) -> bool:
        """Particles carry their velocity."""
        return True

    def begin(self, velocity: Float[Array, "n 3"]) -> Float[Array, "n 3"]:
        """The velocity of the flow."""
        return velocity

    def check(self, dt: float, tableau: Tableau) -> None:
        """Raise if drag would make steps this long grow without bound."""
        known = _known(self.response_time)
        if dt < 0:
            raise ValueError(
                f"dt={dt:g} tracks heavy particles backward, where drag makes errors "
                "grow: track them forward, or track tracers"
            )
        limit = stability_limit(tableau)
        if known is not None and dt > limit * known:
            raise ValueError(
                f"dt={dt:g} is unstable: with {tableau.name} and response_time "
                f"{known:g} steps must not exceed {limit * known:g}; take more "
                "substeps (a smaller dt) or adaptive ones"
            )

    def unknowns(self, particles: Particles) -> Unknowns:
        """Positions and velocities."""
        return particles.positions, particles.own

    def places(self, unknowns: Unknowns) -> Float[Array, "n 3"]:
        """The positions."""
        return unknowns[0]

    def rate(
        self, unknowns: Unknowns, velocity: Float[Array, "n 3"], time: Array
    ) -> Unknowns:
        """The particles' velocities and accelerations."""
        positions, own = unknowns
        dtype = positions.dtype
        drag = (velocity - own) / jnp.asarray(self.response_time, dtype)
        pull = jnp.asarray(self.gravity, dtype)[None]
        return own, drag + pull + total(self.terms, positions, time, velocity, own)

    def settle(self, particles: Particles, unknowns: Unknowns) -> Particles:
        """The particles where the step ends, with their velocity there."""
        positions, own = unknowns
        moved = move(particles, positions)
        kept = jnp.where(particles.alive[:, None], own, particles.own)
        return eqx.tree_at(lambda p: p.own, moved, kept)


def _known(value: Any) -> float | None:
    """A number, unless it is being traced."""
    return None if isinstance(value, Tracer) else float(value)
