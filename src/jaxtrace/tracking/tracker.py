"""The tracker: seeds, a span of time and options in, a trajectory out."""

import contextlib
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxrig import Meter, make_mesh, make_meter, shard_batch
from jaxrig.settings import (
    Checked,
    flag,
    known_only,
    maybe,
    number,
    one_of,
    readers,
    whole,
)
from jaxrig.timing import measure
from jaxtrace.config import get_config, working_cores, working_device, working_dtype
from jaxtrace.fields.analytic import UnboundedFlow, as_field
from jaxtrace.fields.base import Field, as_positions
from jaxtrace.integrators import find_method
from jaxtrace.settings import GIB, as_given
from jaxtrace.sphere import SPHERICAL, TURN
from jaxtrace.tracking.behaviors import Behaviors, make_behaviors
from jaxtrace.tracking.boundaries.base import as_boundary
from jaxtrace.tracking.boundaries.box import check_longitudes
from jaxtrace.tracking.motion import AbstractMotion, PassiveTracer
from jaxtrace.tracking.output import (
    Collected,
    Streamed,
    fingerprint,
    open_output,
)
from jaxtrace.tracking.particles import Particles, pad_slots
from jaxtrace.tracking.release import Releases, make_releases, release_times
from jaxtrace.tracking.schedule import (
    Timing,
    as_span,
    kept_frames,
    plan_run,
    plan_times,
)
from jaxtrace.tracking.seeding import random_seeds, warn_of_seeds
from jaxtrace.tracking.step import Dynamics, Method, single_step
from jaxtrace.tracking.time_loop import (
    ChunkedRun,
    allow_one_program,
    begin,
    check_steps,
    first_instant,
    make_dynamics,
    part_count,
)
from jaxtrace.tracking.windows import SliceWindows, released_values
from jaxtrace.trajectory import Trajectory
from jaxtrace.types import needed_arguments

COORDINATE_BYTES = 12
STATE_BYTES = 48  # of a particle while a run lasts
UNIT_BOX = [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]


