"""Entry of new particles into a channel: where on the inlet face they start."""

import abc
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.random import threefry_2x32
from jaxtyping import Array, Float, UInt32

from jaxtrace.bounds import AXES, Box
from jaxtrace.tracking.boundaries.base import UserFunction, probe
from jaxtrace.tracking.particles import Draw, Scalars, Vectors
from jaxtrace.types import check_choice

DISTRIBUTIONS = ("uniform", "random", "gaussian", "grid")
# A width of the inlet is so many standard deviations of a gaussian entry.
DEVIATIONS = 6


class AbstractEntry(eqx.Module):
    """A rule for the first positions of new particles."""

    @abc.abstractmethod
    def positions(self, leaving: Vectors, draw: Draw) -> Vectors:
        """Return first positions, given those of the particles replaced."""


def on_plane(
    leaving: Vectors, axis: int, plane: Any, across: dict[int, Array]
) -> Vectors:
    """Return positions exactly on a plane, with new coordinates along some axes."""
    columns = [across.get(a, leaving[:, a]) for a in range(3)]
    columns[axis] = jnp.full_like(columns[axis], plane)
    return jnp.stack(columns, 1)


class GridEntry(AbstractEntry):
    """The nearest node of the face's lattice, so that the lattice survives."""

    plane: Float[Array | np.ndarray, ""]
    axis: int = eqx.field(static=True)
    lattices: dict[int, Float[Array | np.ndarray, " nodes"]]

    def positions(self, leaving: Vectors, draw: Draw) -> Vectors:
        """Return the closest lattice value along each axis."""
        del draw
        across = {
            axis: nearest(leaving[:, axis], jnp.asarray(nodes, leaving.dtype))
            for axis, nodes in self.lattices.items()
        }
        return on_plane(leaving, self.axis, self.plane, across)


def nearest(x: Scalars, nodes: Float[Array, " nodes"]) -> Array:
    """Return the closest of evenly spaced nodes, to the last bit."""
    last = nodes.shape[0] - 1
    spacing = (nodes[-1] - nodes[0]) / max(last, 1)
    spacing = jnp.where(spacing > 0, spacing, jnp.ones_like(spacing))
    index = jnp.clip(jnp.round((x - nodes[0]) / spacing), 0, last)
    return nodes.at[index.astype(np.int32)].get(mode="clip")


class RandomEntry(AbstractEntry):
    """Chance on the face: even, or normal about its middle and clipped to it."""

    plane: Float[Array | np.ndarray, ""]
    axis: int = eqx.field(static=True)
    lo: Float[Array | np.ndarray, "3"]
    hi: Float[Array | np.ndarray, "3"]
    salt: UInt32[Array | np.ndarray, "2"]
    face: tuple[int, ...] = eqx.field(static=True)
    gaussian: bool = eqx.field(static=True)

    def positions(self, leaving: Vectors, draw: Draw) -> Vectors:
        """Return a draw along each axis of the face."""
        dtype = leaving.dtype
        numbers = salted(draw, self.salt).uniform(0, dtype)
        across = {}
        for column, axis in enumerate(self.face):
            lo, hi = (jnp.asarray(e[axis], dtype) for e in (self.lo, self.hi))
            share = numbers[:, column]
            if self.gaussian:
                normal = 2**0.5 * jax.lax.erf_inv(2 * share - 1)
                share = 0.5 + normal / DEVIATIONS
            across[axis] = jnp.clip(lo + share * (hi - lo), lo, hi)
        return on_plane(leaving, self.axis, self.plane, across)


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


def face_entry(
    box: Box,
    axis: int,
    forward: bool,
    distribution: str,
    concentrations: Any,
    seed: int,
) -> AbstractEntry:
    """Return entry on the inlet face of a channel, by lattice or by chance."""
    check_choice("inlet_distribution", distribution, DISTRIBUTIONS)
    plane = np.asarray(box.lo[axis] if forward else box.hi[axis])
    face = tuple(a for a in range(3) if a != axis and box.active[a])
    if distribution == "grid":
        counts = lattice_counts(concentrations, face)
        lattices = {a: np.linspace(box.lo[a], box.hi[a], n) for a, n in counts.items()}
        return GridEntry(plane, axis, lattices)
    gaussian = distribution == "gaussian"
    return RandomEntry(plane, axis, box.lo, box.hi, make_salt(seed), face, gaussian)


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
