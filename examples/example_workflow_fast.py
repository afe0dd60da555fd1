"""The documented fast workflow: 7,500 particles, 1,500 frames, 40 slices of a flow.

python example_workflow_fast.py                  # a flow made here
python example_workflow_fast.py 'flow/*.vtu'     # the flow in your files
"""

import sys
import time
from pathlib import Path

import numpy as np

import jaxtrace as jt
from jaxtrace.fields import TimeSeriesField
from jaxtrace.io import export_trajectory_to_vtk, load_optimized_dataset
from jaxtrace.tracking import create_tracker, uniform_grid_seeds
from jaxtrace.tracking.boundary import reflective_boundary

TIME_SPAN, FRAMES = (0.0, 4.0), 1500

jt.configure(dtype="float32", device="auto", memory_limit_gb=3.0)


def synthesise() -> TimeSeriesField:
    """A double gyre that rises and falls, on 32 x 32 x 20 nodes at 40 instants."""
    axes = (np.linspace(0, 2, 32), np.linspace(0, 1, 32), np.linspace(0, 1, 20))
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
    x, y, z = nodes.T
    times = np.linspace(*TIME_SPAN, 40)
    slices = []
    for t in times:
        a = 0.25 * np.sin(0.2 * np.pi * t)
        f = a * x * x + (1 - 2 * a) * x
        slope = 2 * a * x + 1 - 2 * a
        u = -0.1 * np.pi * np.sin(np.pi * f) * np.cos(np.pi * y)
        v = 0.1 * np.pi * np.cos(np.pi * f) * np.sin(np.pi * y) * slope
        w = 0.05 * np.sin(np.pi * z) * np.cos(np.pi * x)
        slices.append(np.stack([u, v, w], -1))
    return TimeSeriesField(np.stack(slices).astype(np.float32), times, nodes)


def main() -> None:
    """Load or make the field, track, report the rate, export."""
    if len(sys.argv) > 1:
        field = load_optimized_dataset(sys.argv[1], max_time_steps=40, dtype="float32")
        first, last = field.get_time_bounds()
        span = (first, last) if np.isfinite(last - first) else TIME_SPAN
    else:
        field, span = synthesise(), TIME_SPAN
    print(f"field: {type(field).__name__}")
    if isinstance(field, TimeSeriesField):  # else slices are read as they are needed
        print(f"{field.interpolation_scheme}, data on {field.data.devices()}")

    low, high = field.get_spatial_bounds()
    resolution = (30, 25, 10) if high[2] > low[2] else (100, 75, 1)
    seeds = uniform_grid_seeds(resolution=resolution, bounds=[low, high])
    tracker = create_tracker("rk4", field, reflective_boundary([low, high]))
    assert tracker._compiled_step is not None

    for name in ("first run, with compiling", "second run"):
        start = time.perf_counter()
        trajectory = tracker.track_particles(
            initial_positions=seeds, time_span=span, n_timesteps=FRAMES
        )
        seconds = time.perf_counter() - start
        rate = trajectory.N * (trajectory.T - 1) / seconds
        print(f"{name}: {seconds:.2f} s, {rate:,.0f} particle-steps per second")

    moved = trajectory.compute_displacement()
    print(f"mean displacement {moved.mean():.3f}, largest {moved.max():.3f}")
    start = time.perf_counter()
    written = export_trajectory_to_vtk(trajectory, Path("trajectory.vtp"))
    print(f"wrote {written['file']} in {time.perf_counter() - start:.2f} s")


if __name__ == "__main__":
    main()
