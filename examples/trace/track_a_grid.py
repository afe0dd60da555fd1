"""Track particles through slices of a velocity on a rectilinear grid."""

import numpy as np

from jaxtrace.fields import StructuredGridSampler
from jaxtrace.tracking import create_tracker, random_seeds
from jaxtrace.tracking.boundary import mixed_boundary

# A jet along x that meanders, on a grid that is finer in its middle.
x = np.linspace(0.0, 4.0, 65)
y = np.sinh(np.linspace(-2.0, 2.0, 41)) / np.sinh(2.0)
z = np.zeros(1)
times = np.linspace(0.0, 8.0, 33)
X, Y, _ = np.meshgrid(x, y, z, indexing="ij")
slices = []
for t in times:
    middle = 0.3 * np.sin(np.pi * (X - 0.5 * t))
    u = np.exp(-(((Y - middle) / 0.3) ** 2))
    v = 0.2 * np.cos(np.pi * (X - 0.5 * t)) * np.exp(-((Y / 0.6) ** 2))
    slices.append(np.stack([u, v, np.zeros_like(u)], -1))

field = StructuredGridSampler(
    np.stack(slices), x, y, z, bounds_handling="clamp", times=times
)
low, high = field.get_spatial_bounds()
boundary = mixed_boundary([low, high], {"x": "periodic", "y": "reflective"})
seeds = random_seeds(2000, [low, high], rng_seed=0)

tracker = create_tracker("rk4", field, boundary)
trajectory = tracker.track_particles(seeds, time_span=(0.0, 8.0), n_timesteps=161)
length = trajectory.compute_path_length()
print(trajectory)
print(f"went {length.mean():.2f} on average and {length.max():.2f} at most")

# Backward in time from where they are, all but a few come back.
back = tracker.track_particles(trajectory.positions[-1], (8.0, 0.0), 161)
apart = np.linalg.norm(back.positions[-1] - seeds, axis=1)
print(f"back at the start: half of them within {np.median(apart):.1e}")
