"""The loop over time, and long runs as chunks of frames through one compiled program.

Results do not depend on the length of the chunks, on the number of particles advanced
at a time, or on the number of cores and devices.
"""

import inspect
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer as Traced
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Float, Int32

from jaxrig import compile_once, replicate
from jaxrig.batching import call_together, is_out_of_memory, join_axis, split_axis
from jaxrig.compile_guard import CompiledOnce
from jaxrig.lanes import NotInLanes, in_lanes
from jaxtrace.fields.analytic import as_field
from jaxtrace.fields.base import AbstractField
from jaxtrace.fields.box_tree import select
from jaxtrace.fields.clock import Instant
from jaxtrace.fields.variables import Variable
from jaxtrace.tracking.behaviors import Behaviors
from jaxtrace.tracking.boundaries.base import as_boundary, calls_host
from jaxtrace.tracking.dynamics import (
    Dynamics,
    Method,
    TimeStep,
    look_up,
    sample_variables,
)
from jaxtrace.tracking.motion import AbstractMotion, PassiveTracer
from jaxtrace.tracking.particles import Particles, Vectors, noise_key, retire
from jaxtrace.tracking.schedule import Schedule
from jaxtrace.tracking.step import initialize, take_step
from jaxtrace.tracking.windows import SliceWindows
from jaxtrace.types import ParticleStatus


class Record(eqx.Module):
    """What is kept of each frame; None where nothing can change or was not asked."""

    positions: Float[Array, "*frames n 3"]
    velocities: Float[Array, "*frames n 3"] | None
    generation: Int32[Array, "*frames n"] | None
    variables: dict[str, Float[Array, "*frames n"]] = eqx.field(default_factory=dict)


def record_frame(
    dynamics: Dynamics,
    particles: Particles,
    instant: Instant,
    method: Method,
    samples: Mapping[str, Instant] | None = None,
) -> Record:
    """Return what a frame keeps; `samples` are its instants as variables see them."""
    gone = ~particles.alive[:, None]
    nan = jnp.asarray(jnp.nan, particles.positions.dtype)
    velocities, field = None, dynamics.field
    if method.record_velocities:
        if not method.in_lanes:
            field, instant = field.at_instant(instant, method.particles)
        places = dynamics.boundary.wrap(particles.positions)
        found, _ = look_up(field, places, instant, particles.cell_hint)
        velocities = jnp.where(gone, nan, found)
    generation = particles.generation if dynamics.boundary.recycles else None
    positions = jnp.where(gone, nan, particles.positions)
    variables = sample_variables(dynamics, particles.positions, dict(samples or {}))
    kept = {n: x for n, x in (particles.state or {}).items() if not n.startswith("_")}
    variables = {
        name: jnp.where(particles.alive, value.astype(nan.dtype), nan)
        for name, value in (variables | kept).items()
    }
    return Record(positions, velocities, generation, variables)


def step_released(
    dynamics: Dynamics, particles: Particles, time_step: TimeStep, method: Method
) -> Particles:
    """Take a step with the particles that are released and not too old."""
    lifetime = particles.lifetime
    if lifetime is None:
        return take_step(dynamics, particles, time_step, method)
    # Who is stuck or beached stays, as what became of it.
    moving = particles.status == jnp.asarray(ParticleStatus.ACTIVE, np.int8)
    old = moving & (time_step.step >= lifetime[:, 1])
    places = particles.positions
    kept = retire(particles, old, ParticleStatus.EXPIRED, places, time_step.start)
    if dynamics.motion.has_velocity:
        # The flow may have changed since the start of the run.
        begun = time_step.step == lifetime[:, 0]
        first = jax.tree.map(lambda x: x[0], time_step.stages)
        there = dynamics.boundary.wrap(places)
        flow, _ = look_up(dynamics.field, there, first, kept.cell_hint)
        own = jnp.where(begun[:, None], flow, kept.velocity)
        kept = replace(kept, velocity=own)
    after = take_step(dynamics, kept, time_step, method)
    if dynamics.boundary.recycles and time_step.expires is not None:
        fresh = after.generation > kept.generation
        last = jnp.where(fresh, time_step.expires, lifetime[:, 1])
        after = replace(after, lifetime=jnp.stack([lifetime[:, 0], last], 1))
    # Nothing happens to those who wait, whatever the step would have done to them.
    return select(time_step.step < lifetime[:, 0], particles, after)


