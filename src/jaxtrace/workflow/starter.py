"""A commented case to begin with: for a flow, or fitted to the data in files."""

import glob
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxtrace.bounds import AXES, PLANES
from jaxtrace.fields.curvilinear import CurvilinearGrid
from jaxtrace.fields.interpolation import (
    OnGrid,
    choose_scheme,
    make_elements,
)
from jaxtrace.io.formats import open_slices
from jaxtrace.io.geometry import Cells, Geometry, GridAxes
from jaxtrace.workflow.case import as_toml

PARTICLES = 5000  # about so many, spread evenly over the flow
FRAMES = 101
CELL_SHARE = 0.5  # of a cell that a particle crosses in one step, at most
FAST = 0.95  # quantile over the cells that the step is chosen for
STILL = 1e-3  # of the top speed: a velocity across a face that counts as none
LOOKED_AT = 5  # slices, evenly spaced, that the speeds are taken from


@dataclass(frozen=True, eq=False)
class Survey:
    """What a case for data files has to fit: their extent, instants and speeds."""

    names: tuple[str, ...]
    velocity_name: str
    geometry: Geometry
    times: Float[np.ndarray, " slices"]
    notes: tuple[str, ...]
    on_grid: bool
    low: Float[np.ndarray, "3"]
    high: Float[np.ndarray, "3"]
    top_speed: float
    mean_speed: float
    crossings: float  # cells per unit of time, of nearly the fastest
    closed: tuple[bool, bool, bool]  # axes along which nothing passes either end
    allow_nan: bool = False

    @property
    def steady(self) -> bool:
        """Whether there is one instant only."""
        return len(self.times) == 1

    @property
    def radius(self) -> float:
        """The radius of a sphere, 0 where the data are flat."""
        return getattr(self.geometry, "radius", None) or 0.0

    @property
    def round(self) -> bool:
        """Whether positions are longitude and latitude."""
        return self.radius > 0

    @property
    def size(self) -> Float[np.ndarray, "3"]:
        """The extent along each axis."""
        return self.high - self.low


def survey(spec: Any, velocity_name: Any = None, allow_nan: bool = False) -> Survey:
    """Look at the files of a series: the mesh, the times, some of the slices."""
    given: dict[str, Any] = {"allow_nan": True} if allow_nan else {}
    slices = open_slices(spec, velocity_field_name=velocity_name, **given)
    geometry, _ = slices.read_slice(0)
    points = _corners(geometry)
    low, high = points.min(axis=0), points.max(axis=0)
    looked = np.unique(np.linspace(0, len(slices) - 1, LOOKED_AT).astype(int))
    top, total, crossings, closed = 0.0, 0.0, 0.0, np.ones(3, bool)
    for index in looked.tolist():
        there, values = slices.read_slice(index)
        values = np.nan_to_num(values)
        speeds = np.linalg.norm(values.reshape(-1, 3), axis=1)
        if not speeds.any():  # such as the first instant of a flow that begins at rest
            continue
        top, total = max(top, float(speeds.max())), total + float(speeds.mean())
        crossings = max(crossings, _crossing_rate(there, values / _scale(there)))
        closed &= _closed_ends(there, values)
    if not top:
        raise ValueError(
            f"{slices.labels[0]}: the velocity ({slices.velocity_name}) is zero "
            "everywhere: name another array, or files of a later time"
        )
    names = (spec,) if isinstance(spec, str) else tuple(spec)
    return Survey(
        names,
        slices.velocity_name,
        geometry,
        np.asarray(slices.times, np.float64),
        slices.describe(),
        _becomes_grid(geometry),
        low,
        high,
        top,
        total / len(looked),
        crossings,
        (bool(closed[0]), bool(closed[1]), bool(closed[2])),
        allow_nan,
    )


def _scale(geometry: Geometry) -> Any:
    """Return meters per unit of each coordinate: on a sphere, those of degrees."""
    if not isinstance(geometry, GridAxes) or geometry.radius is None:
        return 1.0
    degree = np.radians(geometry.radius)
    scale = np.full((1, geometry.y.size, 1, 3), degree)
    scale[..., 0] *= np.maximum(np.cos(np.radians(geometry.y)), 1e-3)[None, :, None]
    scale[..., 2] = 1.0
    return scale


