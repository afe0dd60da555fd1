"""The text of a commented case, in parts that are filled in or left out."""

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
{scaled}time_scale = {time_scale}            # times them, where names count steps
allow_nan = {allow_nan}              # true: particles are lost where it is NaN
interpolation = "linear"       # in time: linear, nearest, cubic
# extrapolation = "constant"   # beyond their times: constant, linear, periodic, zero,
#                              # nan; without it, a span beyond them is an error
# outside = "zero"             # beyond a grid: clamp, zero, nan, periodic, extrapolate;
#                              # beyond a mesh: nearest_element, zero, nan, extrapolate
{guessed}geometry = {geometry}          # as found; "sphere": degrees and m/s, "flat"
# radius = 6371008.8           # of the sphere, in meters
{assumed}velocity_units = {units}       # in place of the files'; cm/s, km/h, knots, ...
# land = "beach"               # particles on land of a sphere: beach (or stop), slide,
#                              # reflect, previous, absorb, free;
#                              # masked points of flat labeled grids: zero, nan, error
slip = "none"                  # of the flow along land of a sphere: none, partial, free
"""
REST = """
[particles]
# file = "seeds.csv"           # columns lon,lat or x,y, then z or depth, and time; or
#                              # .geojson; or a mask (.nc), above 0 where seeds may be;
#                              # or a run (.zarr, .nc, .h5): where it ended
concentrations = {counts}   # particles per axis; a flat axis has 1
distribution = {spread}       # uniform, gaussian, random (even per area)
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
dtype = {dtype}
device = "auto"                # cpu, gpu, tpu
# devices = 2                  # number of devices to use
memory_limit_gb = 8.0
seed = 0                       # random seed of the run

[boundary]
{boundary}
[motion]
# diffusivity = 1e-5           # of the random walk, one value or one per axis; a name
                               # is a variable of the files, as in ["kh", "kh", "kz"]
scheme = "euler-maruyama"      # or milstein
# response_time = 1e-3         # of inertial particles
gravity = [0.0, 0.0, 0.0]      # acts on inertial particles

[sample]
variables = []                 # of the files, recorded along the paths: ["T", "p"]
files = []                     # more files to look for variables in

[behave]
age = false                    # record the time since the release
history = []                   # record mean and maximum of these variables
# sinking_speed = 1e-3         # downward; below 0 it rises
# diameter = 1e-4              # of spheres that sink or rise by the law of Stokes
# density = 2650.0             # of these spheres
water_density = 1025.0         # or a variable
viscosity = 1e-3
# windage = 0.02               # share of the wind
wind = ["u10", "v10"]
stokes_drift = []              # its two variables
# wavenumber = 0.06            # of the waves, for decay with depth; or a variable
# day_depth = 300.0            # of daily vertical migration
# night_depth = 10.0
# migration_speed = 0.03
# decay_time = 86400.0         # in which the mass falls to 1/e

[density]
methods = {methods}            # kde, sph (in flat space); [] for none
plane = {plane}
# slab_position = 0.0          # use only particles near here along the normal
# slab_thickness = 0.1
resolution = 100
# kde_bandwidth = 0.05         # default: from the rule; on a sphere in meters
kde_bandwidth_rule = "scott"   # or silverman
kde_normalize = true           # or "pdf", "relative", "count", false
# sph_smoothing_length = 0.1   # default: from the particle spacing
sph_adaptive = false
sph_n_neighbors = 32
sph_kernel_type = "cubic_spline"   # wendland, gaussian
sph_normalize = true

[pictures]
which = {pictures}
plane = {plane}
max_paths = 50                 # number of trajectories to draw
# color = "speed"              # or a variable of the run, such as "age", or a color
# slice_x0 = 0.7               # of the yz slice; default: 0.7 of the domain
slice_levels = 20
slice_cutoff_min = 0           # percentiles that limit the color scale
slice_cutoff_max = 95

[ftle]
# t0 = 0.0                     # default: the start of the time span
# T = 10.0                     # default: the length of the span; negative: backward
resolution = 200               # nodes along the longer axis
# bounds = [0.0, 1.0, 0.0, 1.0]
# level = 0.0                  # z of the plane; default: the middle, of a sea its top
# dt = 0.01                    # default: adaptive steps

[output]
folder = {results}             # relative to this file
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