def advance(
    dynamics: Dynamics,
    particles: Particles,
    schedule: Schedule,
    method: Method,
    *,
    padded: bool = False,
    remember: bool = True,
) -> tuple[Particles, Record]:
    """Take the particles through the frames of a schedule, recording each.

    A padded schedule may hold substeps to skip. Without `remember` a reverse-mode
    gradient keeps the particles of each step only, and works out the rest again.
    """

    def substep(state: Particles, now: tuple[TimeStep, Any]) -> tuple[Particles, None]:
        time_step, active = now
        if not padded:
            return step_released(dynamics, state, time_step, method), None
        # A branch, not a select: a skipped substep costs nothing.
        after = jax.lax.cond(
            active,
            lambda s: step_released(dynamics, s, time_step, method),
            lambda s: s,
            state,
        )
        return after, None

    if not remember:
        substep = jax.checkpoint(substep)

    def frame(state: Particles, now: Schedule) -> tuple[Particles, Record]:
        start, dt, number = (jnp.asarray(x) for x in (now.start, now.dt, now.step))
        begins, ends, samples = (
            {name: each[i] for name, each in now.samples.items()} for i in range(3)
        )
        steps = TimeStep(start, dt, number, now.stages, begins, ends, now.expires)
        time_steps = steps, now.active
        if now.step.shape[0] == 1:
            state, _ = substep(state, jax.tree.map(lambda x: x[0], time_steps))
        else:
            state, _ = jax.lax.scan(substep, state, time_steps)
        return state, record_frame(dynamics, state, now.frame, method, samples)

    return jax.lax.scan(frame, particles, jax.tree.map(jnp.asarray, schedule))


def check_steps(
    motion: AbstractMotion, times: Any, substeps: int, method: Method
) -> None:
    """Raise if a motion cannot take the steps of these frames; traced ones pass."""
    if isinstance(times, Traced) or times.shape[0] < 2:
        return
    steps = np.diff(np.asarray(times, np.float64)) / substeps
    longest = float(steps[np.argmax(np.abs(steps))])
    if method.tolerance is None or longest < 0:
        motion.check(longest, method.tableau)


def make_dynamics(
    field: Any,
    boundary: Any = None,
    motion: AbstractMotion | None = None,
    seed: int = 0,
    behaviors: Behaviors | None = None,
) -> Dynamics:
    """Return what acts on particles, from whatever users give."""
    behaviors = behaviors or Behaviors()
    frozen = {name: given.frozen for name, given in behaviors.variables.items()}
    return Dynamics(
        as_field(field),
        as_boundary(boundary),
        motion or PassiveTracer(),
        noise_key(seed),
        replace(behaviors, variables=frozen),
    )


def first_instant(field: AbstractField | Variable, times: Any, dtype: Any) -> Instant:
    """Return the instant of the first frame as a field or variable sees it."""
    return jax.tree.map(jnp.asarray, field.instant(times[0]).astype(dtype))


logger = logging.getLogger(__name__)

# Neighbors in space that are neighbors in memory share the loads of a look-up; with
# fewer particles than this the field's tables stay in fast memory anyway. A GPU has
# more of it, and its sort takes as long as some steps.
WORTH_SORTING = 2_000
WORTH_SORTING_ON_GPU = 50_000
# A part with fewer particles spends more on starting its loops than on their work.
SMALLEST_PART = 1_000


class Chunk(NamedTuple):
    """Some recorded frames of each part, and the particles after the last of them."""

    first: int
    frames: int
    records: tuple[Record, ...]
    particles: Particles