def _corners(geometry: Geometry) -> np.ndarray:
    if isinstance(geometry, CurvilinearGrid):
        return np.stack(geometry.bounds())
    if not isinstance(geometry, GridAxes):
        return np.asarray(geometry.points, np.float64)
    axes = (geometry.x, geometry.y, geometry.z)
    return np.array([[axis[0] for axis in axes], [axis[-1] for axis in axes]])


def _becomes_grid(geometry: Geometry) -> bool:
    """Return whether the loader keeps these nodes as a grid, which has no walls."""
    if isinstance(geometry, GridAxes | CurvilinearGrid):
        return True
    cells = (geometry.connectivity, geometry.types, geometry.offsets)
    elements = make_elements(*cells) if geometry.has_elements else None
    return isinstance(choose_scheme(geometry.points, elements, "auto", None), OnGrid)


def _crossing_rate(geometry: Geometry, values: np.ndarray) -> float:
    """Return how many cells nearly the fastest particle crosses per unit of time."""
    if isinstance(geometry, GridAxes):
        parts = []
        for axis, nodes in enumerate((geometry.x, geometry.y, geometry.z)):
            if nodes.size > 1:
                shape = [1, 1, 1]
                shape[axis] = -1
                lengths = np.gradient(nodes).reshape(shape)
                parts.append(np.abs(values[..., axis]) / lengths)
        rates = np.max(parts, axis=0) if parts else np.zeros(1)
    elif isinstance(geometry, CurvilinearGrid):
        # Whatever its direction, a velocity crosses the shorter side at the most.
        across = np.linalg.norm(values[..., :2], axis=-1)
        rates = across / np.maximum(geometry.spacing().min(0), 1e-9)[..., None]
        if geometry.z.size > 1:
            rises = np.abs(values[..., 2]) / np.gradient(geometry.z)
            rates = np.maximum(rates, rises)
    elif geometry.n_cells:
        nodes, starts = geometry.connectivity, geometry.offsets[:-1]
        points, speeds = geometry.points[nodes], np.abs(values[nodes])
        lengths = np.maximum.reduceat(points, starts) - np.minimum.reduceat(
            points, starts
        )
        fastest = np.maximum.reduceat(speeds, starts)
        flat = lengths <= 1e-6 * lengths.max(axis=1, keepdims=True)
        rates = np.where(flat, 0.0, fastest / np.where(flat, 1, lengths)).max(axis=1)
    else:
        size = np.ptp(geometry.points, axis=0).max()
        spacing = size / max(geometry.n_points ** (1 / 3) - 1, 1)
        rates = np.linalg.norm(values, axis=1) / spacing
    moving = rates[rates > 0]
    return float(np.quantile(moving, FAST)) if moving.size else 0.0


def _closed_ends(geometry: Geometry, values: np.ndarray) -> np.ndarray:
    """Return the axes of a box along which the flow passes neither end."""
    if isinstance(geometry, CurvilinearGrid):
        return np.zeros(3, bool)
    points = geometry.points() if isinstance(geometry, GridAxes) else geometry.points
    if isinstance(geometry, GridAxes):
        values = values.transpose(2, 1, 0, 3).reshape(-1, 3)
    low, high = points.min(axis=0), points.max(axis=0)
    still = STILL * np.abs(values).max()
    at_end = (points == low) | (points == high)
    return ~np.any(at_end & (np.abs(values) > still), axis=0)


def filled_share(found: Survey) -> float:
    """Return about how much of the box around a mesh is inside it."""
    if isinstance(found.geometry, GridAxes | CurvilinearGrid):
        return 1.0
    points, wide = found.geometry.points, found.size > 0
    count = max(1.0, len(points) / 8) ** (1 / max(wide.sum(), 1))
    bins = np.maximum(1, np.floor(count * np.ones(3))).astype(int)
    bins[~wide] = 1
    scaled = (points - found.low) / np.where(wide, found.size, 1)
    places = np.minimum((scaled * bins).astype(int), bins - 1)
    return len(np.unique(places, axis=0)) / bins.prod()


