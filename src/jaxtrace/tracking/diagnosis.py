"""What a tracker will cost, what its field answers and what it is set up to do."""

import math
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import jax
import numpy as np

from jaxrig import record_compilations
from jaxrig.memory import host_memory, tree_bytes
from jaxrig.timing import measure
from jaxtrace.bounds import box_bounds
from jaxtrace.config import working_device, working_dtype
from jaxtrace.fields.function import HostField, as_field
from jaxtrace.integrators.tableau import METHODS
from jaxtrace.settings import GIB
from jaxtrace.tracking.options import STATE_BYTES, TrackerOptions
from jaxtrace.tracking.seed_shapes import random_seeds

MIB = 1024**2
REPEATS = 3


@runtime_checkable
class Tracker(Protocol):
    """What is asked of a tracker here."""

    integrator: str
    field: Any
    boundary: Any
    options: TrackerOptions

    @property
    def compiled(self) -> bool:
        """Whether runs are compiled."""
        ...

    def track_particles(
        self, initial_positions: Any, time_span: Any, n_timesteps: int
    ) -> Any:
        """Run."""
        ...


def estimate_runtime(
    tracker: Tracker,
    n_particles: int,
    n_timesteps: int,
    calibration_particles: int = 1000,
    calibration_steps: int = 10,
) -> dict[str, Any]:
    """What a run will take, from a small one through the tracker's own field.

    Compiling is apart from it, in `compile_seconds`. Seeds of the small run lie within
    the bounds of the field, which must have them.
    """
    if n_particles < 1 or n_timesteps < 2:
        raise ValueError(
            f"n_particles={n_particles}, n_timesteps={n_timesteps}: need >= 1 and >= 2"
        )
    some, steps = min(calibration_particles, n_particles), max(calibration_steps, 1)
    timing = measure(_small_run(tracker, some, steps + 1), repeats=REPEATS)
    each = timing.median / (some * steps)
    seconds = each * n_particles * (n_timesteps - 1)
    batch = tracker.options.batch_size or n_particles
    return {
        "success": True,
        "estimated_runtime_seconds": seconds,
        "estimated_runtime_minutes": seconds / 60,
        "estimated_runtime_hours": seconds / 3600,
        "processing_mode": "single_batch" if batch >= n_particles else "multi_batch",
        "batch_size": min(batch, n_particles),
        "n_batches": math.ceil(n_particles / batch),
        "estimated_memory_gb": _record_bytes(tracker, n_particles, n_timesteps) / GIB,
        "time_per_particle_step": each,
        "calibration_time": timing.median,
        "compile_seconds": timing.compile_seconds,
        "jax_available": True,
        "jax_compiled_step": tracker.compiled,
        "jit_scan_available": tracker.compiled,
    }


def benchmark_performance(
    tracker: Tracker,
    test_sizes: Sequence[int] = (100, 500, 1000, 5000),
    n_timesteps: int = 100,
) -> dict[str, Any]:
    """Runs of several sizes, compiled first and timed after.

    By number of particles: `timing_results` in seconds, `memory_usage` of the record
    in MiB, `throughput` in particle-steps per second; `scalability` is the throughput
    over that of the smallest size.
    """
    seconds = {
        size: measure(_small_run(tracker, size, n_timesteps), repeats=REPEATS).median
        for size in test_sizes
    }
    rates = {size: size * (n_timesteps - 1) / s for size, s in seconds.items()}
    return {
        "timing_results": seconds,
        "memory_usage": {
            size: _record_bytes(tracker, size, n_timesteps) / MIB for size in seconds
        },
        "throughput": rates,
        "scalability": {size: rate / rates[min(rates)] for size, rate in rates.items()},
    }