@dataclass(frozen=True)
class TrackerOptions(Checked):
    """How a tracker works; every field may be given to `create_tracker` by name.

    `batch_size` particles are advanced at a time (None: all of them); after an
    out-of-memory error batches are halved down to `min_batch_size`. `devices` spreads
    particles over that many devices. `static_compilation`, `use_scan_jit` and
    `device_put_inputs` are accepted from scripts that set them: runs always do this.
    """

    batch_size: Annotated[int | None, maybe(whole())] = None
    record_velocities: Annotated[bool, flag] = False
    use_jax_jit: Annotated[bool, flag] = field(
        default_factory=lambda: get_config().use_jax_jit
    )
    static_compilation: Annotated[bool, flag] = True
    use_scan_jit: Annotated[bool, flag] = True
    device_put_inputs: Annotated[bool, flag] = True
    progress_callback: Annotated[Callable[..., Any] | None, as_given] = None
    max_memory_gb: Annotated[float, number(0)] = field(
        default_factory=lambda: get_config().memory_limit_gb
    )
    min_batch_size: Annotated[int, whole()] = 100
    oom_recovery: Annotated[bool, flag] = field(
        default_factory=lambda: get_config().oom_recovery
    )
    recording_interval: Annotated[int, whole()] = 1
    progress_style: Annotated[str, one_of("auto", "tqdm", "simple", "none")] = "auto"
    progress_desc: Annotated[str, as_given] = "Tracking"
    progress_update_every: Annotated[float, number(0, 1)] = 0.05
    adaptive_dt: Annotated[bool, flag] = False
    error_tolerance: Annotated[float, number(0)] = 1e-6
    seed: Annotated[int, whole(0)] = 0
    motion: Annotated[AbstractMotion | None, as_given] = None
    devices: Annotated[int | None, maybe(whole())] = None

    def frame_bytes(self, n_particles: int) -> int:
        """Return what one recorded frame takes."""
        return n_particles * COORDINATE_BYTES * (2 if self.record_velocities else 1)

    def frames_per_call(self, n_particles: int, frames: int, watched: bool) -> int:
        """Return frames of one compiled call: all, or fewer to fit or to show progress.

        Two calls' records exist at a time: one being made, one being fetched. Calls
        are of equal length where that takes few more of them.
        """
        if frames == 0:
            return 1
        frame = max(self.frame_bytes(n_particles), 1)
        room = max(1, int(self.max_memory_gb * GIB) // (4 * frame))
        if watched:
            room = min(room, math.ceil(frames * self.progress_update_every))
        calls = math.ceil(frames / min(room, frames))
        for count in range(calls, calls + calls // 4 + 1):
            if frames % count == 0:
                return frames // count
        return math.ceil(frames / calls)


class Progress:
    """Tells a user's function and a meter how far a run is.

    The meter is silent unless a style or a verbose configuration asks for one.
    """

    def __init__(self, options: TrackerOptions):
        auto = "auto" if get_config().show_progress else "silent"
        kinds = {"tqdm": "rich", "simple": "text", "none": "silent", "auto": auto}
        self.options, self.total = options, 1
        self.meter = make_meter(kinds[options.progress_style])
        silent = type(self.meter) is Meter
        self.watched = options.progress_callback is not None or not silent

    def start(self, total: int) -> None:
        """Begin."""
        self.total = max(total, 1)
        self.meter.start(self.options.progress_desc, self.total)

    def show(self, done: int) -> None:
        """Show how many of the frames are done, as f(step, total) or f(fraction)."""
        self.meter.show(done)
        callback = self.options.progress_callback
        if callback is None:
            return
        several = needed_arguments(callback) > 1
        callback(*((done, self.total) if several else (done / self.total,)))


# Smaller batches are worked on together: they need little memory, and apart they would
# leave a device idle. Results do not depend on it.
SMALLEST_TILE = 65_536


class ParticleTracker:
    """Move particles through a field; made by `create_tracker`."""

    def __init__(
        self,
        integrator: str,
        field: Any,
        boundary: Any,
        options: TrackerOptions | None = None,
    ):
        find_method(integrator)
        self.integrator = integrator
        # A function is converted once, and warns once; our own fields are asked for
        # their arrays at every run, because users may assign new ones in between.
        self.field: Field = field if isinstance(field, Field) else as_field(field)
        self.boundary = as_boundary(boundary)
        self.options = options or TrackerOptions()

    def _dynamics(self, behaviors: Behaviors | None = None) -> Dynamics:
        """Return what acts on particles now, with the present arrays of the field."""
        motion, seed = self.options.motion, self.options.seed
        return make_dynamics(self.field, self.boundary, motion, seed, behaviors)

    @property
    def compiled(self) -> bool:
        """Return whether runs are compiled."""
        return self.options.use_jax_jit

    @property
    def _compiled_step(self) -> Callable[..., Any] | None:
        """Return one compiled step `f(positions, t, dt)`."""
        return self._step if self.compiled else None

    @property
    def _compiled_simulate(self) -> Callable[..., Any] | None:
        """Return the compiled run: `track_particles`."""
        return self.track_particles if self.compiled else None

    def _step(self, positions: Any, t: float, dt: float) -> jax.Array:
        points = self._positions(positions)
        method = self._method(len(points))
        return single_step(self._dynamics(), points, float(t), float(dt), method)

    def track_particles(
        self,
        initial_positions: Any,
        time_span: tuple[Any, Any],
        n_timesteps: int | None = None,
        dt: float | None = None,
        *,
        release: Any = None,
        max_age: float | None = None,
        sample: Mapping[str, Any] | None = None,
        behave: Any = None,
        output: str | Path | None = None,
        resume: bool = False,
    ) -> Trajectory:
        """Track particles from seeds (N, 3) over a span of time.

        Frames lie at `linspace(*time_span, n_timesteps)`; `dt` is the longest substep.
        A span that falls tracks backward. `release` says when particles enter: one
        time, one for each seed, or a tuple (start, stop, every) that releases all
        seeds repeatedly; `max_age` takes them out again. Where the data have dates,
        times may be dates, such as "2020-02-28T12:00" or `numpy.datetime64`.

        `sample` maps names to fields that are recorded along the paths, and `behave`
        lists behaviors (`jaxtrace.tracking.behaviors`); both are in `variables`. With
        `output` frames stream to a .zarr store, from which another suffix (.nc, .csv,
        .vtp, ...) is exported at the end; `resume` continues a run that was stopped.
        """
        seeds = self._positions(initial_positions)
        check_longitudes(self.boundary, self.field.frozen.sphere)
        warn_of_seeds(self.field.frozen, seeds, self.boundary.wrap)
        facts = getattr(self.field, "_source_info", {})
        span = as_span(time_span, facts)
        when = release_times(release, facts)
        releases = make_releases(when, len(seeds), span, max_age)
        if releases is not None:
            seeds = jnp.tile(seeds, (len(releases.times) // max(len(seeds), 1), 1))
        clock = getattr(self.field.frozen, "clock", None)
        slices = None if clock is None else clock.times
        timing = plan_times(span, n_timesteps, dt, slices)
        behaviors = make_behaviors(sample, behave, facts)
        with contextlib.ExitStack() as stack:
            if not self.compiled:
                stack.enter_context(jax.disable_jit())
            stack.enter_context(jax.default_device(working_device()))
            return self._run(seeds, timing, output, resume, releases, behaviors)

    def estimate_runtime(
        self,
        n_particles: int,
        n_timesteps: int,
        calibration_particles: int = 1000,
        calibration_steps: int = 10,
    ) -> dict[str, float]:
        """Estimate seconds and GiB of a run from a small one with the same tracker.

        Compilation is reported apart, in `compile_seconds`. The trial particles lie in
        the bounds of the field, or in the unit box where it has none.
        """
        if n_particles < 1 or n_timesteps < 2:
            raise ValueError(
                f"n_particles={n_particles}, n_timesteps={n_timesteps}: need >= 1 "
                "and >= 2"
            )
        some, steps = min(calibration_particles, n_particles), max(calibration_steps, 1)
        box = np.stack(self.field.get_spatial_bounds())
        seeds = random_seeds(some, box if np.isfinite(box).all() else UNIT_BOX)
        first, last = self.field.get_time_bounds()
        span = (first, last) if math.isfinite(last - first) else (0.0, 1.0)
        trial = lambda: self.track_particles(seeds, span, steps + 1).positions
        timing = measure(trial, repeats=3)
        each = timing.median / (some * steps)
        frames = n_timesteps * self.options.frame_bytes(n_particles)
        wide = working_dtype().itemsize // 4
        return {
            "estimated_runtime_seconds": each * n_particles * (n_timesteps - 1),
            "estimated_memory_gb": wide * (frames + n_particles * STATE_BYTES) / GIB,
            "time_per_particle_step": each,
            "calibration_time": timing.median,
            "compile_seconds": timing.compile_seconds,
        }

    def _run(
        self,
        seeds: jax.Array,
        timing: Timing,
        output: Any,
        resume: bool,
        releases: Releases | None,
        behaviors: Behaviors,
    ) -> Trajectory:
        options, count, dtype = self.options, seeds.shape[0], seeds.dtype
        dynamics = self._dynamics(behaviors)
        mesh, parts = self._device_mesh(), 1
        if mesh is None and self.compiled:
            parts = part_count(dynamics, count, working_cores())
        method, frames = self._method(count, parts), np.asarray(timing.frames)
        check_steps(dynamics.motion, frames, timing.substeps, method)
        facts = self._facts(timing, method, count) | {"sampled": behaviors.names}
        motion = dynamics.motion
        passive = isinstance(motion, PassiveTracer) and not motion.terms
        facts["passive"] = passive and not behaviors.rules
        if output is not None:
            facts |= self._fingerprints(dynamics, seeds)
        steps, lifetime = None, None
        if releases is not None and len(frames) > 1:
            releases, steps, lifetime = releases.on_steps(frames, timing.substeps)
            facts["releases"] = releases.words()
        interval = options.recording_interval
        timed = behaviors.timed(dynamics.field)
        schedule, instant = plan_run(
            dynamics.field, timing, interval, method.tableau, dtype, steps, timed
        )
        samples = {n: first_instant(x, frames, dtype) for n, x in timed.items()}
        windows = SliceWindows(dynamics, self.field, behaviors.variables)
        windows.check(method)
        del dynamics  # and with it the first slices of a field that is streamed
        if releases is not None:
            values = released_values(windows, behaviors, seeds, releases)
            releases = replace(releases, values=values)
        times = frames[kept_frames(len(frames), interval)]
        sink = open_output(output, resume, times, count, facts, releases)
        with contextlib.closing(sink):
            here, instant, samples = windows.at(instant, samples)
            allow_one_program(begin)
            particles, opening = begin(here, seeds, instant, method, samples)
            del here
            if lifetime is not None:
                particles = replace(particles, lifetime=jnp.asarray(lifetime))
            first, particles = sink.begin(opening, particles)
            progress, left = Progress(options), schedule.frames - first
            watched = progress.watched or sink.streams
            run = ChunkedRun(
                *(windows, schedule, method),
                options.frames_per_call(count, left, watched),
                *(options.min_batch_size, options.oom_recovery, parts, mesh),
            )
            return self._record(sink, run, particles, first, progress)

    def _record(
        self,
        sink: Collected | Streamed,
        run: ChunkedRun,
        particles: Particles,
        first: int,
        progress: Progress,
    ) -> Trajectory:
        """Put every frame of the schedule from this one on into the sink."""
        mesh, total = run.mesh, run.schedule.frames
        spread = run.parts if mesh is None else mesh.size
        particles = pad_slots(particles, spread * (run.method.tile or 1))
        if mesh is not None:
            particles = shard_batch(particles, mesh)
        progress.start(total)
        for chunk in run.chunks(particles, first):
            particles = chunk.particles
            sink.take(chunk)
            progress.show(chunk.first + chunk.frames)
        if not total:
            progress.show(1)
        progress.meter.stop()
        return sink.trajectory(particles, self.boundary.fill)

    def _positions(self, positions: Any) -> jax.Array:
        given = positions if hasattr(positions, "dtype") else np.asarray(positions)
        if given.size == 0:
            return jnp.zeros((0, 3), working_dtype())
        return as_positions(jnp.asarray(given, working_dtype()))

    def _method(self, count: int, parts: int = 1) -> Method:
        options = self.options
        batch = options.batch_size
        tile = None if batch is None else max(batch, SMALLEST_TILE)
        if tile is not None and tile * parts >= count:
            tile = None
        return Method.choose(
            self.integrator,
            options.error_tolerance if options.adaptive_dt else None,
            particles=count,
            tile=tile,
            record_velocities=options.record_velocities,
        )

    def _device_mesh(self) -> Any:
        wanted = self.options.devices
        if wanted is None or wanted == 1:
            return None
        there = jax.devices()
        if wanted > len(there):
            raise ValueError(f"devices={wanted}: this machine has {len(there)}")
        return make_mesh(there[:wanted])

    def _fingerprints(self, dynamics: Dynamics, seeds: jax.Array) -> dict[str, str]:
        """Return what tells a run from another with the same settings."""
        # Of data only the extent: they may be streamed, and are the files' to keep.
        low, high = self.field.get_spatial_bounds()
        extent = np.array([*low, *high, *self.field.get_time_bounds()], np.float32)
        flow = dynamics.field
        data = None if isinstance(flow, UnboundedFlow) else ("data", extent)
        named = lambda part: fingerprint(type(part).__name__, part)
        return {
            "seeds": sha256(np.asarray(seeds).tobytes()).hexdigest()[:12],
            "flow": fingerprint(*data) if data else named(flow),
            "boundary": named(dynamics.boundary),
            "motion": named(dynamics.motion),
        }

    def _facts(self, timing: Timing, method: Method, count: int) -> dict[str, Any]:
        """Return what a trajectory says about how it was made."""
        batch = max(1, min(self.options.batch_size or count, count))
        sphere = self.field.frozen.sphere
        source = getattr(self.field, "_source_info", {})
        dates = {n: source[n] for n in ("time_units", "calendar") if n in source}
        where: dict[str, Any] = {"coordinate_system": "cartesian"}
        period = list(self.boundary.period)
        if sphere is not None:
            where = {"coordinate_system": SPHERICAL, "radius": float(sphere.radius)}
            period[0] = TURN
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
            "dtype": str(working_dtype()),
            **where,
            **dates,
            "period": period,
            "seed": self.options.seed,
            "time_span": [timing.frames[0], timing.frames[-1]],
        }


def create_tracker(
    integrator_name: str, field: Any, boundary_condition: Any, **options: Any
) -> ParticleTracker:
    """Make a tracker from an integrator's name, a field, a boundary and options.

    The options are the fields of `TrackerOptions`.
    """
    names = list(readers(TrackerOptions))
    known = known_only(options, names, "option of create_tracker")
    chosen = TrackerOptions(**known)
    if "error_tolerance" in known and not chosen.adaptive_dt:
        warnings.warn(
            "error_tolerance has no effect without adaptive_dt=True: steps have the "
            "length of dt",
            stacklevel=2,
        )
    return ParticleTracker(integrator_name, field, boundary_condition, chosen)
