"""Measure particle tracking and print JSON, beside a plain JAX scan and numba.

python benchmarks/trace.py > trace.json
python benchmarks/trace.py grid mesh --particles 1000000 10000000

Cases of one group run in turns. `grid` compares ours with a scan written by hand and,
where numba is installed, with its loop; `kernel` has the program alone; `small` is a
short run, `job` the users' document's; `mesh` has tetrahedra and warped hexahedra;
`build` makes fields of shuffled tetrahedra, on lattices of `--sides` nodes a side,
reads them from the cache, and tracks in them; `cores` compares one core with all;
`gradient` is the reverse mode; `export` a .vtp file.
"""

import argparse
import functools
import importlib.util
import itertools
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxrig import compile_once, compiled_memory
from jaxrig.bench import Benchmark, Measurement, document, run_benchmark
from jaxrig.timing import compare
from jaxtrace.analysis.flow_maps import ftle
from jaxtrace.benchmarks import (
    BOX,
    GRID,
    NODES,
    SLICES,
    SPAN,
    box_hexahedra,
    box_tetrahedra,
    grid_gyre,
    gyre_slices,
    lattice_nodes,
    mesh_gyre,
)
from jaxtrace.config import configure
from jaxtrace.fields.mesh import make_mesh_field
from jaxtrace.io.vtk_export import export_trajectory_to_vtk
from jaxtrace.tracking import (
    continuous_inlet_boundary_factory,
    create_tracker,
    random_seeds,
    reflective_boundary,
    simulate,
)
from jaxtrace.tracking.schedule import even_steps, make_schedule
from jaxtrace.tracking.step import Method
from jaxtrace.tracking.time_loop import (
    advance,
    advance_in_lanes,
    allow_one_program,
    begin,
    first_instant,
    make_dynamics,
)

STEPS = 240
DT = 4.0 / STEPS


def last_positions(field: Any, seeds: Any, steps: int) -> Any:
    """Track and keep the last frame only."""
    tracker = create_tracker(
        "rk4", field, reflective_boundary(BOX), recording_interval=steps
    )
    return tracker.track_particles(seeds, (0.0, steps * DT), steps + 1).positions[-1]


@functools.partial(jax.jit, static_argnums=2)
def plain_scan(table: Any, points: Any, steps: int) -> Any:
    """The same run as one would write it: one gather of sixteen corners."""
    nx, ny, nz = GRID
    size = BOX[1] - BOX[0]
    scale = jnp.asarray((np.array(GRID) - 1) / size, np.float32)
    corners = np.array(
        [
            ((t * nx + i) * ny + j) * nz + k
            for t, i, j, k in itertools.product((0, 1), repeat=4)
        ]
    )

    def velocity(p: Any, time: Any) -> Any:
        along = time * (SLICES - 1) / (SPAN[1] - SPAN[0])
        slot = jnp.clip(jnp.floor(along).astype(jnp.int32), 0, SLICES - 2)
        g = p * scale
        cell = jnp.clip(
            jnp.floor(g).astype(jnp.int32), 0, jnp.array([nx - 2, ny - 2, nz - 2])
        )
        parts = jnp.concatenate([jnp.full((len(p), 1), along - slot), g - cell], 1)
        base = ((slot * nx + cell[:, 0]) * ny + cell[:, 1]) * nz + cell[:, 2]
        found = table.at[base[:, None] + corners].get(mode="promise_in_bounds")
        weight = jnp.ones((len(p), 1))
        for axis in range(4):
            part = parts[:, axis : axis + 1]
            pair = jnp.stack([1 - part, part], 2)
            weight = (weight[:, :, None] * pair).reshape(len(p), -1)
        return jnp.einsum("nc,ncd->nd", weight, found)

    def step(p: Any, number: Any) -> tuple[Any, None]:
        t = number * DT
        k1 = velocity(p, t)
        k2 = velocity(p + DT / 2 * k1, t + DT / 2)
        k3 = velocity(p + DT / 2 * k2, t + DT / 2)
        k4 = velocity(p + DT * k3, t + DT)
        return p + DT / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

    return jax.lax.scan(step, points, jnp.arange(steps))[0]


