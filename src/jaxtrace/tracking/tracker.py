"""The tracker: seeds, a span of time and options in, a trajectory out."""

import contextlib
import dataclasses
import difflib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxrig import make_mesh
from jaxtrace.config import working_device, working_dtype
from jaxtrace.fields.base import as_positions
from jaxtrace.fields.clock import Moment
from jaxtrace.fields.function import as_field
from jaxtrace.integrators.steps import euler_step, rk2_step, rk4_step
from jaxtrace.integrators.tableau import METHODS, find_method
from jaxtrace.tracking.boundaries.function import as_boundary
from jaxtrace.tracking.diagnosis import (
    analyze_field_sampling,
    benchmark_performance,
    estimate_runtime,
    get_memory_info,
    validate_configuration,
)
from jaxtrace.tracking.motion import Tracer
from jaxtrace.tracking.noise import dice_key
from jaxtrace.tracking.options import Progress, TrackerOptions
from jaxtrace.tracking.output import Collected, Streamed, open_output
from jaxtrace.tracking.run import Pace, Windows, begin, pad_slots, run_chunks, spread
from jaxtrace.tracking.schedule import (
    Schedule,
    Timing,
    every,
    kept_frames,
    make_schedule,
    plan_times,
)
from jaxtrace.tracking.simulate import check_steps, first_moment
from jaxtrace.tracking.step import Method, World, single_step
from jaxtrace.tracking.trajectory import Trajectory

# Smaller batches are worked on together: they need little memory, and apart they would
# leave a device idle. Results do not depend on it.
SMALLEST_TILE = 65_536
STEPS = {euler_step: "euler", rk2_step: "rk2", rk4_step: "rk4"}


