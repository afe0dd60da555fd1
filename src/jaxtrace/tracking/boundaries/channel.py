"""Channels: a box with an inlet face, an outlet face opposite, and mirrors around."""

from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jaxtrace.tracking.boundaries.base import AbstractBoundary, Passage, reach
from jaxtrace.tracking.boundaries.box import mirror_axis, wrap_axis
from jaxtrace.tracking.boundaries.entry import AbstractEntry
from jaxtrace.tracking.particles import Particles, move, renew, retire
from jaxtrace.types import ParticleStatus

Rule = Literal["absorbing", "reflective", "periodic", "returning", "recycling"]

# How far inside the inlet a particle that was pushed back through it goes on, as a
# fraction of the channel's length.
SETBACK = 0.001


class _Ends(NamedTuple):
    """The planes of the flow axis: low and high, and of these the inlet's."""

    lo: Array
    hi: Array
    inlet: Array
    outlet: Array


class ChannelBoundary(AbstractBoundary):
    """A rule for each end of the flow axis; the other axes mirror.

    Absorbing ends take particles out of the run: through the outlet they have exited,
    back through the inlet they are absorbed. A returning inlet puts them a little
    inside, and a recycling outlet starts a new particle in the slot of the one that
    left. `entry` says where new particles start; it is None where none do.
    """

    lo: Float[Array | np.ndarray, "3"]
    hi: Float[Array | np.ndarray, "3"]
    entry: AbstractEntry | None
    axis: int = eqx.field(static=True)
    forward: bool = eqx.field(static=True)
    inlet: Rule = eqx.field(static=True)
    outlet: Rule = eqx.field(static=True)
    mirrors: tuple[int, ...] = eqx.field(static=True)

    def apply(self, particles: Particles, passage: Passage) -> Particles:
        """Send particles back at the ends, or out of the channel, or in again."""
        raw = particles.positions
        ends = self._ends(raw.dtype)
        along = self._turn(raw[:, self.axis], ends)
        exits = self._beyond(along, ends, outlet=True) & particles.alive
        backs = self._beyond(along, ends, outlet=False) & particles.alive
        if self.inlet == "returning":
            inside = ends.inlet + SETBACK * (ends.outlet - ends.inlet)
            along = jnp.where(backs, inside, along)
        folded = self._fold(raw, along)
        if "absorbing" in (self.inlet, self.outlet) and self.entry is None:
            particles = self._release(particles, passage, exits, backs)
        particles = move(particles, folded)
        if self.entry is None:
            return particles
        fresh = exits | backs if self.inlet == "absorbing" else exits
        return renew(particles, fresh, self.entry.positions(folded, passage.draw))

    def wrap(self, positions: Float[Array, "n 3"]) -> Float[Array, "n 3"]:
        """Stage points beyond repeating ends, moved into the channel."""
        if "periodic" not in (self.inlet, self.outlet):
            return positions
        columns = [positions[:, axis] for axis in range(3)]
        ends = self._ends(positions.dtype)
        columns[self.axis] = self._repeat(columns[self.axis], ends)
        return jnp.stack(columns, 1)

    @property
    def period(self) -> tuple[float, float, float]:
        """The length of the channel, if an end repeats."""
        lengths = [0.0, 0.0, 0.0]
        if "periodic" in (self.inlet, self.outlet):
            lengths[self.axis] = float(self.hi[self.axis] - self.lo[self.axis])
        return lengths[0], lengths[1], lengths[2]

    @property
    def recycles(self) -> bool:
        """Whether new particles enter."""
        return self.entry is not None

    def _ends(self, dtype: Any) -> _Ends:
        lo, hi = (jnp.asarray(e[self.axis], dtype) for e in (self.lo, self.hi))
        return _Ends(lo, hi, *((lo, hi) if self.forward else (hi, lo)))

    def _beyond(self, x: Array, ends: _Ends, *, outlet: bool) -> Bool[Array, " n"]:
        return x > ends.hi if outlet == self.forward else x < ends.lo

    def _rules(self) -> tuple[Rule, Rule]:
        """The rules of the low and the high end."""
        pair = (self.inlet, self.outlet)
        return pair if self.forward else (pair[1], pair[0])

    def _turn(self, x: Array, ends: _Ends) -> Array:
        """Flow coordinates after mirrors and repetition; what leaves stays outside."""
        low, high = self._rules()
        if (low, high) == ("reflective", "reflective"):
            return mirror_axis(x, ends.lo, ends.hi)
        if low == "reflective":
            x = jnp.where(x < ends.lo, ends.lo + (ends.lo - x), x)
        if high == "reflective":
            x = jnp.where(x > ends.hi, ends.hi - (x - ends.hi), x)
        return self._repeat(x, ends)

    def _repeat(self, x: Array, ends: _Ends) -> Array:
        low, high = self._rules()
        moved = wrap_axis(x, ends.lo, ends.hi)
        if low == "periodic":
            x = jnp.where(x < ends.lo, moved, x)
        if high == "periodic":
            x = jnp.where(x >= ends.hi, moved, x)
        return x

    def _fold(self, positions: Array, along: Array) -> Float[Array, "n 3"]:
        """Positions with the other axes mirrored and the flow axis as given."""
        columns = [positions[:, axis] for axis in range(3)]
        for axis in self.mirrors:
            lo, hi = (jnp.asarray(e[axis], along.dtype) for e in (self.lo, self.hi))
            columns[axis] = mirror_axis(columns[axis], lo, hi)
        columns[self.axis] = along
        return jnp.stack(columns, 1)

    def _release(
        self, particles: Particles, passage: Passage, exits: Array, backs: Array
    ) -> Particles:
        """Retire those who left, on the plane they left through."""
        raw = particles.positions
        ends = self._ends(raw.dtype)
        ways = (
            (self.outlet, exits, ParticleStatus.EXITED, ends.outlet),
            (self.inlet, backs, ParticleStatus.ABSORBED, ends.inlet),
        )
        for rule, gone, status, face in ways:
            if rule != "absorbing":
                continue
            before, after = passage.before[:, self.axis], raw[:, self.axis]
            fraction = reach(before, after, self._plane(after, face, ends))
            there = passage.before + fraction[:, None] * (raw - passage.before)
            where = self._fold(there, jnp.broadcast_to(face, after.shape))
            when = passage.instant(fraction)
            particles = retire(particles, gone, status, where, when)
        return particles

    def _plane(self, after: Array, face: Array, ends: _Ends) -> Array:
        """A face, or its image in the mirror that a straight path passes first."""
        low, high = self._rules()
        if low == "reflective":
            return jnp.where(after < ends.lo, 2 * ends.lo - face, face)
        if high == "reflective":
            return jnp.where(after > ends.hi, 2 * ends.hi - face, face)
        return face
