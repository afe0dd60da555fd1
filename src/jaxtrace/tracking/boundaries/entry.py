"""Where new particles start: on the inlet face, by lattice or chance, or anywhere."""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.random import threefry_2x32
from jaxtyping import Array, Float, UInt32

from jaxtrace.tracking.boundaries.function import probe
from jaxtrace.tracking.noise import Draw

# A width of the inlet is so many standard deviations of a gaussian entry.
DEVIATIONS = 6


class AbstractEntry(eqx.Module):
    """A rule for the first positions of new particles."""

    @abc.abstractmethod
    def positions(
        self, leaving: Float[Array, "n 3"], draw: Draw
    ) -> Float[Array, "n 3"]:
        """First positions, given those of the particles whose slots are used again."""


class PlaneEntry(AbstractEntry):
    """Entry on the inlet plane: keeps where a particle was on the face."""

    plane: Float[Array | np.ndarray, ""]
    axis: int = eqx.field(static=True)

    def positions(
        self, leaving: Float[Array, "n 3"], draw: Draw
    ) -> Float[Array, "n 3"]:
        """Positions on the plane exactly."""
        columns = [leaving[:, axis] for axis in range(3)]
        for axis, column in self.across(leaving, draw).items():
            columns[axis] = column
        plane = jnp.asarray(self.plane, leaving.dtype)
        columns[self.axis] = jnp.broadcast_to(plane, columns[self.axis].shape)
        return jnp.stack(columns, 1)

    def across(self, leaving: Float[Array, "n 3"], draw: Draw) -> dict[int, Array]:
        """New coordinates on the face, by axis."""
        del leaving, draw
        return {}


class GridEntry(PlaneEntry):
    """The nearest node of the face's lattice, so that the lattice survives."""

    lattices: dict[int, Float[Array | np.ndarray, " nodes"]]

    def across(self, leaving: Float[Array, "n 3"], draw: Draw) -> dict[int, Array]:
        """The closest lattice value along each axis."""
        del draw
        return {
            axis: nearest(leaving[:, axis], jnp.asarray(nodes, leaving.dtype))
            for axis, nodes in self.lattices.items()
        }


def nearest(x: Float[Array, " n"], nodes: Float[Array, " nodes"]) -> Array:
    """The closest of evenly spaced nodes, to the last bit."""
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
        """A draw along each axis of the face."""
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
        """What the generator answers."""
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
    """An entry by a function; one that needs NumPy arrays is called on the host."""
    on_host, shape = probe(generator)
    if shape != (2, 3):
        raise ValueError(
            f"inlet_particle_generator answered shape {shape} for 2 new particles: it "
            "is called with uniform numbers (N, 3) and returns positions (N, 3)"
        )
    return GeneratedEntry(generator, make_salt(seed), on_host)


def make_salt(seed: int) -> UInt32[np.ndarray, "2"]:
    """The words of a boundary's seed."""
    if not 0 <= seed < 2**64:
        raise ValueError(f"seed {seed}: give a whole number from 0 to 2**64 - 1")
    return np.array([seed >> 32, seed & 0xFFFFFFFF], np.uint32)


def salted(draw: Draw, salt: Any) -> Draw:
    """The dice of a boundary: those of the run, mixed with the boundary's own seed."""
    key = threefry_2x32(draw.key, jnp.asarray(salt))
    return Draw(key, draw.slots, draw.step)
