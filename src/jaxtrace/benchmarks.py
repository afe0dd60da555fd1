"""What tracking costs: particle-steps per second on grids and meshes, and of inlets.

A particle-step is one particle over one frame interval, four stages of classic
Runge-Kutta. Runs go from seeds on the host to a trajectory on the host.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from jaxrig.bench import Benchmark, Measurement
from jaxrig.memory import tree_bytes
from jaxrig.timing import compare
from jaxtrace.fields.analytic import DoubleGyre
from jaxtrace.fields.base import AbstractField
from jaxtrace.fields.grid import make_grid_field
from jaxtrace.fields.mesh import make_mesh_field
from jaxtrace.tracking.boundary import (
    continuous_inlet_boundary_factory,
    reflective_boundary,
)
from jaxtrace.tracking.seeding import random_seeds
from jaxtrace.tracking.tracker import create_tracker

BOX = np.array([[0.0, 0.0, 0.0], [2.0, 1.0, 1.0]])
SPAN = (0.0, 4.0)
GRID, SLICES = (128, 64, 32), 40
NODES = (32, 32, 20)
PARTICLES, FRAMES = 7_500, 101
REPEATS = 5
# Six tetrahedra around the diagonal of a hexahedron.
TETRAHEDRA = (
    *((0, 1, 2, 6), (0, 2, 3, 6), (0, 3, 7, 6)),
    *((0, 7, 4, 6), (0, 4, 5, 6), (0, 5, 1, 6)),
)


def lattice_nodes(shape: tuple[int, int, int]) -> tuple[list[np.ndarray], np.ndarray]:
    """Return even axes over the box, and the nodes they span (nx, ny, nz, 3)."""
    axes = [np.linspace(lo, hi, n) for lo, hi, n in zip(*BOX, shape, strict=True)]
    return axes, np.stack(np.meshgrid(*axes, indexing="ij"), -1)


def gyre_slices(
    points: np.ndarray, slices: int, span: tuple[float, float] = SPAN
) -> tuple[np.ndarray, np.ndarray]:
    """Return times, and the velocity of the double gyre at points (..., 3) at each."""
    flow, times = DoubleGyre(), np.linspace(*span, slices)
    rows = points.reshape(-1, 3).astype(np.float32)
    found = [np.asarray(flow.sample_at_positions(rows, float(t))) for t in times]
    return times, np.stack(found).reshape(slices, *points.shape)


def grid_gyre(
    shape: tuple[int, int, int] = GRID, slices: int = SLICES
) -> AbstractField:
    """Return the double gyre as slices on a grid."""
    axes, points = lattice_nodes(shape)
    times, values = gyre_slices(points, slices)
    return make_grid_field(values, axes, times)


def mesh_gyre(
    shape: tuple[int, int, int] = NODES, slices: int = SLICES
) -> AbstractField:
    """Return the double gyre as slices on tetrahedra."""
    _, points = lattice_nodes(shape)
    times, values = gyre_slices(points, slices)
    rows, cells = points.reshape(-1, 3), box_tetrahedra(shape)
    flat = values.reshape(slices, -1, 3)
    return make_mesh_field(rows, cells, flat, kind="tetra", times=times)


def box_hexahedra(shape: tuple[int, int, int]) -> np.ndarray:
    """Return rows of eight nodes that fill a lattice of nodes in "ij" order."""
    number = np.arange(np.prod(shape)).reshape(shape)
    corners = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)]
    corners += [(x, y, 1) for x, y, _ in corners]
    nx, ny, nz = (n - 1 for n in shape)
    return np.stack(
        [number[i : nx + i, j : ny + j, k : nz + k].ravel() for i, j, k in corners], 1
    )


def box_tetrahedra(shape: tuple[int, int, int]) -> np.ndarray:
    """Return rows of four nodes: six tetrahedra in every hexahedron of a lattice."""
    return box_hexahedra(shape)[:, np.array(TETRAHEDRA)].reshape(-1, 4)


def track_benchmark(
    make_field: Callable[[], AbstractField],
    boundaries: dict[str, Callable[[], Any]],
    shapes: dict[str, Any],
    particles: int = PARTICLES,
    frames: int = FRAMES,
    repeats: int = REPEATS,
) -> list[Measurement]:
    """Measure the same run with several boundaries, in turns."""
    field, seeds = make_field(), random_seeds(particles, BOX)
    runs = {}
    for name, make in boundaries.items():
        tracker = create_tracker("rk4", field, make())
        run = functools.partial(tracker.track_particles, seeds, SPAN, frames)
        runs[name] = lambda run=run: run().positions
    timings = compare(runs, repeats=repeats)
    sizes = {**shapes, "particles": particles, "frames": frames}
    return [
        Measurement(
            name,
            timing,
            particles * (frames - 1),
            "particle-steps",
            sizes,
            tree_bytes(field),
        )
        for name, timing in timings.items()
    ]


_reflective = functools.partial(reflective_boundary, BOX)
_inlet = functools.partial(
    continuous_inlet_boundary_factory, BOX, concentrations={"x": 1, "y": 25, "z": 10}
)


def grid_benchmark() -> list[Measurement]:
    """Measure an unsteady grid, with reflection and with a continuous inlet."""
    boundaries: dict[str, Callable[[], Any]] = {
        "reflective": _reflective,
        "continuous inlet": _inlet,
    }
    shapes = {"grid": list(GRID), "slices": SLICES}
    return track_benchmark(grid_gyre, boundaries, shapes)


def mesh_benchmark() -> list[Measurement]:
    """Measure unsteady tetrahedra with reflection."""
    shapes = {"nodes": list(NODES), "slices": SLICES}
    return track_benchmark(mesh_gyre, {"reflective": _reflective}, shapes)


BENCHMARKS = (
    Benchmark("trace.grid", "particles in an unsteady flow on a grid", grid_benchmark),
    Benchmark("trace.mesh", "particles on a tetrahedral mesh", mesh_benchmark),
)
