"""A case: everything one run is made of, read from a TOML file and written back.

`starter` gives a commented case to begin with, every key with its default.
"""

import dataclasses
import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jaxrig.atomic import atomic_write
from jaxrig.settings import Checked, nearest, readers
from jaxtrace.workflow.tables import (
    FTLE,
    Boundary,
    Data,
    Density,
    Flow,
    Motion,
    Output,
    Particles,
    Pictures,
    Time,
    Tracking,
)

CASE_FILE = "case_as_run.toml"


@dataclass(frozen=True)
class Case:
    """The tables of a case; either `data` or `flow` says what moves the particles."""

    data: Data | None = None
    flow: Flow | None = None
    particles: Particles = field(default_factory=Particles)
    time: Time = field(default_factory=Time)
    tracking: Tracking = field(default_factory=Tracking)
    boundary: Boundary = field(default_factory=Boundary)
    motion: Motion = field(default_factory=Motion)
    density: Density = field(default_factory=Density)
    pictures: Pictures = field(default_factory=Pictures)
    ftle: FTLE = field(default_factory=FTLE)
    output: Output = field(default_factory=Output)

    def __post_init__(self) -> None:
        if (self.data is None) == (self.flow is None):
            raise ValueError("a case has either [data] or [flow]: give one of them")
        if self.time.use_data_dt and self.data is None:
            raise ValueError("time.use_data_dt needs slices: a [flow] has none")

    @property
    def folder(self) -> Path:
        """The folder of the results."""
        return Path(self.output.folder)


TABLES: dict[str, type[Checked]] = {
    kind.section: kind
    for kind in (
        *(Data, Flow, Particles, Time, Tracking, Boundary),
        *(Motion, Density, Pictures, FTLE, Output),
    )
}


def read_case(content: Mapping[str, Any]) -> Case:
    """Return the case of a mapping of tables, as a TOML file gives it."""
    tables = {}
    for name, table in content.items():
        if name not in TABLES:
            raise TypeError(_unknown(name, isinstance(table, Mapping)))
        if not isinstance(table, Mapping):
            raise TypeError(f"{name} is {table!r}: it is a table, written [{name}]")
        tables[name] = TABLES[name].from_mapping(table)
    return Case(**tables)


def _unknown(name: str, table: bool) -> str:
    """Return what to write in place of a table or a key that does not exist."""
    owners = [kind.section for kind in TABLES.values() if name in readers(kind)]
    if owners and not table:
        return f"no key {name!r} outside tables; it belongs to [{owners[0]}]"
    return f"no table [{name}]; {nearest(name, list(TABLES))}"


def load_case(path: str | os.PathLike[str]) -> Case:
    """Return the case of a file; its paths count from the folder of the file."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is not valid TOML: {error}") from error
    try:
        case = read_case(content)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{path}: {error}") from error
    return _anchored(case, path.parent.absolute())


def _anchored(case: Case, folder: Path) -> Case:
    output = dataclasses.replace(
        case.output, folder=str(folder / Path(case.output.folder).expanduser())
    )
    data = case.data
    if data is not None:
        pattern = str(folder / Path(data.pattern).expanduser())
        data = dataclasses.replace(data, pattern=pattern)
    return dataclasses.replace(case, data=data, output=output)


def write_case(case: Case, path: str | os.PathLike[str]) -> Path:
    """Write a case with every value spelled out, whole or not at all."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(case_text(case).encode())
    return path


def case_text(case: Case) -> str:
    """Return the case as TOML."""
    lines: list[str] = []
    for name in TABLES:
        table = getattr(case, name)
        if table is not None:
            lines += [f"[{name}]"]
            lines += [f"{k} = {_toml(v)}" for k, v in table.to_mapping().items()]
            lines += [""]
    return "\n".join(lines)


def quote(words: str) -> str:
    """Return words as a string of TOML, which escapes what JSON escapes."""
    return json.dumps(words, ensure_ascii=False)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return repr(value)


FLOW = """\
# The velocity field: an analytic flow. For data files, use [data] instead:
#   [data]
#   pattern = "snapshots/flow_*.vtu"   # files, a folder or a .pvd collection
[flow]
name = "double_gyre"      # or uniform, rotation, saddle, vortex, abc, taylor_green, ...
amplitude = 0.1           # the other keys are parameters of the flow
"""
DATA = """\
# The velocity field: data files. For an analytic flow, use [flow] instead:
#   [flow]
#   name = "double_gyre"
[data]
pattern = {pattern}
max_timesteps_to_load = 40     # evenly spaced over the series
skip_initial_timesteps = 0
use_stable_mesh_only = true    # skip slices with a different mesh size
# velocity_name = "U"          # default: the usual names
# time_range = [0.0, 1.0]      # load only slices in this range
interpolation = "linear"       # in time: linear, nearest, cubic
extrapolation = "constant"     # before and after: constant, linear, periodic, zero, nan
# outside = "zero"             # beyond a grid: clamp, zero, nan, periodic, extrapolate;
#                              # beyond a mesh: nearest_element, zero, nan, extrapolate
"""
REST = """
[particles]
concentrations = {{x = 60, y = 50, z = 15}}   # particles per axis; a flat axis has 1
distribution = "uniform"       # uniform, gaussian, random
gaussian_std = 0.2             # fraction of the box, one value or one per axis
# bounds = {{x = [0.0, 1.0], y = [0.0, 1.0], z = [0.0, 1.0]}}
# bounds_fraction = {{x = [0.0, 0.2]}}   # fractions of the domain
seed = 0

[time]
# time_span = [0.0, 4.0]       # default: that of the data; decreasing: backward
n_timesteps = 2000             # recorded frames
# dt = 0.001                   # largest step; default: the time between frames
use_data_dt = false            # use the spacing of the slices, not n_timesteps

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

[density]
methods = ["kde", "sph"]       # [] for none
plane = "xy"
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
plane = "xy"
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
formats = ["vtp", "series"]    # exports after the run; also h5, npz, csv
reports = true                 # analysis_summary.txt
page = true                    # report.html
"""
CHANNEL = """\
type = "channel"               # or reflective, periodic, clamping, absorbing, walls
flow_axis = "x"
flow_direction = "positive"
inlet = "continuous"           # none, reflective, periodic
outlet = "absorbing"           # reflective, periodic
inlet_distribution = "grid"    # uniform, random, gaussian
"""
BOX = """\
type = "reflective"            # or periodic, clamping, absorbing, channel, walls, ...
"""


def starter(pattern: str | None = None) -> str:
    """Return the text of a case for files of a pattern, or for a flow without one."""
    if pattern is None:
        whole = FLOW + REST.format(boundary=BOX)
    else:
        whole = DATA.format(pattern=quote(pattern)) + REST.format(boundary=CHANNEL)
    return whole
