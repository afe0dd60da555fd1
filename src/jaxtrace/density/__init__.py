"""Particle densities: kernel estimates, smoothed particles and neighbour search."""

from jaxtrace.density.kde import KDEEstimator
from jaxtrace.density.kernels import KERNELS, Kernel, get_kernel
from jaxtrace.density.neighbours import HashGridNeighbors
from jaxtrace.density.sph import SPHDensityEstimator

__all__ = [
    "KERNELS",
    "HashGridNeighbors",
    "KDEEstimator",
    "Kernel",
    "SPHDensityEstimator",
    "get_kernel",
]
