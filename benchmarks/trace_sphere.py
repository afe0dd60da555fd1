"""Grids on the sphere against the same grid flat, and errors of closed forms.

The sphere has the lat/lon grid, and a curvilinear C-grid whose rows and columns waver
about meridians and parallels.

python benchmarks/trace_sphere.py > sphere.json

Rates are CPU nanoseconds per particle and Runge-Kutta step, measured in turns; errors
are meters after one turn of 40,030 km in 12 days, by precision and steps.
"""

import json
import time

import jax
import jax.numpy as jnp
import numpy as np

from jaxtrace.fields import StructuredGridSampler, as_field
from jaxtrace.fields.base import Field
from jaxtrace.fields.curved_grid import CurvilinearGrid
from jaxtrace.fields.curvilinear import CurvilinearField, make_curvilinear_field
from jaxtrace.sphere import EARTH_RADIUS, great_circle
from jaxtrace.tracking import create_tracker
from jaxtrace.tracking.simulation import simulate

PARTICLES, SLICES, STEPS, REPEATS = 100_000, 5, 96, 5
DAY = 86400.0
PERIOD = 12 * DAY


def make_field(levels: int, geometry: str) -> StructuredGridSampler:
    """Random currents of about 1 m/s, in degrees per second where flat."""
    lon, lat = np.arange(0, 360, 1.0), np.arange(-89.5, 90, 1.0)
    z = np.linspace(-500, 0, levels) if levels > 1 else np.zeros(1)
    draw = np.random.default_rng(0)
    values = draw.normal(size=(SLICES, 360, 180, levels, 3)).astype(np.float32)
    values[..., 2] = 0
    if geometry == "flat":
        values /= np.float32(np.radians(EARTH_RADIUS))
    times = np.arange(SLICES) * DAY
    return StructuredGridSampler(values, lon, lat, z, times=times, geometry=geometry)


def make_c_grid(levels: int) -> CurvilinearField:
    """Random currents of about 1 m/s through the faces of cells of one degree."""
    lon, lat = np.meshgrid(np.arange(0, 361, 1.0), np.arange(-89.5, 90, 1.0))
    lon = lon + 2 * np.sin(np.radians(3 * lat))
    lat = lat + 0.4 * np.sin(np.radians(5 * lon)) * np.cos(np.radians(lat))
    z = np.linspace(-500, 0, levels + 1) if levels > 1 else np.zeros(1)
    grid = CurvilinearGrid(lon, lat, z, EARTH_RADIUS, faces=True)
    draw = np.random.default_rng(0)
    values = draw.normal(size=(SLICES, *grid.shape, 3)).astype(np.float32)
    values[..., 2] = 0
    values[:, :, -1] = values[:, :, 0]
    return make_curvilinear_field(grid, values, np.arange(SLICES) * DAY)


def measure_rates(levels: int) -> dict[str, float]:
    """Return nanoseconds of CPU time per particle-step, and their ratio."""
    draw = np.random.default_rng(1)
    corners = ([0.0, -80.0, -100.0], [359.0, 80.0, -100.0])
    seeds = draw.uniform(*corners, size=(PARTICLES, 3))
    fields: dict[str, Field] = {"C-grid": make_c_grid(levels)}
    fields |= {kind: make_field(levels, kind) for kind in ("flat", "sphere")}
    trackers = {k: create_tracker("rk4", field, None) for k, field in fields.items()}

    def run(kind: str) -> float:
        start = time.process_time()
        trackers[kind].track_particles(seeds, (0.0, 4 * DAY), 5, 4 * DAY / STEPS)
        return (time.process_time() - start) / (PARTICLES * STEPS) * 1e9

    for kind in trackers:
        run(kind)
    rows = [{kind: run(kind) for kind in trackers} for _ in range(REPEATS)]
    medians = {k: float(np.median([row[k] for row in rows])) for k in trackers}
    ratios = {
        f"{kind} over flat": float(np.median([row[kind] / row["flat"] for row in rows]))
        for kind in ("sphere", "C-grid")
    }
    return {**medians, **ratios}


def measure_errors(dtype: str, steps: int) -> float:
    """Return how far solid rotation over the poles ends from where it began."""
    speed = 2 * np.pi * EARTH_RADIUS / PERIOD

    def velocity(positions, t):
        lon, lat = (jnp.radians(positions[:, c]) for c in (0, 1))
        return speed * jnp.stack([jnp.sin(lat) * jnp.cos(lon), -jnp.sin(lon)], 1)

    seeds = np.array([[170.0, 30, 0], [-100, -60, 0], [45, 88, 0], [0, 90, 0]])
    with jax.enable_x64(dtype == "float64"):
        field = as_field(velocity, geometry="sphere")
        run = jax.jit(lambda s: simulate(field, s, [0.0, PERIOD], substeps=steps))
        ends = np.asarray(run(jnp.asarray(seeds, dtype)).positions)[-1]
    return float(great_circle(ends, seeds).max())


def main() -> None:
    """Print everything as JSON."""
    counts = (144, 288, 576, 3456, 17280)
    found = {
        "nanoseconds per particle-step, by levels": {
            levels: measure_rates(levels) for levels in (1, 20)
        },
        "meters off, by steps": {
            dtype: {steps: measure_errors(dtype, steps) for steps in counts}
            for dtype in ("float32", "float64")
        },
    }
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
