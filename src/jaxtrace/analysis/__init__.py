"""Recorded paths in figures: statistics, mixing, transport, density and stretching."""

from jaxtrace.analysis.density import KDEEstimator, count_per_area, density_per_area
from jaxtrace.analysis.flow_maps import flow_map, flow_map_gradient, ftle
from jaxtrace.analysis.sph import SPHDensityEstimator
from jaxtrace.analysis.statistics import (
    analyze_trajectory_results,
    completed_residence_times,
    compute_mixing_metrics,
    compute_trajectory_statistics,
    dispersion,
    mean_squared_displacement,
)
from jaxtrace.paths import residence_times

__all__ = [
    "KDEEstimator",
    "SPHDensityEstimator",
    "analyze_trajectory_results",
    "completed_residence_times",
    "compute_mixing_metrics",
    "compute_trajectory_statistics",
    "count_per_area",
    "density_per_area",
    "dispersion",
    "flow_map",
    "flow_map_gradient",
    "ftle",
    "mean_squared_displacement",
    "residence_times",
]
