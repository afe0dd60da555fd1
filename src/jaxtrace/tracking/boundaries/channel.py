"""Channels: a box with an inlet face, an outlet face opposite, and mirrors around.

Newcomers start on the inlet face: on its lattice, by chance, or where a user says.
"""

import abc
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.random import threefry_2x32
from jaxtyping import Array, Float, UInt32

from jaxtrace.bounds import AXES, Box, axis_number, box_bounds
from jaxtrace.tracking.boundaries.base import (
    AbstractBoundary,
    StepContext,
    UserFunction,
    probe,
    reach,
)
from jaxtrace.tracking.boundaries.box import mirror_axis, wrap_axis
from jaxtrace.tracking.particles import (
    Draw,
    Flags,
    Particles,
    Scalars,
    Vectors,
    move,
    recycle,
    retire,
)
from jaxtrace.types import ParticleStatus, check_choice

DISTRIBUTIONS = ("uniform", "random", "gaussian", "grid")
# A width of the inlet is so many standard deviations of a gaussian entry.
DEVIATIONS = 6


class AbstractEntry(eqx.Module):
    """A rule for the first positions of new particles."""

    @abc.abstractmethod
    def positions(self, leaving: Vectors, draw: Draw) -> Vectors:
        """Return first positions, given those of the particles replaced."""


class FaceEntry(AbstractEntry):
    """Entry exactly on a plane, with new coordinates along the axes of its face."""

    plane: Float[Array | np.ndarray, ""]
    axis: int = eqx.field(static=True)

    @abc.abstractmethod
    def across(self, leaving: Vectors, draw: Draw) -> dict[int, Scalars]:
        """Return coordinates by axis."""

    def positions(self, leaving: Vectors, draw: Draw) -> Vectors:
        """Return places on the face."""
        across = self.across(leaving, draw)
        columns = [across.get(a, leaving[:, a]) for a in range(3)]
        columns[self.axis] = jnp.full_like(columns[self.axis], self.plane)
        return jnp.stack(columns, 1)


class GridEntry(FaceEntry):
    """The nearest node of the face's lattice, so that the lattice survives."""

    lattices: dict[int, Float[Array | np.ndarray, " nodes"]]

    def across(self, leaving: Vectors, draw: Draw) -> dict[int, Scalars]:
        """Return the closest of evenly spaced nodes, to the last bit."""
        found = {}
        for axis, lattice in self.lattices.items():
            nodes, last = jnp.asarray(lattice, leaving.dtype), len(lattice) - 1
            spacing = (nodes[-1] - nodes[0]) / max(last, 1)
            spacing = jnp.where(spacing > 0, spacing, jnp.ones_like(spacing))
            index = jnp.round((leaving[:, axis] - nodes[0]) / spacing)
            index = jnp.clip(index, 0, last).astype(np.int32)
            found[axis] = nodes.at[index].get(mode="clip")
        return found


class RandomEntry(FaceEntry):
    """Chance on the face: even, or normal about its middle and clipped to it."""

    lo: Float[Array | np.ndarray, "3"]
    hi: Float[Array | np.ndarray, "3"]
    salt: UInt32[Array | np.ndarray, "2"]
    face: tuple[int, ...] = eqx.field(static=True)
    gaussian: bool = eqx.field(static=True)

    def across(self, leaving: Vectors, draw: Draw) -> dict[int, Scalars]:
        """Return a draw along each axis of the face."""
        dtype, found = leaving.dtype, {}
        numbers = salted(draw, self.salt).uniform(0, dtype)
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

    generator: UserFunction
    salt: UInt32[Array | np.ndarray, "2"]

    def positions(self, leaving: Vectors, draw: Draw) -> Vectors:
        """Return what the generator answers."""
        dtype, dice = leaving.dtype, salted(draw, self.salt)
        parts = [dice.uniform(0, dtype), dice.uniform(1, dtype)[:, :1]]
        return self.generator(jnp.concatenate(parts, 1), leaving.shape)


def generated_entry(generator: Callable[[Any], Any], seed: int) -> GeneratedEntry:
    """Wrap a function as an entry; one that needs NumPy runs on the host."""
    rule = "it is called with uniform numbers (N, 3) and returns positions (N, 3)"
    try:
        function, shape = probe(generator)
    except TypeError as error:
        raise TypeError(f"inlet_particle_generator failed: {rule}") from error
    if shape != (2, 3):
        raise ValueError(
            f"inlet_particle_generator returned shape {shape} for 2 particles: {rule}"
        )
    return GeneratedEntry(function, make_salt(seed))