def lattice_counts(found: Survey) -> dict[str, int]:
    """Return particles per axis, about equally far apart, for `PARTICLES` inside."""
    wide = found.size > 0
    wide[2] &= not found.round  # a layer, near the surface
    sizes = found.size[wide]
    room = np.prod(sizes / sizes.max()) * filled_share(found)
    spacing = sizes.max() * (room / PARTICLES) ** (1 / len(sizes))
    counts = np.ones(3, int)
    counts[wide] = np.maximum(2, np.rint(sizes / spacing))
    return dict(zip(AXES, counts.tolist(), strict=True))


def middle_shares(counts: dict[str, int]) -> dict[str, list[float]]:
    """Return the part of the box whose lattice has half a spacing left at each end."""
    return {
        axis: [round(0.5 / count, 4), round(1 - 0.5 / count, 4)]
        for axis, count in counts.items()
        if count > 1
    }


def seed_shares(found: Survey, counts: dict[str, int]) -> dict[str, list[float]]:
    """Return the part of the box to seed: on a sphere, only its highest level."""
    shares = middle_shares(counts)
    if found.round and found.size[2] > 0:
        shares["z"] = [0.999, 1.0]
    return shares


def two_digits(value: float) -> float:
    """Return a number rounded down to two digits.

    >>> two_digits(0.01278), two_digits(1999.0)
    (0.012, 1900.0)
    """
    unit = 10.0 ** (np.floor(np.log10(value)) - 1)
    return float(f"{np.floor(value / unit * (1 + 1e-9)) * unit:.2g}")


def time_lines(found: Survey) -> str:
    """Return the frames: the files' own span, or the time it takes to pass through."""
    first, last = float(found.times[0]), float(found.times[-1])
    if found.steady:
        length = found.size if not found.round else np.radians(found.size[:2])
        unit = found.radius if found.round else 1.0
        pass_through = float(length.max()) * unit / found.mean_speed
        last = first + two_digits(pass_through)
        why = "steady: the time to pass through at the mean speed"
    else:
        why = "that of the files; decreasing: backward"
    frame = (last - first) / (FRAMES - 1)
    step = two_digits(min(CELL_SHARE / found.crossings, frame))
    steps = (FRAMES - 1) * int(np.ceil(frame / step - 0.01))
    return TIME.format(
        span=as_toml([first, last]), why=why, frames=FRAMES, step=step, steps=steps
    )


def boundary_lines(found: Survey) -> str:
    """Return a boundary that fits: the mesh's own walls, or the faces of a grid."""
    if found.round:
        return SPHERE
    if not found.on_grid:
        return WALLS + CHANNEL
    rules = {
        axis: "reflective" if closed else "absorbing"
        for axis, closed in zip(AXES, found.closed, strict=True)
    }
    if len(set(rules.values())) == 1:
        return SAME_BOX.format(type=as_toml(rules["x"])) + CHANNEL
    return MIXED.format(rules=as_toml(rules)) + CHANNEL


def plane_of(found: Survey) -> str:
    """Return the plane of the two longest axes."""
    if found.round:
        return "xy"
    longest = sorted(np.argsort(-found.size, kind="stable")[:2].tolist())
    return next(name for name, axes in PLANES.items() if list(axes) == longest)


def files_pattern(names: tuple[str, ...], folder: Path) -> str | list[str]:
    """Return what [data] says: one path or pattern, counted from a folder, or a list.

    Files that a pattern matches without any other are written as the pattern.
    """
    paths = [name if os.path.isabs(name) else _relative(name, folder) for name in names]
    if len(paths) == 1:
        return paths[0]
    pattern = re.sub(r"\d+(?=\D*$)", "*", paths[0])
    matched = glob.glob(str(folder / pattern))
    if {os.path.abspath(m) for m in matched} == {os.path.abspath(n) for n in names}:
        return pattern
    return paths


def _relative(name: str, folder: Path) -> str:
    return os.path.relpath(Path(name).expanduser(), folder)


