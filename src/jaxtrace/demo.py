"""The tracking section of the demo: mixing on a grid, a channel on a mesh, rates."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.spatial import Delaunay

from jaxrig import report
from jaxrig.progress import Meter, starting
from jaxrig.timing import time_call
from jaxtrace.analysis.flow_maps import ftle
from jaxtrace.benchmarks import gyre_slices
from jaxtrace.fields.analytic import DoubleGyre
from jaxtrace.fields.base import AbstractField
from jaxtrace.fields.grid import make_grid_field
from jaxtrace.fields.mesh import make_mesh_field
from jaxtrace.plot.canvas import particle_canvas
from jaxtrace.tracking.boundary import (
    continuous_inlet_boundary_factory,
    reflective_boundary,
)
from jaxtrace.tracking.seeding import random_seeds, uniform_grid_seeds
from jaxtrace.tracking.tracker import create_tracker
from jaxtrace.trajectory import Trajectory

GYRE_BOX = ((0.0, 0.0), (2.0, 1.0))
GYRE_SPAN, GYRE_FRAMES, GYRE_PARTICLES = (0.0, 15.0), 301, 7_500
GYRE_NODES, GYRE_SLICES = (129, 65), 61
FTLE_NODES = (200, 100)
SHOWN = (1, 99.5)  # percentiles at which the colors of a map end
# All particles at some of the frames: between these the page interpolates.
GYRE_SHOWN, CHANNEL_SHOWN = 61, 81  # frames on a canvas
CHANNEL_BOX = np.array([[-2.0, -1.0, 0.0], [4.0, 1.0, 0.0]])
CYLINDER = 0.4  # radius, about the origin
CHANNEL_SPAN, CHANNEL_FRAMES = (0.0, 12.0), 241
CHANNEL_LANES = {"x": 60, "y": 30, "z": 1}
SPEED, PULSE = 1.0, 0.5  # of the channel, and how much the speed sways
DOCUMENTED = 187_500  # particle-steps per second that users were promised, on a GPU


@dataclass(frozen=True, eq=False)
class Run:
    """A run and how long it took, without compilation."""

    name: str
    trajectory: Trajectory
    seconds: float
    compile_seconds: float

    @property
    def rate(self) -> float:
        """Particle-steps per second."""
        return self.trajectory.N * (self.trajectory.T - 1) / self.seconds


def trace_section(meter: Meter) -> report.Section:
    """Make the section of the demo about particle tracking."""
    gyre = run_gyre(meter)
    channel = run_channel(meter)
    return report.Section(
        "Particle tracking",
        channel_row(channel),
        report.Fold("The particles above: mixing on a grid", gyre_words(gyre)),
        report.Fold("Rates, claimed and measured", *rate_parts([gyre, channel])),
        id="trace",
        hero=gyre_canvas(gyre),
    )


def run_gyre(meter: Meter) -> Run:
    """Track particles of the oscillating double gyre, held as slices on a grid."""
    axes = [
        np.linspace(lo, hi, n) for lo, hi, n in zip(*GYRE_BOX, GYRE_NODES, strict=True)
    ]
    points = np.stack(np.meshgrid(*axes, [0.0], indexing="ij"), -1)
    times, values = gyre_slices(points, GYRE_SLICES, GYRE_SPAN)
    field = make_grid_field(values, (*axes, [0.0]), times)
    seeds = random_seeds(GYRE_PARTICLES, np.transpose(GYRE_BOX), rng_seed=1)
    boundary = reflective_boundary(np.transpose(GYRE_BOX))
    what = ("a grid with reflecting boundaries", field, boundary, seeds)
    return track(*what, GYRE_SPAN, GYRE_FRAMES, meter)


def run_channel(meter: Meter) -> Run:
    """Track particles past a cylinder in a channel, on triangles, with an inlet."""
    field = channel_field()
    boundary = continuous_inlet_boundary_factory(
        CHANNEL_BOX, concentrations=CHANNEL_LANES
    )
    lattice = uniform_grid_seeds(tuple(CHANNEL_LANES.values()), CHANNEL_BOX)
    free = np.hypot(lattice[:, 0], lattice[:, 1]) > CYLINDER
    what = ("a mesh with a continuous inlet", field, boundary, lattice[free])
    return track(*what, CHANNEL_SPAN, CHANNEL_FRAMES, meter)


def track(
    name: str,
    field: AbstractField,
    boundary: Any,
    seeds: np.ndarray,
    span: tuple[float, float],
    frames: int,
    meter: Meter,
) -> Run:
    """Track and time."""
    meter.compiling(f"tracking on {name}")
    progress = starting(meter, f"tracking on {name}")
    tracker = create_tracker("rk4", field, boundary, progress_callback=progress)
    found, seconds, compiling = time_call(tracker.track_particles, seeds, span, frames)
    meter.stop()
    return Run(name, found, seconds, compiling)


def channel_field(slices: int = 13) -> AbstractField:
    """Return a potential flow past a cylinder whose speed sways, on triangles."""
    points, cells = cylinder_mesh()
    u, v = potential_flow(points[:, 0], points[:, 1])
    steady = np.stack([u, v, np.zeros_like(u)], 1)
    times = np.linspace(*CHANNEL_SPAN, slices)
    sway = 1 + PULSE * np.sin(2 * np.pi * times / 6.0)
    values = sway[:, None, None] * steady[None]
    return make_mesh_field(points, cells, values, kind="triangle", times=times)


def potential_flow(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both components of the velocity past the cylinder, outside of it."""
    square = x * x + y * y
    u = 1 - CYLINDER**2 * (x * x - y * y) / square**2
    v = -2 * CYLINDER**2 * x * y / square**2
    return SPEED * u, SPEED * v


