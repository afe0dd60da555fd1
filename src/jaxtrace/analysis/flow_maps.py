"""The flow map - where particles end that start here - and its exact gradient.

The gradient is the forward-mode derivative of the very steps that particles take, so
neighboring seeds are not needed and no distance has to be chosen.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxrig import compile_once
from jaxrig.batching import is_out_of_memory
from jaxtrace.analysis.advection import Advection, count_steps
from jaxtrace.config import WORKSPACE_FACTOR, memory_budget_bytes
from jaxtrace.fields.base import as_positions
from jaxtrace.fields.function import HostField
from jaxtrace.tracking.particles import Particles
from jaxtrace.tracking.run import Windows, begin
from jaxtrace.tracking.schedule import Schedule, make_schedule
from jaxtrace.tracking.simulate import advance, first_moment, make_world
from jaxtrace.tracking.step import Method, World

STEPS_PER_CALL = 64  # of the compiled program, which serves any number of steps

Tangents = Float[Array, "directions n 3"]


class Carried(NamedTuple):
    """Particles by their first and last row, where they end, and the gradient there.

    `gradient[:, i, j]` is how the end moves along axis i with the seed's coordinate j.
    """

    start: int
    stop: int
    positions: Float[np.ndarray, "n 3"]
    gradient: Float[np.ndarray, "n 3 directions"]


def flow_map(
    field: Any, seeds: Any, t0: float, T: float, **options: Any
) -> Float[np.ndarray, "n 3"]:
    """Where particles from seeds (N, 2 or 3) at time t0 are at t0 + T.

    `options` are those of `Advection`. NaN marks particles that left or were recycled.
    """
    parts = list(carry(field, seeds, t0, T, 0, Advection(**options)))
    return np.concatenate([part.positions for part in parts])


def flow_map_gradient(
    field: Any, seeds: Any, t0: float, T: float, *, dimensions: int = 3, **options: Any
) -> Float[np.ndarray, "n 3 dimensions"]:
    """How the ends of paths depend on the first `dimensions` coordinates of seeds."""
    if dimensions not in (1, 2, 3):
        raise ValueError(f"dimensions={dimensions}: seeds have 1, 2 or 3 to change")
    parts = list(carry(field, seeds, t0, T, dimensions, Advection(**options)))
    return np.concatenate([part.gradient for part in parts])


def carry(
    field: Any, seeds: Any, t0: float, T: float, directions: int, how: Advection
) -> Iterator[Carried]:
    """Carry particles and their derivatives in batches that fit the memory limit."""
    if not (math.isfinite(t0) and math.isfinite(T) and T != 0):
        raise ValueError(f"t0={t0}, T={T}: both must be finite, and T not 0")
    given = np.asarray(seeds, how.kind)
    points = np.asarray(as_positions(given)) if given.size else np.zeros((0, 3))
    voyage = Voyage(field, how, (t0, t0 + T), points.astype(how.kind))
    size = min(how.batch_size or voyage.batch_size(directions), max(len(points), 1))
    start = 0
    while start < len(points) or start == len(points) == 0:
        # The last batch reaches back over rows already done: one shape, one program.
        first = max(0, min(start, len(points) - size))
        try:
            ends, gradient = voyage.carry(points[first : first + size], directions)
        except (jax.errors.JaxRuntimeError, MemoryError, ValueError) as error:
            if size == 1 or not is_out_of_memory(error):
                raise
            size //= 2
            continue
        own = slice(start - first, None)
        yield Carried(start, first + len(ends), ends[own], gradient[own])
        start = first + size


class Voyage:
    """A span of time in a field, ready to carry batches of particles through it."""

    def __init__(
        self,
        field: Any,
        how: Advection,
        span: tuple[float, float],
        points: Float[np.ndarray, "n 3"],
    ) -> None:
        self._how, self._span = how, span
        self._world = make_world(field, how.boundary, None, 0)
        if isinstance(self._world.field, HostField):
            raise ValueError(
                "a field function of NumPy arrays has no derivative: write it with "
                "jax.numpy"
            )
        self._windows = Windows(self._world, field)
        self._method = Method(how.integrator, len(points))
        if self._windows.streams and how.open:
            raise ValueError("a streamed field needs n_steps or dt, to be read once")
        self._steps = count_steps(self._world, how, span, points, self._probe)

    def batch_size(self, directions: int) -> int:
        """Particles whose stages and derivatives fit the memory limit."""
        stages = len(self._method.tableau.nodes)
        row = 3 * self._how.kind.itemsize * (1 + directions) * (1 + stages)
        return max(1, memory_budget_bytes() // (WORKSPACE_FACTOR * row))

    def carry(
        self, seeds: Float[np.ndarray, "n 3"], directions: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Where a batch ends, and how that changes along the first few axes."""
        return self._carry(seeds, directions, self._steps)

    def _probe(
        self, seeds: Float[np.ndarray, "n 3"], steps: int
    ) -> tuple[np.ndarray, np.ndarray]:
        return self._carry(seeds, 3, steps)

    def _carry(
        self, seeds: Float[np.ndarray, "n 3"], directions: int, steps: int
    ) -> tuple[np.ndarray, np.ndarray]:
        windows, method, kind = self._windows, self._method, self._how.kind
        field, times = self._world.field, np.linspace(*self._span, steps + 1)
        schedule = make_schedule(field, times, 1, method.tableau, kind)
        world, instant = windows.at(first_moment(field, times, kind))
        particles, _ = begin(world, jnp.asarray(seeds), instant, method)
        axes = jnp.eye(3, dtype=kind)[:directions, None]
        tangents = jnp.broadcast_to(axes, (directions, len(seeds), 3))
        length = min(STEPS_PER_CALL, steps)
        padded = bool(steps % length) or windows.streams
        first = 0
        while first < steps:
            last = windows.reach(schedule, first, min(first + length, steps))
            world, offset = windows.cover(*schedule.slices(first, last))
            part = schedule.part(first, last, length).rebased(offset)
            particles, tangents = push(world, particles, tangents, part, method, padded)
            windows.prefetch(schedule, last)
            first = last
        return _ends(particles, tangents)


@compile_once(max_traces=None)
def push(
    world: World,
    particles: Particles,
    tangents: Tangents,
    part: Schedule,
    method: Method,
    padded: bool,
) -> tuple[Particles, Tangents]:
    """Advance particles, and tangents of their positions along with them."""

    def run(positions: Float[Array, "n 3"]) -> tuple[Any, Particles]:
        start = eqx.tree_at(lambda p: p.positions, particles, positions)
        after, _ = advance(world, start, part, method, padded=padded)
        return after.positions, after

    def along(tangent: Float[Array, "n 3"]) -> tuple[Any, Particles]:
        at, way = (particles.positions,), (tangent,)
        _, change, after = jax.jvp(run, at, way, has_aux=True)
        return change, after

    if not tangents.shape[0]:
        return run(particles.positions)[1], tangents
    changes, after = jax.vmap(along, out_axes=(0, None))(tangents)
    return after, changes


def _ends(particles: Particles, tangents: Tangents) -> tuple[np.ndarray, np.ndarray]:
    """Positions (n, 3) and gradients (n, 3, directions), NaN for those that are gone.

    A slot that was used again holds another particle, which tells nothing of its seed.
    """
    gone = ~np.asarray(particles.alive) | (np.asarray(particles.generation) > 0)
    ends = np.array(particles.positions)
    gradient = np.moveaxis(np.array(tangents), 0, -1)
    ends[gone] = np.nan
    gradient[gone] = np.nan
    return ends, gradient