FLOW = """\
# The velocity field: an analytic flow. For data files, use [data] instead:
#   [data]
#   pattern = "snapshots/flow_*.vtu"   # files, a folder or a .pvd collection
[flow]
name = "double_gyre"      # or uniform, rotation, saddle, vortex, abc, taylor_green, ...
amplitude = 0.1           # the other keys are parameters of the flow
"""
DATA = """\
# {facts}
[data]
pattern = {pattern}
velocity_name = {velocity}     # found in the files
max_timesteps_to_load = {slices}     # evenly spaced over the series
skip_initial_timesteps = 0
use_stable_mesh_only = true    # skip slices with a different mesh size
# time_range = [0.0, 1.0]      # load only slices in this range
# time_source = "name"         # of the files: field, collection, array, name, index
allow_nan = {allow_nan}              # true: particles are lost where it is NaN
interpolation = "linear"       # in time: linear, nearest, cubic
# extrapolation = "constant"   # beyond their times: constant, linear, periodic, zero,
#                              # nan; without it, a span beyond them is an error
# outside = "zero"             # beyond a grid: clamp, zero, nan, periodic, extrapolate;
#                              # beyond a mesh: nearest_element, zero, nan, extrapolate
# geometry = {geometry}          # found in the files; "sphere": degrees and m/s, "flat"
# radius = 6371008.8           # of the sphere, in meters
# velocity_units = "m/s"       # in place of those of the file; cm/s, km/h, knots, ...
# land = "beach"               # particles on land of a sphere: beach, previous, absorb;
#                              # masked points of flat labeled grids: zero, nan, error
"""
REST = """
[particles]
# file = "seeds.csv"           # columns lon,lat or x,y, then z or depth, and time; or
#                              # a .geojson; or a run (.zarr, .nc, .h5): where it ended
concentrations = {counts}   # particles per axis; a flat axis has 1
distribution = "uniform"       # uniform, gaussian, random
gaussian_std = 0.2             # fraction of the box, one value or one per axis
# bounds = {{x = [0.0, 1.0], y = [0.0, 1.0], z = [0.0, 1.0]}}
{fraction}   # fractions of the domain
# release = 0.5                # when particles enter: a time or a date ("2020-02-28"),
#                              # or [start, stop, every]
# max_age = 1.0                # particles leave when they are this old
seed = 0

{time}
[tracking]
integrator = "rk4"             # euler, rk2, rk4, rk45
# batch_size = 1000            # particles per batch; default: all
recording_interval = 1         # record every n-th frame
record_velocities = false
# error_tolerance = 1e-6       # use adaptive steps
dtype = "float32"              # or float64
device = "auto"                # cpu, gpu, tpu
# devices = 2                  # number of devices to use
memory_limit_gb = 8.0
seed = 0                       # random seed of the run

[boundary]
{boundary}
[motion]
# diffusivity = 1e-5           # of the random walk, one value or one per axis
scheme = "euler-maruyama"      # or milstein
# response_time = 1e-3         # of inertial particles
gravity = [0.0, 0.0, 0.0]      # acts on inertial particles

[sample]
variables = []                 # of the files, recorded along the paths: ["T", "p"]

[density]
methods = ["kde", "sph"]       # [] for none
plane = {plane}
# slab_position = 0.0          # use only particles near here along the normal
# slab_thickness = 0.1
resolution = 100
# kde_bandwidth = 0.05         # default: from the rule
kde_bandwidth_rule = "scott"   # or silverman
kde_normalize = true           # or "pdf", "relative", "count", false
# sph_smoothing_length = 0.1   # default: from the particle spacing
sph_adaptive = false
sph_n_neighbors = 32
sph_kernel_type = "cubic_spline"   # wendland, gaussian
sph_normalize = true

[pictures]
which = ["particles", "trajectories", "density", "slice"]
plane = {plane}
max_paths = 50                 # number of trajectories to draw
# slice_x0 = 0.7               # of the yz slice; default: 0.7 of the domain
slice_levels = 20
slice_cutoff_min = 0           # percentiles that limit the color scale
slice_cutoff_max = 95

[ftle]
# t0 = 0.0                     # default: the start of the time span
# T = 10.0                     # default: the length of the span; negative: backward
resolution = 200               # nodes along the longer axis
# bounds = [0.0, 1.0, 0.0, 1.0]
# level = 0.0                  # z of the plane
# dt = 0.01                    # default: adaptive steps

[output]
folder = "out"                 # relative to this file
store = "zarr"                 # or h5, pvd: exported from it when the run ends
formats = ["vtp", "series"]    # exports after the run; also nc, csv, parquet, h5, npz
reports = true                 # analysis_summary.txt
page = true                    # report.html
"""
TIME = """\
[time]
time_span = {span}   # {why}
n_timesteps = {frames}              # recorded frames
dt = {step}   # largest step: half a cell in nearly all cells; {steps:,} steps in all
use_data_dt = false            # use the spacing of the slices, not n_timesteps
"""
DEFAULT_TIME = """\
[time]
# time_span = [0.0, 4.0]       # default: that of the data; decreasing: backward
n_timesteps = 2000             # recorded frames
# dt = 0.001                   # largest step; default: the time between frames
use_data_dt = false            # use the spacing of the slices, not n_timesteps
"""
CHANNEL = """\
# type = "channel"             # a new particle at the inlet for each that leaves
# flow_axis = "x"
# flow_direction = "positive"
# inlet = "continuous"         # none, reflective, periodic
# outlet = "absorbing"         # reflective, periodic
# inlet_distribution = "grid"  # uniform, random, gaussian
"""
SPHERE = """\
type = "none"                  # a sphere: longitudes wrap, who leaves a region is gone
"""
WALLS = """\
type = "walls"                 # of the mesh; or channel, reflective, periodic, ...
condition = "absorb"           # where particles leave it; or reflect, slide, stick
"""
SAME_BOX = """\
type = {type}            # at the ends of the grid; or periodic, channel, ...
"""
MIXED = """\
type = "mixed"                 # reflective where no flow passes the ends of an axis
boundary_types = {rules}
"""
BOX = """\
type = "reflective"            # or periodic, clamping, absorbing, channel, walls, ...
"""