def analyze_field_sampling(
    tracker: Tracker, positions: Any, times: Any
) -> dict[str, Any]:
    """What the field answers at positions (N, 3) and times: speeds, gaps, seconds.

    `speed` holds mean, min, max and std over all samples, `per_time` the mean and the
    largest speed at each time, `outside` how many positions lie beyond the bounds.
    """
    field, points = as_field(tracker.field), np.atleast_2d(np.asarray(positions))
    instants = np.atleast_1d(np.asarray(times, np.float64))
    with record_compilations() as log:
        found = [np.asarray(field.sample_at_positions(points, t)) for t in instants]
    speeds = np.linalg.norm(np.stack(found).astype(np.float64), axis=-1)
    finite = np.isfinite(speeds)
    known = np.where(finite, speeds, np.nan)
    low, high = field.get_spatial_bounds()
    axes = points.shape[1]
    beyond = (points < low[:axes]) | (points > high[:axes])
    return {
        "n_positions": len(points),
        "n_times": len(instants),
        "n_not_finite": int((~finite).sum()),
        "outside": int(beyond.any(axis=1).sum()),
        "outside_time": int(_outside_time(field, instants)),
        "speed": {
            name: float(getattr(np, f"nan{name}")(known)) if finite.any() else np.nan
            for name in ("mean", "min", "max", "std")
        },
        "per_time": [
            {"time": float(t), "mean": float(row.mean()), "max": float(row.max())}
            for t, row in zip(instants, speeds, strict=True)
        ],
        "compile_seconds": log.seconds,
    }


def _outside_time(field: Any, instants: np.ndarray) -> int:
    first, last = field.get_time_bounds()
    return int(((instants < first) | (instants > last)).sum())


def validate_configuration(tracker: Tracker) -> dict[str, Any]:
    """Whether the tracker can run, and what would make it slow or wrong, in words."""
    errors, warnings = [], []
    field = as_field(tracker.field)
    if tracker.integrator not in METHODS:
        errors.append(f"integrator {tracker.integrator!r} is unknown")
    if isinstance(field, HostField):
        warnings.append("the field is a NumPy function, called on the host each stage")
    if not tracker.compiled:
        warnings.append("use_jax_jit is False, so that every step is interpreted")
    size = tree_bytes(field)
    if size > tracker.options.budget_bytes:
        warnings.append(
            f"the field takes {size / GIB:.1f} GiB, the budget is "
            f"{tracker.options.max_memory_gb:g} GiB: stream its slices or raise the "
            "budget"
        )
    return {
        "valid": not errors,
        "warnings": warnings,
        "errors": errors,
        "configuration": {
            "integrator": tracker.integrator,
            "field": type(tracker.field).__name__,
            "boundary": type(tracker.boundary).__name__,
            "dtype": tracker.options.position_dtype or working_dtype().name,
            "device": str(working_device()),
            "compiled": tracker.compiled,
            "batch_size": tracker.options.batch_size,
            "max_memory_gb": tracker.options.max_memory_gb,
        },
    }


def get_memory_info(tracker: Tracker) -> dict[str, Any]:
    """Bytes of the field, the budget, and memory of this process in MiB."""
    return {
        "field_mb": tree_bytes(as_field(tracker.field)) / MIB,
        "max_memory_gb": tracker.options.max_memory_gb,
        "batch_size": tracker.options.batch_size,
        "device": str(working_device()),
        "rss_mb": host_memory().resident / MIB,
    }


def _record_bytes(tracker: Tracker, particles: int, frames: int) -> int:
    itemsize = np.dtype(tracker.options.position_dtype or working_dtype()).itemsize
    wide = itemsize // 4
    frame = tracker.options.frame_bytes(particles) * wide
    return frames * frame + particles * STATE_BYTES * wide


def _small_run(tracker: Tracker, particles: int, frames: int) -> Any:
    low, high = as_field(tracker.field).get_spatial_bounds()
    box = box_bounds([low, high]) if np.isfinite([low, high]).all() else None
    if box is None:
        raise ValueError(
            "the field has no bounds to put trial particles in: give it some, as with "
            "within(field, bounds) of jaxtrace.tracking.flows"
        )
    seeds = random_seeds(particles, box)
    first, last = as_field(tracker.field).get_time_bounds()
    span = (first, last) if math.isfinite(last - first) else (0.0, 1.0)
    return lambda: jax.block_until_ready(
        tracker.track_particles(seeds, span, frames).positions
    )
