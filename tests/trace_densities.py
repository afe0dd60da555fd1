"""Naive NumPy densities: double loops over points and particles, from the formulae."""

import math

import numpy as np

PROFILES = {
    "cubic_spline": lambda q: (
        1 - 1.5 * q**2 + 0.75 * q**3 if q < 1 else 0.25 * (2 - q) ** 3 if q < 2 else 0.0
    ),
    "wendland": lambda q: (1 - q / 2) ** 4 * (1 + 2 * q) if q < 2 else 0.0,
    "gaussian": lambda q: math.exp(-q * q),
}
CONSTANTS = {
    "cubic_spline": {2: 10 / (7 * math.pi), 3: 1 / math.pi},
    "wendland": {2: 7 / (4 * math.pi), 3: 21 / (16 * math.pi)},
    "gaussian": {2: 1 / math.pi, 3: math.pi**-1.5},
}


def naive_kde(positions, points, h):
    count, dims = positions.shape
    result = np.zeros(len(points))
    for i, point in enumerate(points):
        for particle in positions:
            q2 = np.sum((point - particle) ** 2) / h**2
            result[i] += math.exp(-q2 / 2) * (2 * math.pi) ** (-dims / 2)
    return result / (count * h**dims)


def naive_sph(positions, points, lengths, masses, kernel):
    dims = positions.shape[1]
    result = np.zeros(len(points))
    for i, point in enumerate(points):
        for particle, h, mass in zip(positions, lengths, masses, strict=True):
            q = math.dist(point, particle) / h
            scale = CONSTANTS[kernel][dims] / h**dims
            result[i] += mass * scale * PROFILES[kernel](q)
    return result


def naive_adaptive_lengths(positions, n):
    apart = np.linalg.norm(positions[:, None] - positions[None], axis=-1)
    return 1.2 * np.sort(apart, axis=1)[:, n]


def integral(axes, values):
    """The trapezium rule over a tensor grid whose values are indexed by the axes."""
    for axis in reversed(axes):
        values = np.trapezoid(values, axis, axis=-1)
    return float(values)


def clustered(count, dims, seed=0):
    """Half the particles in a small cluster, half around it: very uneven spacing."""
    rng = np.random.default_rng(seed)
    spread = np.where(np.arange(count) % 2 == 0, 0.05, 1.0)[:, None]
    return rng.standard_normal((count, dims)) * spread