def make_salt(seed: int) -> UInt32[np.ndarray, "2"]:
    """Return the words of a boundary's seed."""
    if not 0 <= seed < 2**64:
        raise ValueError(f"seed {seed}: give a whole number from 0 to 2**64 - 1")
    return np.array([seed >> 32, seed & 0xFFFFFFFF], np.uint32)


def salted(draw: Draw, salt: Any) -> Draw:
    """Return the run's noise, mixed with the boundary's own seed."""
    key = threefry_2x32(draw.key, jnp.asarray(salt))
    return Draw(key, draw.slots, draw.step)


MakeEntry = Callable[[Box, int, bool], AbstractEntry]  # of box, axis and direction


def face_entry(distribution: str, concentrations: Any, seed: int) -> MakeEntry:
    """Return what makes entry on an inlet face, by lattice or by chance."""
    check_choice("inlet_distribution", distribution, DISTRIBUTIONS)

    def make(box: Box, axis: int, forward: bool) -> AbstractEntry:
        plane = np.asarray(box.lo[axis] if forward else box.hi[axis])
        face = tuple(a for a in range(3) if a != axis and box.active[a])
        if distribution == "grid":
            counts = lattice_counts(concentrations, face).items()
            nodes = {a: np.linspace(box.lo[a], box.hi[a], n) for a, n in counts}
            return GridEntry(plane, axis, nodes)
        gaussian = distribution == "gaussian"
        return RandomEntry(plane, axis, box.lo, box.hi, make_salt(seed), face, gaussian)

    return make


def lattice_counts(concentrations: Any, face: tuple[int, ...]) -> dict[int, int]:
    """Return how many lattice nodes lie along each axis of the inlet face."""
    names = ", ".join(repr(AXES[axis]) for axis in face)
    remedy = f"give counts per axis for {names}, as in {{'x': 60, 'y': 50, 'z': 15}}"
    if concentrations is None:
        raise ValueError(f"inlet_distribution 'grid' needs concentrations: {remedy}")
    if not isinstance(concentrations, Mapping):
        concentrations = dict(zip(AXES, concentrations, strict=False))
    counts = {}
    for axis in face:
        count = concentrations.get(AXES[axis])
        if count is None or int(count) != count or count < 1:
            found = f"{AXES[axis]}: {count!r}"
            raise ValueError(f"concentrations have {found}: {remedy}")
        counts[axis] = int(count)
    return counts


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

    def wrap(self, positions: Vectors) -> Vectors:
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

    def _beyond(self, x: Array, ends: _Ends, *, outlet: bool) -> Flags:
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

    def _fold(self, positions: Array, along: Array) -> Vectors:
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


OUTLETS = ("absorbing", "reflective", "periodic")
INLETS: dict[str, Rule] = {
    "continuous": "returning",
    "none": "absorbing",
    "reflective": "reflective",
    "periodic": "periodic",
}


def channel_ends(bounds: Any, axis: int, inlet: Any, outlet: Any) -> tuple[Box, bool]:
    """Return the box between inlet and outlet, and whether flow goes upwards.

    A plane is "min", "max" or a coordinate.
    """
    box = box_bounds(bounds)
    planes = []
    for name, plane in (("inlet", inlet), ("outlet", outlet)):
        if plane in ("min", "max"):
            plane = box.lo[axis] if plane == "min" else box.hi[axis]
        elif isinstance(plane, str) or not np.isfinite(plane):
            raise ValueError(f"{name} {plane!r}: give 'min', 'max' or a coordinate")
        planes.append(float(plane))
    if planes[0] == planes[1]:
        raise ValueError(
            f"inlet and outlet are both at {AXES[axis]} = {planes[0]:g}: a channel has "
            "a length along its flow axis"
        )
    lo, hi, active = box.lo.copy(), box.hi.copy(), box.active.copy()
    lo[axis], hi[axis], active[axis] = min(planes), max(planes), True
    return Box(lo, hi, active), planes[0] < planes[1]


def make_channel(
    bounds: Any,
    flow_axis: Any,
    planes: tuple[Any, Any],
    inlet: Rule,
    outlet: Rule,
    entry: MakeEntry | None = None,
) -> ChannelBoundary:
    """Return a channel between two planes with rules at its ends.

    `entry(box, axis, forward)` makes what says where newcomers start.
    """
    axis = axis_number(flow_axis)
    box, forward = channel_ends(bounds, axis, *planes)
    mirrors = tuple(a for a in range(3) if a != axis and box.active[a])
    newcomers = None if entry is None else entry(box, axis, forward)
    return ChannelBoundary(
        box.lo, box.hi, newcomers, axis, forward, inlet, outlet, mirrors
    )