class ParticleTracker:
    """Moves particles through a field; made by `create_tracker`."""

    def __init__(
        self,
        integrator: Any,
        field_fn: Any,
        boundary_fn: Any,
        options: TrackerOptions | None = None,
    ):
        self.integrator = _integrator_name(integrator)
        self.field = field_fn
        self.boundary = as_boundary(boundary_fn)
        self.options = options or TrackerOptions()
        as_field(field_fn)  # says now what is wrong with it

    @property
    def world(self) -> World:
        """What acts on particles now; the field is read anew, so changes count."""
        options = self.options
        return World(
            as_field(self.field),
            self.boundary,
            options.motion or Tracer(),
            dice_key(options.seed),
        )

    @property
    def compiled(self) -> bool:
        """Whether runs are compiled."""
        return self.options.use_jax_jit

    @property
    def _compiled_step(self) -> Callable[..., Any] | None:
        """One compiled step `f(positions, t, dt)`."""
        return self._step if self.compiled else None

    @property
    def _compiled_simulate(self) -> Callable[..., Any] | None:
        """The compiled run: `track_particles`."""
        return self.track_particles if self.compiled else None

    def _step(self, positions: Any, t: float, dt: float) -> jax.Array:
        points = self._positions(positions)
        return single_step(
            self.world, points, float(t), float(dt), self._method(len(points))
        )

    def track_particles(
        self,
        initial_positions: Any,
        time_span: tuple[float, float],
        n_timesteps: int | None = None,
        dt: float | None = None,
        *,
        output: str | Path | None = None,
        resume: bool = False,
    ) -> Trajectory:
        """Track particles from seeds (N, 3) over a span of time.

        Frames lie at `linspace(*time_span, n_timesteps)`; `dt` is the longest substep.
        A span that falls tracks backward. With `output` (.zarr, .h5 or .pvd) frames
        go to disk as they come, and `resume` goes on with a run that was stopped.
        """
        seeds = self._positions(initial_positions)
        timing = plan_times(time_span, n_timesteps, dt, self._slices())
        with contextlib.ExitStack() as stack:
            if not self.compiled:
                stack.enter_context(jax.disable_jit())
            stack.enter_context(jax.default_device(working_device()))
            return self._run(seeds, timing, output, resume)

    estimate_runtime = estimate_runtime
    benchmark_performance = benchmark_performance
    analyze_field_sampling = analyze_field_sampling
    validate_configuration = validate_configuration
    get_memory_info = get_memory_info

    def _run(
        self, seeds: jax.Array, timing: Timing, output: Any, resume: bool
    ) -> Trajectory:
        options, count = self.options, seeds.shape[0]
        method, world = self._method(count), self.world
        tableau, dtype = method.tableau, seeds.dtype
        kept = kept_frames(len(timing.frames), options.recording_interval)
        frames = np.asarray(timing.frames)
        check_steps(world.motion, frames, timing.substeps, method)
        schedule = every(
            make_schedule(world.field, frames, timing.substeps, tableau, dtype),
            options.recording_interval,
        )
        facts = self._facts(timing, method, count)
        instant = first_moment(world.field, frames, dtype)
        windows = Windows(world, self.field)
        windows.check(method)
        del world  # and with it the first slices of a field that is streamed
        sink = open_output(output, resume, frames[kept], count, facts)
        with contextlib.closing(sink):
            return self._record(sink, windows, seeds, instant, schedule, method)

    def _record(
        self,
        sink: Collected | Streamed,
        windows: Windows,
        seeds: jax.Array,
        instant: Moment,
        schedule: Schedule,
        method: Method,
    ) -> Trajectory:
        """Every frame of the schedule into the sink."""
        options, count = self.options, seeds.shape[0]
        here, instant = windows.at(instant)
        particles, opening = begin(here, seeds, instant, method)
        del here
        first, particles = sink.begin(opening, particles)
        mesh = self._mesh()
        particles = pad_slots(particles, _multiple(method, mesh))
        if mesh is not None:
            particles = spread(particles, mesh)
        progress = Progress(options)
        size = options.frames_per_call(
            count, schedule.frames - first, progress.watched or sink.streams
        )
        pace = Pace(size, options.min_batch_size, options.oom_recovery)
        progress.start(schedule.frames)
        for chunk in run_chunks(
            windows, particles, schedule, method, pace, first=first, mesh=mesh
        ):
            particles = chunk.particles
            sink.take(chunk)
            progress.show(chunk.first + chunk.frames)
        if not schedule.frames:
            progress.show(1)
        progress.stop()
        return sink.trajectory(particles, self.boundary.fill)

    def _positions(self, positions: Any) -> jax.Array:
        asked = self.options.position_dtype
        dtype = np.dtype(asked) if asked else working_dtype()
        if dtype == np.float64 and not jax.config.read("jax_enable_x64"):
            raise ValueError(
                "positions in float64 need jt.configure(dtype='float64') or "
                "jax.config.update('jax_enable_x64', True) first"
            )
        given = positions if hasattr(positions, "dtype") else np.asarray(positions)
        if given.size == 0:
            return jnp.zeros((0, 3), dtype)
        return as_positions(jnp.asarray(given, dtype))

    def _method(self, count: int) -> Method:
        options = self.options
        batch = options.batch_size
        tile = None if batch is None else max(batch, SMALLEST_TILE)
        if tile is not None and tile >= count:
            tile = None
        return Method(
            "rk45" if options.adaptive_dt else self.integrator,
            count,
            tile,
            options.record_velocities,
            options.error_tolerance if options.adaptive_dt else None,
        )

    def _mesh(self) -> Any:
        wanted = self.options.devices
        if wanted is None or wanted == 1:
            return None
        there = jax.devices()
        if wanted > len(there):
            raise ValueError(f"devices={wanted}: this machine has {len(there)}")
        return make_mesh(there[:wanted])

    def _slices(self) -> Any:
        clock = getattr(as_field(self.field), "clock", None)
        return None if clock is None else clock.times

    def _facts(self, timing: Timing, method: Method, count: int) -> dict[str, Any]:
        """What a trajectory says about how it was made."""
        batch = max(1, min(self.options.batch_size or count, count))
        return {
            "integrator": method.integrator,
            "batch_processing": "single_batch" if batch >= count else "multi_batch",
            "batch_size": batch,
            "n_batches": max(1, math.ceil(count / batch)),
            "n_particles": count,
            "n_timesteps": len(timing.frames),
            "dt": timing.dt,
            "dt_requested": timing.requested,
            "substeps": timing.substeps,
            "recording_interval": self.options.recording_interval,
            "jax_compiled": self.compiled,
            "jit_scan": self.compiled,
            "format_version": "1.0",
            "dtype": str(np.dtype(self.options.position_dtype or working_dtype())),
            "coordinate_system": "cartesian",
            "period": list(self.boundary.period),
            "seed": self.options.seed,
            "time_span": [timing.frames[0], timing.frames[-1]],
        }


def _multiple(method: Method, mesh: Any) -> int:
    """What the number of slots must be a multiple of: devices times batches."""
    devices = 1 if mesh is None else mesh.size
    return devices * (method.tile or 1)


def _integrator_name(integrator: Any) -> str:
    if isinstance(integrator, str):
        find_method(integrator)
        return integrator
    if not callable(integrator):
        raise ValueError(
            f"integrator {integrator!r}: choose one of {', '.join(METHODS)}"
        )
    for step, name in STEPS.items():
        if integrator is step:
            return name
    raise ValueError(
        f"integrator {getattr(integrator, '__name__', integrator)}: give euler_step, "
        f"rk2_step, rk4_step or a name of {', '.join(METHODS)}"
    )


def create_tracker(
    integrator_name: str, field: Any, boundary_condition: Any, **options: Any
) -> ParticleTracker:
    """A tracker of particles: an integrator's name, a field, a boundary and options.

    The options are the fields of `TrackerOptions`.
    """
    known = [f.name for f in dataclasses.fields(TrackerOptions)]
    for name in options:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1, cutoff=0.0)[0]
            raise TypeError(
                f"create_tracker has no option {name!r}; did you mean {close!r}?"
            )
    return ParticleTracker(
        integrator_name, field, boundary_condition, TrackerOptions(**options)
    )