def numba_loop(table: np.ndarray) -> Callable[[np.ndarray, int], np.ndarray]:
    """The same run as a parallel loop over particles."""
    import numba  # pyright: ignore[reportMissingImports]

    nx, ny, nz = GRID
    sx, sy, sz = (np.array(GRID) - 1) / (BOX[1] - BOX[0])
    st = (SLICES - 1) / (SPAN[1] - SPAN[0])

    @numba.njit(fastmath=True, inline="always")
    def place(g, count):
        index = min(max(int(np.floor(g)), 0), count - 2)
        return index, g - index

    @numba.njit(fastmath=True, inline="always")
    def velocity(table, x, y, z, time):
        k, wt = place(time * st, SLICES)
        i, fx = place(x * sx, nx)
        j, fy = place(y * sy, ny)
        m, fz = place(z * sz, nz)
        u = v = w = 0.0
        for a in range(2):
            pa = wt if a else 1 - wt
            for b in range(2):
                pb = pa * (fx if b else 1 - fx)
                for c in range(2):
                    pc = pb * (fy if c else 1 - fy)
                    for d in range(2):
                        share = pc * (fz if d else 1 - fz)
                        q = table[k + a, i + b, j + c, m + d]
                        u += share * q[0]
                        v += share * q[1]
                        w += share * q[2]
        return u, v, w

    @numba.njit(parallel=True, fastmath=True)
    def run(table, start, steps):
        ends = np.empty_like(start)
        for n in numba.prange(start.shape[0]):
            x, y, z = start[n, 0], start[n, 1], start[n, 2]
            for s in range(steps):
                t, h = s * DT, 0.5 * DT
                a1, b1, c1 = velocity(table, x, y, z, t)
                a2, b2, c2 = velocity(table, x + h * a1, y + h * b1, z + h * c1, t + h)
                a3, b3, c3 = velocity(table, x + h * a2, y + h * b2, z + h * c2, t + h)
                a4, b4, c4 = velocity(
                    table, x + DT * a3, y + DT * b3, z + DT * c3, t + DT
                )
                x += DT / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
                y += DT / 6 * (b1 + 2 * b2 + 2 * b3 + b4)
                z += DT / 6 * (c1 + 2 * c2 + 2 * c3 + c4)
            ends[n, 0], ends[n, 1], ends[n, 2] = x, y, z
        return ends

    return lambda start, steps: run(table, start.astype(np.float64), steps)


def measurements(
    runs: dict[str, Callable[[], Any]], items: int, shapes: dict[str, Any], repeats: int
) -> list[Measurement]:
    timings = compare(runs, repeats=repeats)
    return [
        Measurement(n, t, items, "particle-steps", shapes) for n, t in timings.items()
    ]


def grid_group(particles: list[int]) -> list[Measurement]:
    """Ours, the plain scan and numba, in turns; only the end is kept."""
    field = grid_gyre()
    _, points = lattice_nodes(GRID)
    _, values = gyre_slices(points, SLICES)
    table = jnp.asarray(values.reshape(-1, 3))
    loop = numba_loop(values) if importlib.util.find_spec("numba") else None
    on_gpu = jax.default_backend() == "gpu"
    found = []
    for count in particles:
        seeds = random_seeds(count, 0.05 + 0.9 * BOX)
        device = jnp.asarray(seeds)
        steps = STEPS if on_gpu or count <= 10_000 else STEPS // 4
        runs = {
            f"ours, {count:,}": lambda d=device, s=steps: last_positions(field, d, s),
            f"plain scan, {count:,}": lambda d=device, s=steps: plain_scan(table, d, s),
        }
        if loop is not None and not on_gpu:
            runs[f"numba, {count:,}"] = lambda p=seeds, s=steps: loop(p, s)
        shapes = {
            "grid": list(GRID),
            "slices": SLICES,
            "particles": count,
            "steps": steps,
        }
        found += measurements(runs, count * steps, shapes, 5)
    return found


