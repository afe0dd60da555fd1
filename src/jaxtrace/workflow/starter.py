"""A case to start from: every key with its default and what it means."""

from jaxtrace.workflow.case import quote

FLOW = """\
# What moves the particles: a flow by its formula. For files, use [data] instead:
#   [data]
#   pattern = "snapshots/flow_*.vtu"   # files, a folder or a .pvd collection
[flow]
name = "double_gyre"      # or uniform, rotation, saddle, vortex, abc, taylor_green, ...
amplitude = 0.1           # the other keys are parameters of the flow
"""
DATA = """\
# What moves the particles: the velocity in files. For a formula, use [flow] instead:
#   [flow]
#   name = "double_gyre"
[data]
pattern = {pattern}
max_timesteps_to_load = 40     # evenly spaced over the series
skip_initial_timesteps = 0
use_stable_mesh_only = true    # leave out slices of another mesh size
# velocity_name = "U"          # else the usual names are tried
# time_range = [0.0, 1.0]      # slices within these times only
interpolation = "linear"       # in time: linear, nearest, cubic
extrapolation = "constant"     # before and after: constant, linear, periodic, zero, nan
# outside = "zero"             # beyond a grid: clamp, zero, nan, periodic, extrapolate;
#                              # beyond a mesh: nearest_element, zero, nan, extrapolate
"""
REST = """
[particles]
concentrations = {{x = 60, y = 50, z = 15}}   # counts per axis; a flat axis has one
distribution = "uniform"       # uniform, gaussian, random
gaussian_std = 0.2             # of the box, per axis or one for all
# bounds = {{x = [0.0, 1.0], y = [0.0, 1.0], z = [0.0, 1.0]}}
# bounds_fraction = {{x = [0.0, 0.2]}}   # of the domain
seed = 0

[time]
# time_span = [0.0, 4.0]       # else that of the data; a falling one tracks backward
n_timesteps = 2000             # recorded frames
# dt = 0.001                   # longest step, else the time between frames
use_data_dt = false            # frames as far apart as slices, in place of n_timesteps

[tracking]
integrator = "rk4"             # euler, rk2, rk4, rk45
# batch_size = 1000            # particles at a time, else all
recording_interval = 1         # keep every so-many-th frame
record_velocities = false
# error_tolerance = 1e-6       # steps that choose their length
dtype = "float32"              # or float64
device = "auto"                # cpu, gpu, tpu
# devices = 2                  # spread particles over so many
memory_limit_gb = 8.0
seed = 0                       # of everything random in the run

[boundary]
{boundary}
[motion]
# diffusivity = 1e-5           # of a random walk, per axis or one for all
scheme = "euler-maruyama"      # or milstein
# response_time = 1e-3         # of heavy particles with drag
gravity = [0.0, 0.0, 0.0]      # on heavy particles

[density]
methods = ["kde", "sph"]       # [] for none
plane = "xy"
# slab_position = 0.0          # only particles near this place along the normal
# slab_thickness = 0.1
resolution = 100
# kde_bandwidth = 0.05         # else by the rule
kde_bandwidth_rule = "scott"   # or silverman
kde_normalize = true           # or "pdf", "relative", "count", false
# sph_smoothing_length = 0.1   # else from the spacing of the particles
sph_adaptive = false
sph_n_neighbors = 32
sph_kernel_type = "cubic_spline"   # wendland, gaussian
sph_normalize = true

[pictures]
which = ["particles", "trajectories", "density", "slice"]
plane = "xy"
max_paths = 50                 # drawn
# slice_x0 = 0.7               # of the yz slice, else at 0.7 of the domain
slice_levels = 20
slice_cutoff_min = 0           # percentiles at which its colors end
slice_cutoff_max = 95

[ftle]
# t0 = 0.0                     # else the start of the span
# T = 10.0                     # else the length of the span; negative goes back
resolution = 200               # nodes along the longer axis
# bounds = [0.0, 1.0, 0.0, 1.0]
# level = 0.0                  # z of the plane
# dt = 0.01                    # else steps choose their length

[output]
folder = "out"                 # beside this file
store = "zarr"                 # frames as they come: zarr, h5, pvd
formats = ["vtp", "series"]    # exports after the run
reports = true                 # text
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
    """The text of a case for files of a pattern, or for a flow if there is none."""
    if pattern is None:
        whole = FLOW + REST.format(boundary=BOX)
    else:
        whole = DATA.format(pattern=quote(pattern)) + REST.format(boundary=CHANNEL)
    return whole
