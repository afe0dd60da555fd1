"""Channels: a box with an inlet face, an outlet face opposite, and mirrors around."""

import abc
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.random import threefry_2x32
from jaxtyping import Array, Bool, Float, UInt32

from jaxtrace.tracking.boundaries.base import (
    AbstractBoundary,
    StepContext,
    probe,
    reach,
)
from jaxtrace.tracking.boundaries.box import mirror_axis, wrap_axis
from jaxtrace.tracking.particles import Draw, Particles, move, recycle, retire
from jaxtrace.types import ParticleStatus

# A width of the inlet is so many standard deviations of a gaussian entry.
DEVIATIONS = 6


class AbstractEntry(eqx.Module):
    """A rule for the first positions of new particles."""

    @abc.abstractmethod
    def positions(
        self, leaving: Float[Array, "n 3"], draw: Draw
    ) -> Float[Array, "n 3"]:
        """Return first positions, given those of the particles replaced."""


class PlaneEntry(AbstractEntry):
    """Entry on the inlet plane: keeps where a particle was on the face."""

    plane: Float[Array | np.ndarray, ""]
    axis: int = eqx.field(static=True)

    def positions(
        self, leaving: Float[Array, "n 3"], draw: Draw
    ) -> Float[Array, "n 3"]:
        """Return positions on the plane exactly."""
        columns = [leaving[:, axis] for axis in range(3)]
        for axis, column in self.across(leaving, draw).items():
            columns[axis] = column
        plane = jnp.asarray(self.plane, leaving.dtype)
        columns[self.axis] = jnp.broadcast_to(plane, columns[self.axis].shape)
        return jnp.stack(columns, 1)

    def across(self, leaving: Float[Array, "n 3"], draw: Draw) -> dict[int, Array]:
        """Return new coordinates on the face, by axis."""
        del leaving, draw
        return {}


class GridEntry(PlaneEntry):
    """The nearest node of the face's lattice, so that the lattice survives."""

    lattices: dict[int, Float[Array | np.ndarray, " nodes"]]

    def across(self, leaving: Float[Array, "n 3"], draw: Draw) -> dict[int, Array]:
        """Return the closest lattice value along each axis."""
        del draw
        return {
            axis: nearest(leaving[:, axis], jnp.asarray(nodes, leaving.dtype))
            for axis, nodes in self.lattices.items()
        }


def nearest(x: Float[Array, " n"], nodes: Float[Array, " nodes"]) -> Array:
    """Return the closest of evenly spaced nodes, to the last bit."""
    last = nodes.shape[0] - 1
    spacing = (nodes[-1] - nodes[0]) / max(last, 1)
    spacing = jnp.where(spacing > 0, spacing, jnp.ones_like(spacing))
    index = jnp.clip(jnp.round((x - nodes[0]) / spacing), 0, last)
    return nodes.at[index.astype(np.int32)].get(mode="clip")


class RandomEntry(PlaneEntry):
    """Chance on the face: even, or normal about its middle and clipped to it."""

    lo: Float[Array | np.ndarray, "3"]
    hi: Float[Array | np.ndarray, "3"]
    salt: UInt32[Array | np.ndarray, "2"]
    face: tuple[int, ...] = eqx.field(static=True)
    gaussian: bool = eqx.field(static=True)

    def across(self, leaving: Float[Array, "n 3"], draw: Draw) -> dict[int, Array]:
        """Return a draw along each axis of the face."""
        dtype = leaving.dtype
        numbers = salted(draw, self.salt).uniform(0, dtype)
        found = {}
        for column, axis in enumerate(self.face):
            lo, hi = (jnp.asarray(e[axis], dtype) for e in (self.lo, self.hi))
            share = numbers[:, column]
            if self.gaussian:
                normal = 2**0.5 * jax.lax.erf_inv(2 * share - 1)
                share = 0.5 + normal / DEVIATIONS
            found[axis] = jnp.clip(lo + share * (hi - lo), lo, hi)
        return found


class GeneratedEntry(AbstractEntry):
    """Positions that a user's function makes of uniform numbers.

    `generator(numbers)` gets an array (N, 3) of numbers in [0, 1), one row per slot,
    and answers N positions (N, 3). The numbers follow from the seed, the slot and the
    step, so results do not depend on batches or devices.
    """

    generator: Callable[[Any], Any]
    salt: UInt32[Array | np.ndarray, "2"]
    on_host: bool = eqx.field(static=True)

    def positions(
        self, leaving: Float[Array, "n 3"], draw: Draw
    ) -> Float[Array, "n 3"]:
        """Return what the generator answers."""
        dtype, dice = leaving.dtype, salted(draw, self.salt)
        parts = [dice.uniform(0, dtype), dice.uniform(1, dtype)[:, :1]]
        numbers = jnp.concatenate(parts, 1)
        if not self.on_host:
            return jnp.asarray(self.generator(numbers), dtype).reshape(leaving.shape)

        def call(numbers: Any) -> np.ndarray:
            found = np.asarray(self.generator(np.array(numbers)), numbers.dtype)
            return found.reshape(numbers.shape)

        shape = jax.ShapeDtypeStruct(leaving.shape, dtype)
        return jax.pure_callback(call, shape, numbers)