def end_program(
    field: Any,
    boundary: Any,
    seeds: Any,
    frames: np.ndarray | None = None,
    loop: Callable[..., Any] = advance,
) -> Callable[[], Any]:
    """The compiled computation of the end alone, with all it needs on the device."""
    points = jnp.asarray(seeds)
    frames = np.linspace(*SPAN, 1500) if frames is None else frames
    method = Method("rk4", particles=len(points))
    dynamics = make_dynamics(field, boundary, None, 0)
    steps = even_steps(frames, 1).joined(len(frames) - 1)
    ends = frames[[0, -1]]
    plan = make_schedule(dynamics.field, ends, steps, method.tableau, points.dtype)
    plan = jax.device_put(plan)
    instant = first_instant(dynamics.field, frames, points.dtype)
    allow_one_program(begin)
    particles, _ = begin(dynamics, points, instant, method)
    run = compile_once(lambda w, p, s: loop(w, p, s, method)[0].positions)
    return lambda: run(dynamics, particles, plan)


def job_group(particles: list[int]) -> list[Measurement]:
    """The document's job: 7,500 particles, 1,500 frames, results on the host."""
    del particles
    field, seeds = grid_gyre(), random_seeds(7_500, BOX)
    mirrors = reflective_boundary(BOX)
    counts = {"x": 30, "y": 25, "z": 10}
    inlet = continuous_inlet_boundary_factory(
        BOX, inlet_distribution="grid", concentrations=counts
    )
    random = continuous_inlet_boundary_factory(BOX, inlet_distribution="uniform")
    folder = Path(tempfile.mkdtemp())
    number = itertools.count()

    def track(boundary: Any = mirrors, **options: Any) -> Any:
        output = options.pop("output", None)
        path = folder / f"run{next(number)}.zarr" if output else None
        tracker = create_tracker("rk4", field, boundary, **options)
        return tracker.track_particles(seeds, SPAN, 1500, output=path).positions

    runs: dict[str, Callable[[], Any]] = {
        "reflective": track,
        "reflective, end only": lambda: track(recording_interval=1499),
        "reflective, end only, program alone": end_program(field, mirrors, seeds),
        "inlet, grid": lambda: track(inlet),
        "inlet, uniform": lambda: track(random),
        "batches of 500": lambda: track(batch_size=500),
        "progress": lambda: track(progress_callback=lambda fraction: None),
    }
    if importlib.util.find_spec("zarr"):
        runs["streamed to zarr, progress"] = lambda: track(
            progress_callback=lambda fraction: None, output=True
        )
    shapes = {"grid": list(GRID), "slices": SLICES, "particles": 7500, "frames": 1500}
    repeats = 15 if jax.default_backend() == "gpu" else 8
    return measurements(runs, 7_500 * 1_499, shapes, repeats)


def warped_hexahedra() -> Any:
    """The lattice's hexahedra with inner nodes moved by up to 15 % of a cell."""
    axes, points = lattice_nodes(NODES)
    rng = np.random.default_rng(0)
    moved = points.copy()
    widths = np.array([a[1] - a[0] for a in axes])
    inner = (slice(1, -1),) * 3
    moved[inner] += (rng.random(moved[inner].shape) - 0.5) * 0.3 * widths
    times, values = gyre_slices(moved, SLICES)
    flat = values.reshape(SLICES, -1, 3)
    nodes = moved.reshape(-1, 3)
    return make_mesh_field(
        nodes, box_hexahedra(NODES), flat, kind="hexahedron", times=times
    )