def part_count(dynamics: Dynamics, particles: int, cores: int) -> int:
    """Return how many equal parts of the particles to advance at the same time.

    XLA runs a loop over time in one thread of a CPU, and independent programs in as
    many as there are. A function of NumPy arrays is called by one program at a time.
    """
    if calls_host(dynamics):
        return 1
    return max(1, min(cores, particles // SMALLEST_PART))


def allow_one_program(*entries: CompiledOnce[..., Any]) -> None:
    """Let each entry compile at most one more program from here on.

    A process may track any number of fields and seedings, so there is no bound for all
    of them; but the chunks of one run share one program, and a run that would compile
    a second one is stopped with the argument that changed.
    """
    # Without compilation every call counts as a trace.
    interpreted = jax.config.jax_disable_jit  # type: ignore[attr-defined]
    for entry in entries:
        entry.max_traces = None if interpreted else entry.trace_count + 1


def first_frame(
    dynamics: Dynamics,
    seeds: Vectors,
    instant: Instant,
    method: Method,
    samples: dict[str, Instant] | None = None,
) -> tuple[Particles, Record]:
    """Return particles at their seeds, and frame 0."""
    particles = initialize(dynamics, seeds, instant, method)
    opening = record_frame(dynamics, particles, instant, method, samples)
    return particles, jax.tree.map(lambda x: x[None], opening)


begin = compile_once(first_frame)


@dataclass
class ChunkedRun:
    """A run cut up into calls of some frames each, and how small they may become.

    Particles are advanced in `parts` at the same time, or spread over a device mesh.
    """

    windows: SliceWindows
    schedule: Schedule
    method: Method
    frames: int
    smallest_tile: int = 100
    recover: bool = True
    parts: int = 1
    mesh: Mesh | None = None
    padded: bool = False  # whether the schedule of a call may hold steps to skip

    def chunks(self, particles: Particles, first: int = 0) -> Iterator[Chunk]:
        """Advance through the schedule from a frame on, one chunk after the other.

        A chunk is handed out while the next is worked out, so that a device need not
        wait for the host; with a streamed field the next would need its own window.
        """
        entry = self._entry
        allow_one_program(entry)
        uneven = (self.schedule.frames - first) % self.frames != 0
        self.padded = self.schedule.padded or uneven or self.windows.streams
        running: Chunk | None = None
        while running is not None or first < self.schedule.frames:
            following = None
            try:
                waits = self.windows.streams and running is not None
                if first < self.schedule.frames and not waits:
                    latest = particles if running is None else running.particles
                    following = self._start(latest, first)
                if running is not None and self.recover:
                    jax.block_until_ready(running.particles)
            except (jax.errors.JaxRuntimeError, MemoryError, ValueError) as error:
                if not self._shrink(error, particles):
                    raise
                self.padded = True
                allow_one_program(entry)  # smaller pieces are another shape
                first = first if running is None else running.first
                running = None
                continue
            if running is not None:
                particles = running.particles
                yield running
            running = following
            first += 0 if following is None else following.frames

    def _start(self, particles: Particles, first: int) -> Chunk:
        """Have the frames from this one on computed, and fetched when they are done."""
        dynamics, part, last = self.windows.piece(self.schedule, first, self.frames)
        after, records = self._call(dynamics, particles, part)
        self.windows.prefetch(self.schedule, last)
        if last - first < self.frames:
            records = jax.tree.map(lambda x: x[: last - first], records)
        fetched = records, after.status, after.exit_time
        jax.tree.map(lambda x: x.copy_to_host_async(), fetched)
        return Chunk(first, last - first, records, after)

    def _shrink(self, error: Exception, particles: Particles) -> bool:
        """Go on with half as many frames or particles at a time, if that can help."""
        if not (self.recover and is_out_of_memory(error)):
            return False
        if self.frames > 1:
            self.frames //= 2
            logger.warning(
                "out of memory: continuing with %d frames per call", self.frames
            )
            return True
        count = particles.positions.shape[0] // self.parts
        tile = self.method.tile or count
        halves = [t for t in range(tile // 2, 0, -1) if count % t == 0]
        if not halves or halves[0] < self.smallest_tile:
            return False
        logger.warning(
            "out of memory: continuing with %d particles at a time", halves[0]
        )
        self.method = replace(self.method, tile=halves[0])
        return True

    @property
    def _entry(self) -> CompiledOnce[..., Any]:
        searching = self.windows.searches and jax.default_backend() == "gpu"
        if self.mesh is not None:
            return _advance_shared_searching if searching else _advance_shared
        return _advance_searching if searching else _advance

    def _call(
        self, dynamics: Dynamics, particles: Particles, part: Schedule
    ) -> tuple[Particles, tuple[Record, ...]]:
        how = self.method, self.padded
        if self.mesh is not None:
            dynamics, part = replicate((dynamics, part), self.mesh)
            after, record = self._entry(dynamics, particles, part, *how, self.mesh)
            return after, (record,)
        if self.parts > 1:  # one copy for all; a single call takes NumPy arrays faster
            part = jax.device_put(part)
        work = lambda some: self._entry(dynamics, some, part, *how)
        done = call_together(work, split_axis(particles, self.parts))
        after, records = zip(*done, strict=True)
        return join_axis(after), records


@compile_once(max_traces=1)
def _advance(
    dynamics: Dynamics,
    particles: Particles,
    part: Schedule,
    method: Method,
    padded: bool,
) -> tuple[Particles, Record]:
    """Advance in the order of cells, and answer in the order of slots."""
    places = dynamics.field.order(particles.positions, particles.cell_hint)
    gpu = jax.default_backend() == "gpu"
    worth = WORTH_SORTING_ON_GPU if gpu else WORTH_SORTING
    if places is None or method.particles < worth:
        return _advance_fast(dynamics, particles, part, method, padded)
    # Sorted once per chunk: particles move few cells in that time.
    order = jnp.argsort(places)
    back = jnp.argsort(order)
    sorted_ = jax.tree.map(lambda x: x[order], particles)
    after, record = _advance_fast(dynamics, sorted_, part, method, padded)
    return (
        jax.tree.map(lambda x: x[back], after),
        jax.tree.map(lambda x: x[:, back], record),
    )


@compile_once(max_traces=1)
def _advance_shared(
    dynamics: Dynamics,
    particles: Particles,
    part: Schedule,
    method: Method,
    padded: bool,
    mesh: Mesh,
) -> tuple[Particles, Record]:
    """Return the same with the particles spread over devices, each seeing its own."""
    arrays, rest = eqx.partition((dynamics, part), eqx.is_array_like)
    one, axis = PartitionSpec(), mesh.axis_names[0]

    def local(arrays: Any, some: Particles) -> tuple[Particles, Record]:
        dynamics, part = eqx.combine(arrays, rest)
        return _advance_fast(dynamics, some, part, method, padded)

    spread = jax.shard_map(
        local,
        mesh=mesh,
        in_specs=(one, PartitionSpec(axis)),
        out_specs=(PartitionSpec(axis), PartitionSpec(None, axis)),
        check_vma=False,
    )
    return spread(arrays, particles)


def _advance_fast(
    dynamics: Dynamics,
    particles: Particles,
    part: Schedule,
    method: Method,
    padded: bool,
) -> tuple[Particles, Record]:
    """Advance by one kernel for all steps, where a GPU can, or by kernels per step.

    The results are the same. On an H200 a step of 7,500 particles takes 35 us as 20
    kernels, which is what launching them costs, and 6 us inside of one.
    """
    whole = dynamics.field.sphere is None and not dynamics.field.searches
    if jax.default_backend() == "gpu" and whole and method.tile is None:
        try:
            return advance_in_lanes(dynamics, particles, part, method, padded=padded)
        except NotInLanes as reason:
            logger.debug("steps are launched one by one: %s", reason)
    return advance(dynamics, particles, part, method, padded=padded)


def advance_in_lanes(
    dynamics: Dynamics,
    particles: Particles,
    schedule: Schedule,
    method: Method,
    *,
    padded: bool = False,
    interpret: bool = False,
) -> tuple[Particles, Record]:
    """Return what `advance` does, from one kernel; raise `NotInLanes` if none can."""
    method = replace(method, in_lanes=True)
    arrays, rest = eqx.partition((dynamics, schedule), eqx.is_array_like)

    def run(arrays: Any, particles: Particles) -> tuple[Particles, Record]:
        dynamics, schedule = eqx.combine(arrays, rest)
        return advance(dynamics, particles, schedule, method, padded=padded)

    return in_lanes(run, arrays, particles, interpret=interpret)


# A search is loops within the loop over time, and after every round the host of a GPU
# would read whether to go on. As command buffers they run on the device: 1.9 times as
# fast on tetrahedra, 2.4 times on hexahedra. Fields that do not search lose a tenth.
LOOPS_ON_DEVICE = {
    "xla_gpu_enable_command_buffer": (
        "FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,CUDNN,CONDITIONAL,WHILE"
    ),
    "xla_gpu_graph_min_graph_size": 1,
}
_advance_searching, _advance_shared_searching = (
    CompiledOnce(inspect.unwrap(entry), 1, (), LOOPS_ON_DEVICE)
    for entry in (_advance, _advance_shared)
)