def generated_entry(generator: Callable[[Any], Any], seed: int) -> GeneratedEntry:
    """Wrap a function as an entry; one that needs NumPy runs on the host."""
    on_host, shape = probe(generator)
    if shape != (2, 3):
        raise ValueError(
            f"inlet_particle_generator returned shape {shape} for 2 new particles: it "
            "is called with uniform numbers (N, 3) and returns positions (N, 3)"
        )
    return GeneratedEntry(generator, make_salt(seed), on_host)


def make_salt(seed: int) -> UInt32[np.ndarray, "2"]:
    """Return the words of a boundary's seed."""
    if not 0 <= seed < 2**64:
        raise ValueError(f"seed {seed}: give a whole number from 0 to 2**64 - 1")
    return np.array([seed >> 32, seed & 0xFFFFFFFF], np.uint32)


def salted(draw: Draw, salt: Any) -> Draw:
    """Return the run's noise, mixed with the boundary's own seed."""
    key = threefry_2x32(draw.key, jnp.asarray(salt))
    return Draw(key, draw.slots, draw.step)


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

    def apply(self, particles: Particles, context: StepContext) -> Particles:
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
            particles = self._release(particles, context, exits, backs)
        particles = move(particles, folded)
        if self.entry is None:
            return particles
        fresh = exits | backs if self.inlet == "absorbing" else exits
        return recycle(particles, fresh, self.entry.positions(folded, context.draw))

    def wrap(self, positions: Float[Array, "n 3"]) -> Float[Array, "n 3"]:
        """Return stage points beyond repeating ends, moved into the channel."""
        if "periodic" not in (self.inlet, self.outlet):
            return positions
        columns = [positions[:, axis] for axis in range(3)]
        ends = self._ends(positions.dtype)
        columns[self.axis] = self._repeat(columns[self.axis], ends)
        return jnp.stack(columns, 1)

    @property
    def period(self) -> tuple[float, float, float]:
        """Return the length of the channel, if an end repeats."""
        lengths = [0.0, 0.0, 0.0]
        if "periodic" in (self.inlet, self.outlet):
            lengths[self.axis] = float(self.hi[self.axis] - self.lo[self.axis])
        return lengths[0], lengths[1], lengths[2]

    @property
    def recycles(self) -> bool:
        """Return whether new particles enter."""
        return self.entry is not None

    def _ends(self, dtype: Any) -> _Ends:
        lo, hi = (jnp.asarray(e[self.axis], dtype) for e in (self.lo, self.hi))
        return _Ends(lo, hi, *((lo, hi) if self.forward else (hi, lo)))

    def _beyond(self, x: Array, ends: _Ends, *, outlet: bool) -> Bool[Array, " n"]:
        return x > ends.hi if outlet == self.forward else x < ends.lo

    def _rules(self) -> tuple[Rule, Rule]:
        """Return the rules of the low and the high end."""
        pair = (self.inlet, self.outlet)
        return pair if self.forward else (pair[1], pair[0])

    def _turn(self, x: Array, ends: _Ends) -> Array:
        """Return flow coordinates after mirrors and periods, exits outside."""
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
        """Return positions with the other axes mirrored and the flow axis as given."""
        columns = [positions[:, axis] for axis in range(3)]
        for axis in self.mirrors:
            lo, hi = (jnp.asarray(e[axis], along.dtype) for e in (self.lo, self.hi))
            columns[axis] = mirror_axis(columns[axis], lo, hi)
        columns[self.axis] = along
        return jnp.stack(columns, 1)

    def _release(
        self, particles: Particles, context: StepContext, exits: Array, backs: Array
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
            before, after = context.before[:, self.axis], raw[:, self.axis]
            fraction = reach(before, after, self._plane(after, face, ends))
            there = context.before + fraction[:, None] * (raw - context.before)
            where = self._fold(there, jnp.broadcast_to(face, after.shape))
            when = context.time_at(fraction)
            particles = retire(particles, gone, status, where, when)
        return particles

    def _plane(self, after: Array, face: Array, ends: _Ends) -> Array:
        """Return a face, or its image in the mirror that a path meets first."""
        low, high = self._rules()
        if low == "reflective":
            return jnp.where(after < ends.lo, 2 * ends.lo - face, face)
        if high == "reflective":
            return jnp.where(after > ends.hi, 2 * ends.hi - face, face)
        return face