def mesh_group(particles: list[int]) -> list[Measurement]:
    """Tetrahedra and warped hexahedra; only the end is kept."""
    tetrahedra, hexahedra = mesh_gyre(), warped_hexahedra()
    found = []
    for count in particles:
        seeds = jnp.asarray(random_seeds(count, BOX))
        steps = STEPS if jax.default_backend() == "gpu" else 60
        runs = {
            f"tetrahedra, {count:,}": lambda d=seeds, s=steps: last_positions(
                tetrahedra, d, s
            ),
            f"hexahedra, {count:,}": lambda d=seeds, s=steps: last_positions(
                hexahedra, d, s
            ),
        }
        shapes = {
            "nodes": list(NODES),
            "slices": SLICES,
            "particles": count,
            "steps": steps,
        }
        found += measurements(runs, count * steps, shapes, 3)
    if importlib.util.find_spec("vtkmodules"):
        found += vtk_tracing(min(particles), 60)
    return found


def vtk_tracing(count: int, steps: int) -> list[Measurement]:
    """VTK's tracer in the first slice of the tetrahedra."""
    points = lattice_nodes(NODES)[1].reshape(-1, 3)
    values = gyre_slices(points, SLICES)[1][0]
    grid = vtk_grid(points, box_tetrahedra(NODES), values)
    run = vtk_streams(grid, random_seeds(count, 0.05 + 0.9 * BOX), steps)
    name = f"vtkStreamTracer, steady, tetrahedra, {count:,}"
    return measurements({name: run}, run(), {"particles": count}, 3)