def cylinder_mesh(
    spacing: float = 0.1, rings: int = 8
) -> tuple[Float[np.ndarray, "nodes 3"], np.ndarray]:
    """Return triangles of a channel around a cylinder, finer towards it."""
    (left, low, _), (right, high, _) = CHANNEL_BOX
    across = np.linspace(left, right, round((right - left) / spacing) + 1)
    up = np.linspace(low, high, round((high - low) / spacing) + 1)
    box = np.stack(np.meshgrid(across, up, indexing="ij"), -1).reshape(-1, 2)
    radii = CYLINDER * 1.08 ** np.arange(rings)
    angles = np.linspace(0, 2 * np.pi, 72, endpoint=False)
    circle = np.stack([np.cos(angles), np.sin(angles)], 1)
    near = (radii[:, None, None] * circle).reshape(-1, 2)
    far = box[np.hypot(*box.T) > radii[-1] + spacing / 2]
    points = np.concatenate([near, far])
    cells = Delaunay(points).simplices
    middle = points[cells].mean(axis=1)
    # The chords of the circle cut off a little of it: their triangles lie inside.
    inside = np.hypot(*middle.T) < CYLINDER * np.cos(np.pi / len(angles))
    return np.pad(points, ((0, 0), (0, 1))), cells[~inside]


def gyre_canvas(run: Run) -> report.Points:
    """Show the particles over the exponent of their flow."""
    # The middles of cells: along the walls the exponent is far larger than elsewhere.
    axes = [
        lo + (np.arange(n) + 0.5) * (hi - lo) / n
        for lo, hi, n in zip(*GYRE_BOX, FTLE_NODES, strict=True)
    ]
    start, end = GYRE_SPAN
    exponent = ftle(DoubleGyre(), axes, start, end - start)
    low, high = np.percentile(exponent, SHOWN)
    return particle_canvas(
        run.trajectory,
        bounds=np.transpose(GYRE_BOX),
        background=np.clip(exponent, low, high),
        max_particles=GYRE_PARTICLES,
        max_frames=GYRE_SHOWN,
        trail=3,
        first=-1,
        autoplay=True,
        alt="Particles of the double gyre over the Lyapunov exponent",
    )


def gyre_words(run: Run) -> report.Text:
    """Say what the particles show."""
    return report.Text(
        f"{run.trajectory.N:,} particles in the double gyre, two vortices that "
        f"oscillate from side to side, tracked through {GYRE_SLICES} slices on a "
        f"grid of {GYRE_NODES[0]} x {GYRE_NODES[1]} nodes. The color is where a "
        "particle began, the shade the finite-time Lyapunov exponent: particles on "
        "opposite sides of a bright ridge separate."
    )


def channel_row(run: Run) -> report.Part:
    """Show the channel as an animation, and how many particles passed it."""
    found = run.trajectory
    entered = int((found.generation[-1] - found.generation[0]).sum())
    canvas = particle_canvas(
        found,
        bounds=CHANNEL_BOX,
        background=channel_shade(),
        color="age",
        max_particles=found.N,
        max_frames=CHANNEL_SHOWN,
        trail=3,
        radius=2.0,
        first=-1,
        autoplay=True,
        alt="Particles in a channel with a cylinder",
    )
    return report.Beside(
        canvas,
        report.Heading("Your flow, your particles, on meshes and grids"),
        report.Text(
            f"{found.N:,} particles in a pulsing flow past a cylinder, on triangles. "
            "A particle that leaves on the right frees its slot for one that enters on "
            f"the left in the same lane; {entered:,} did. The gray shade is the mean "
            f"speed. This run: {run.rate / 1e6:.1f} million particle-steps a second."
        ),
        report.Code(
            "jaxrig trace new case.toml FILES  # VTK, netCDF, ...\n"
            "jaxrig trace run case.toml        # or resume it"
        ),
    )


def channel_shade(per_unit: int = 80) -> Float[np.ndarray, "across up"]:
    """Return 1 in the cylinder, up to a half with the speed, per pixel."""
    (left, low, _), (right, high, _) = CHANNEL_BOX
    x = np.linspace(left, right, round((right - left) * per_unit))
    y = np.linspace(low, high, round((high - low) * per_unit))
    grid = np.meshgrid(x, y, indexing="ij")
    inside = np.hypot(*grid) < CYLINDER
    # Nowhere does it exceed twice the speed far away.
    speed = np.hypot(*potential_flow(*np.where(inside, 1.0, grid)))
    return np.where(inside, 1.0, speed / (4 * SPEED))


def rate_parts(runs: Sequence[Run]) -> list[report.Part]:
    """Compare the rates of these runs with the documented ones."""
    columns = ("run", "particles", "frames", "particle-steps per second", "to compile")
    rows = [
        (
            f"this run: {run.name}",
            run.trajectory.N,
            run.trajectory.T,
            round(run.rate),
            f"{run.compile_seconds:.1f} s",
        )
        for run in runs
    ]
    rows.append(("as documented, on a GPU", 7_500, 1_500, DOCUMENTED, "10 to 30 s"))
    return [
        report.Heading("Claimed vs. measured"),
        report.Text(
            "Classic Runge-Kutta with four stages per step, measured from seeds to a "
            "trajectory in host memory with every frame recorded."
        ),
        report.Table(columns, rows),
    ]
