"""Particle densities: kernel estimates, smoothed particles and neighbor search."""

from jaxtrace.density.kde import KDEEstimator
from jaxtrace.density.kernels import KERNELS, Kernel, get_kernel
from jaxtrace.density.neighbors import HashGridNeighbors
from jaxtrace.density.sph import SPHDensityEstimator

__all__ = [
    "KERNELS",
    "HashGridNeighbors",
    "KDEEstimator",
    "Kernel",
    "SPHDensityEstimator",
    "get_kernel",
]