def shuffled_tetrahedra(side: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points, cells and values of a lattice, nodes and cells in random order."""
    shape = side, side, side
    _, points = lattice_nodes(shape)
    rng = np.random.default_rng(0)
    order = rng.permutation(side**3)
    place = np.argsort(order)
    cells = rng.permutation(place[box_tetrahedra(shape)])
    points = points.reshape(-1, 3)[order]
    return points, cells, gyre_slices(points, 1)[1][0]


def vtk_grid(points: np.ndarray, cells: np.ndarray, values: np.ndarray) -> Any:
    """The same mesh as VTK has it, with a steady velocity."""
    from vtkmodules.util.numpy_support import numpy_to_vtk, numpy_to_vtkIdTypeArray
    from vtkmodules.vtkCommonCore import vtkPoints
    from vtkmodules.vtkCommonDataModel import (
        VTK_TETRA,
        vtkCellArray,
        vtkUnstructuredGrid,
    )

    grid, places, tetrahedra = vtkUnstructuredGrid(), vtkPoints(), vtkCellArray()
    places.SetData(numpy_to_vtk(np.asarray(points, np.float32), deep=True))
    tetrahedra.SetData(
        4, numpy_to_vtkIdTypeArray(np.asarray(cells, np.int64).ravel(), deep=True)
    )
    grid.SetPoints(places)
    grid.SetCells(VTK_TETRA, tetrahedra)
    velocity = numpy_to_vtk(np.asarray(values, np.float32), deep=True)
    velocity.SetName("velocity")
    grid.GetPointData().SetVectors(velocity)
    return grid


def vtk_locators(grid: Any) -> dict[str, Callable[[], Any]]:
    """VTK's two ways to prepare a mesh for finding cells."""
    from vtkmodules.vtkCommonDataModel import vtkCellTreeLocator, vtkStaticCellLocator

    def build(make: Callable[[], Any]) -> None:
        locator = make()
        locator.SetDataSet(grid)
        locator.BuildLocator()

    return {
        make.__name__: functools.partial(build, make)
        for make in (vtkStaticCellLocator, vtkCellTreeLocator)
    }


def vtk_streams(grid: Any, seeds: np.ndarray, steps: int) -> Callable[[], int]:
    """VTK's tracer of steady flow with Runge-Kutta steps of a hundredth of the box.

    Its steps are even in length, not in time; the call returns how many it took.
    """
    from vtkmodules.util.numpy_support import numpy_to_vtk
    from vtkmodules.vtkCommonCore import vtkPoints
    from vtkmodules.vtkCommonDataModel import vtkPolyData
    from vtkmodules.vtkFiltersFlowPaths import vtkStreamTracer

    places, start = vtkPoints(), vtkPolyData()
    places.SetData(numpy_to_vtk(np.asarray(seeds, np.float64), deep=True))
    start.SetPoints(places)

    def run() -> int:
        tracer = vtkStreamTracer()
        tracer.SetInputData(grid)
        tracer.SetSourceData(start)
        tracer.SetIntegratorTypeToRungeKutta4()
        tracer.SetIntegrationStepUnit(vtkStreamTracer.LENGTH_UNIT)
        tracer.SetInitialIntegrationStep(0.01)
        tracer.SetMaximumPropagation(0.01 * steps)
        tracer.SetMaximumNumberOfSteps(steps)
        tracer.SetComputeVorticity(False)
        tracer.Update()
        lines = tracer.GetOutput()
        return lines.GetNumberOfPoints() - lines.GetNumberOfLines()

    return run


def build_group(particles: list[int], sides: list[int]) -> list[Measurement]:
    """From arrays to a field that is ready, and tracking in it to the end alone."""
    found = []
    for side in sides:
        points, cells, values = shuffled_tetrahedra(side)
        make = functools.partial(make_mesh_field, points, cells, values, kind="tetra")
        folder = tempfile.TemporaryDirectory()
        again = functools.partial(make, cache=folder.name)
        runs = {"build": make, "read from the cache": again}
        if importlib.util.find_spec("vtkmodules"):
            runs |= vtk_locators(vtk_grid(points, cells, values))
        with folder:
            timings = compare(runs, repeats=3)
        shapes: dict[str, Any] = {"nodes": len(points), "cells": len(cells)}
        for name, timing in timings.items():
            name = f"{name}, {len(cells):,} tetrahedra"
            found.append(Measurement(name, timing, len(cells), "cells", shapes))
        field = make()
        for count in particles:
            seeds = jnp.asarray(random_seeds(count, BOX))
            steps = STEPS if jax.default_backend() == "gpu" else 60
            name = f"{count:,} particles in {len(cells):,} tetrahedra"
            runs = {name: lambda d=seeds, s=steps, f=field: last_positions(f, d, s)}
            here = {**shapes, "particles": count, "steps": steps}
            found += measurements(runs, count * steps, here, 3)
    return found


def cores_group(particles: list[int]) -> list[Measurement]:
    """The same runs on one core and on all of them."""
    grid, tetrahedra = grid_gyre(), mesh_gyre()
    axes = np.linspace(0.1, 1.9, 120), np.linspace(0.1, 0.9, 60)

    every = sorted(os.sched_getaffinity(0))

    def on(cores: int | None, run: Callable[[], Any]) -> Callable[[], Any]:
        def measured() -> Any:
            configure(cores=cores)
            # XLA has threads of its own, which must stay on those cores too.
            for thread in os.listdir("/proc/self/task"):
                os.sched_setaffinity(int(thread), every[:cores])
            return run()

        return measured

    found = []
    for count in particles:
        seeds = jnp.asarray(random_seeds(count, 0.05 + 0.9 * BOX))
        steps = STEPS if count <= 10_000 else STEPS // 4
        cases = {
            "grid": lambda d=seeds, s=steps: last_positions(grid, d, s),
            "tetrahedra": lambda d=seeds, s=steps: last_positions(tetrahedra, d, s),
        }
        for name, run in cases.items():
            both = {
                f"{name}, {count:,}, one core": on(1, run),
                f"{name}, {count:,}, all cores": on(None, run),
            }
            shapes = {"particles": count, "steps": steps}
            found += measurements(both, count * steps, shapes, 5)
    exponents = lambda: ftle(grid, axes, 0.0, 1.0, n_steps=64, level=0.5)
    both = {"FTLE, one core": on(1, exponents), "FTLE, all cores": on(None, exponents)}
    return found + measurements(both, 7_200 * 64, {"nodes": 7_200, "steps": 64}, 5)


def gradient_group(particles: list[int]) -> list[Measurement]:
    """The reverse mode through 240 steps of 7,500 particles, beside the forward run."""
    del particles
    field = grid_gyre()
    seeds = jnp.asarray(random_seeds(7_500, BOX))
    times = np.linspace(0, STEPS * DT, STEPS + 1)

    def ends(points: Any, field: Any) -> Any:
        return jnp.sum(simulate(field, points, times).final.positions[:, 0])

    def plain(points: Any, table: Any) -> Any:
        return jnp.sum(plain_scan(table, points, STEPS)[:, 0])

    _, nodes = lattice_nodes(GRID)
    table = jnp.asarray(gyre_slices(nodes, SLICES)[1].reshape(-1, 3))
    programs = {
        "forward": (jax.jit(ends), field),
        "reverse": (jax.jit(jax.grad(ends)), field),
        "plain scan, forward": (jax.jit(plain), table),
        "plain scan, reverse": (jax.jit(jax.grad(plain)), table),
    }
    sizes = {
        name: {
            "particles": 7500,
            "steps": STEPS,
            "bytes": compiled_memory(program, seeds, given).total,
        }
        for name, (program, given) in programs.items()
    }
    timings = compare(
        {n: functools.partial(p, seeds, given) for n, (p, given) in programs.items()},
        repeats=3,
    )
    return [
        Measurement(n, t, 7_500 * STEPS, "particle-steps", sizes[n])
        for n, t in timings.items()
    ]


def export_group(particles: list[int]) -> list[Measurement]:
    """The document's trajectory to one .vtp file."""
    del particles
    tracker = create_tracker("rk4", grid_gyre((16, 8, 4)), reflective_boundary(BOX))
    trajectory = tracker.track_particles(random_seeds(7_500, BOX), SPAN, 1500)
    path = Path(tempfile.mkdtemp()) / "paths.vtp"
    timings = compare(
        {"vtp": lambda: export_trajectory_to_vtk(trajectory, path)["mode"]}, repeats=3
    )
    shapes = {"particles": 7500, "frames": 1500}
    return [Measurement("vtp", timings["vtp"], 7_500 * 1_500, "points", shapes)]


def small_group(particles: list[int]) -> list[Measurement]:
    """A run so short that all but the program counts: 200 steps, end only."""
    field, seeds = grid_gyre(), random_seeds(7_500, BOX)
    shapes = {"particles": 7_500, "steps": 200}
    runs = {"7,500 x 200, end only": lambda: last_positions(field, seeds, 200)}
    return measurements(runs, 7_500 * 200, shapes, 20)


def kernel_group(particles: list[int]) -> list[Measurement]:
    """The program alone as XLA's loop and, on a GPU, as one kernel for all steps."""
    field, boundary, found = grid_gyre(), reflective_boundary(BOX), []
    frames = np.arange(STEPS + 1) * DT
    loops: dict[str, Callable[..., Any]] = {"loop": advance}
    if jax.default_backend() == "gpu":
        loops["one kernel"] = advance_in_lanes
    for count in particles:
        seeds = jnp.asarray(random_seeds(count, BOX))
        cells = np.asarray(field.order(seeds, ()))
        seeds = seeds[np.argsort(cells)]  # as a run sorts them
        runs = {
            f"{name}, {count:,}": end_program(field, boundary, seeds, frames, loop)
            for name, loop in loops.items()
        }
        shapes = {"particles": count, "steps": STEPS}
        found += measurements(runs, count * STEPS, shapes, 5)
    return found


GROUPS = {
    "grid": grid_group,
    "kernel": kernel_group,
    "small": small_group,
    "job": job_group,
    "mesh": mesh_group,
    "cores": cores_group,
    "build": lambda particles: build_group(particles, chosen.sides),
    "gradient": gradient_group,
    "export": export_group,
}

parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
)
parser.add_argument("groups", nargs="*", help=f"of {', '.join(GROUPS)}; all by default")
parser.add_argument("--particles", type=int, nargs="*", default=[7_500, 100_000])
parser.add_argument("--sides", type=int, nargs="*", default=[70])
chosen = parser.parse_args()
records = [
    record
    for name in chosen.groups or GROUPS
    for record in run_benchmark(
        Benchmark(
            f"trace.{name}", name, functools.partial(GROUPS[name], chosen.particles)
        )
    )
]
print(json.dumps(document(records), indent=1))