def starter(found: Survey | None = None, folder: Path = Path()) -> str:
    """Return the text of a case in a folder for files, or for a flow without any."""
    if found is None:
        counts = {"x": 60, "y": 50, "z": 15}
        fraction, time = "# bounds_fraction = {x = [0.0, 0.2]}", DEFAULT_TIME
        head, boundary, plane = FLOW, BOX, "xy"
    else:
        counts, plane = lattice_counts(found), plane_of(found)
        fraction = f"bounds_fraction = {as_toml(seed_shares(found, counts))}"
        time, boundary = time_lines(found), boundary_lines(found)
        named = tuple(found.velocity_name.split(", "))
        head = DATA.format(
            facts="\n# ".join(facts(found)),
            pattern=as_toml(files_pattern(found.names, folder)),
            velocity=as_toml(named[0] if len(named) == 1 else named),
            slices=len(found.times),
            allow_nan=as_toml(found.allow_nan),
            geometry=as_toml("sphere" if found.round else "flat"),
        )
    return head + REST.format(
        counts=as_toml(counts),
        fraction=fraction,
        time=time,
        boundary=boundary,
        plane=as_toml(plane),
    )


def facts(found: Survey) -> list[str]:
    """Return what was found in the files, in words."""
    kind = "mesh" if isinstance(found.geometry, Cells) else "grid"
    corner = lambda ends: ", ".join(f"{float(end):.6g}" for end in ends)
    first, last = found.times[0], found.times[-1]
    when = f"{len(found.times)} slices from t = {first:.6g} to {last:.6g}"
    return [
        f"{kind} of {found.geometry.n_points:,} nodes from ({corner(found.low)}) "
        f"to ({corner(found.high)})",
        "one instant: a steady flow" if found.steady else when,
        f"speed {found.mean_speed:.3g} in the mean, {found.top_speed:.3g} at most",
        *found.notes,
    ]
