"""Track particles through a mesh: in at one end, out at the other, again and again."""

import itertools

import numpy as np

from jaxtrace.analysis import completed_residence_times
from jaxtrace.fields import TimeSeriesField
from jaxtrace.tracking import create_tracker, uniform_grid_seeds
from jaxtrace.tracking.boundary import continuous_inlet_boundary_factory

# A duct 10 x 4 x 4 mm of tetrahedra, and a developed flow that pulses.
size = np.array([0.010, 0.004, 0.004])
shape = (26, 11, 11)
axes = [np.linspace(0, length, n) for length, n in zip(size, shape, strict=True)]
nodes = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
# Every block of eight nodes becomes six tetrahedra around its diagonal.
number = np.arange(len(nodes)).reshape(shape)
corner = lambda i, j, k: number[i : 25 + i, j : 10 + j, k : 10 + k].ravel()
tetrahedra = []
for first, second in itertools.permutations(range(3), 2):
    one, two = np.eye(3, dtype=int)[first], np.eye(3, dtype=int)[[first, second]].sum(0)
    path = (corner(0, 0, 0), corner(*one), corner(*two), corner(1, 1, 1))
    tetrahedra.append(np.stack(path, axis=1))
tetrahedra = np.concatenate(tetrahedra)
y, z = (nodes[:, axis] / size[axis] for axis in (1, 2))
profile = 16 * y * (1 - y) * z * (1 - z)
times = np.linspace(0.0, 2.0, 21)
pulse = 0.01 * (1 + 0.5 * np.sin(2 * np.pi * times))
velocity = np.zeros((len(times), len(nodes), 3), np.float32)
velocity[..., 0] = pulse[:, None] * profile

field = TimeSeriesField(
    velocity,
    times,
    nodes,
    connectivity=tetrahedra,
    spatial_interpolation="elements",
)
lanes = {"x": 10, "y": 9, "z": 9}
bounds = [np.zeros(3), size]
inlet = continuous_inlet_boundary_factory(
    bounds, flow_axis="x", inlet_distribution="grid", concentrations=lanes
)
seeds = uniform_grid_seeds(tuple(lanes.values()), bounds)
tracker = create_tracker("rk4", field, inlet)
trajectory = tracker.track_particles(seeds, time_span=(0.0, 2.0), n_timesteps=201)

entered = int((trajectory.generation[-1] - trajectory.generation[0]).sum())
stays = completed_residence_times(trajectory)
print(f"{trajectory.N} particles at any time, {entered} entered during the run")
print(f"{len(stays)} left; half of them within {np.median(stays):.2f} s")