def direction(flow_direction: str) -> tuple[str, str]:
    """Return the ends of the box that are inlet and outlet."""
    ends = {"positive": ("min", "max"), "negative": ("max", "min")}
    check_choice("flow_direction", flow_direction, ends)
    return ends[flow_direction]


def channel_boundary(
    bounds: Any,
    flow_axis: Any = "x",
    inlet: str = "continuous",
    outlet: str = "absorbing",
    *,
    flow_direction: str = "positive",
    inlet_distribution: str = "grid",
    concentrations: Any = None,
    seed: int = 0,
) -> ChannelBoundary:
    """Return a channel by the rules of its ends, as case files name them.

    - inlet "continuous": newcomers take the slots of those whom an absorbing outlet
      takes; who is pushed back goes on a little inside
    - inlet "none": nobody enters; who is pushed back is absorbed
    - outlet "absorbing": who leaves has exited
    - either "reflective": a mirror
    - either "periodic": a particle beyond this end goes on from the other
    """
    check_choice("inlet", inlet, INLETS)
    check_choice("outlet", outlet, OUTLETS)
    planes = direction(flow_direction)
    if (inlet, outlet) == ("continuous", "absorbing"):
        entry = face_entry(inlet_distribution, concentrations, seed)
        ends = INLETS[inlet], cast(Rule, "recycling")
        return make_channel(bounds, flow_axis, planes, *ends, entry)
    return make_channel(bounds, flow_axis, planes, INLETS[inlet], cast(Rule, outlet))


def continuous_inlet_boundary_factory(
    bounds: Any = None,
    flow_axis: str | int = "x",
    flow_direction: str = "positive",
    inlet_distribution: str | None = None,
    concentrations: Any = None,
    *,
    seed: int = 0,
    inlet_position: float | str | None = None,
    outlet_position: float | str | None = None,
    domain_bounds: Any = None,
) -> ChannelBoundary:
    """Return a channel that replaces leaving particles by new ones at the inlet.

    New particles start on the inlet plane: `grid` (at the lattice value nearest to the
    old one; `concentrations` are counts per axis), `uniform` or `random`, or
    `gaussian`. Without a distribution it is `grid` if there are concentrations and
    `uniform` if not. `inlet_position` and `outlet_position` move the ends of the
    channel and decide the direction. `domain_bounds` is another name for `bounds`.
    """
    if (bounds is None) == (domain_bounds is None):
        raise TypeError("give the box of the channel once, as bounds or domain_bounds")
    bounds = domain_bounds if bounds is None else bounds
    inlet, outlet = direction(flow_direction)
    if inlet_distribution is None:
        inlet_distribution = "uniform" if concentrations is None else "grid"
    planes = (
        inlet if inlet_position is None else inlet_position,
        outlet if outlet_position is None else outlet_position,
    )
    entry = face_entry(inlet_distribution, concentrations, seed)
    return make_channel(bounds, flow_axis, planes, "returning", "recycling", entry)


def inlet_outlet_boundary_factory(
    bounds: Any,
    inlet_axis: str | int = "x",
    inlet_position: float | str = "min",
    outlet_position: float | str = "max",
    inlet_particle_generator: Callable[[Any], Any] | None = None,
    *,
    seed: int = 0,
) -> ChannelBoundary:
    """Return a channel that particles leave: exited or, at the inlet, absorbed.

    With a generator every slot that gets free is used again: it is called with uniform
    numbers (N, 3) in [0, 1), one row per slot, and answers first positions (N, 3).
    """
    generator, planes = inlet_particle_generator, (inlet_position, outlet_position)
    entry = None if generator is None else generated_entry(generator, seed)
    newcomers = None if entry is None else (lambda *_: entry)
    return make_channel(bounds, inlet_axis, planes, "absorbing", "absorbing", newcomers)


def flow_through_boundary_factory(
    bounds: Any,
    flow_axis: str | int = "x",
    flow_direction: str = "positive",
    *,
    seed: int = 0,
) -> ChannelBoundary:
    """Return a channel whose exits re-enter at the inlet; backflow mirrors."""
    planes, entry = direction(flow_direction), face_entry("uniform", None, seed)
    return make_channel(bounds, flow_axis, planes, "reflective", "recycling", entry)
