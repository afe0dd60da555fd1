"""What paths tell: statistics, mixing, transport, clustering and stretching."""

from jaxtrace.analysis.clustering import analyze_particle_clustering, cluster_points
from jaxtrace.analysis.flow_maps import flow_map, flow_map_gradient
from jaxtrace.analysis.ftle import ftle
from jaxtrace.analysis.mixing import compute_mixing_metrics
from jaxtrace.analysis.statistics import (
    analyze_trajectory_results,
    compute_trajectory_statistics,
)
from jaxtrace.analysis.transport import (
    completed_residence_times,
    dispersion,
    exit_times,
    mean_squared_displacement,
    residence_times,
)
from jaxtrace.analysis.validation import validate_trajectory_data

__all__ = [
    "analyze_particle_clustering",
    "analyze_trajectory_results",
    "cluster_points",
    "completed_residence_times",
    "compute_mixing_metrics",
    "compute_trajectory_statistics",
    "dispersion",
    "exit_times",
    "flow_map",
    "flow_map_gradient",
    "ftle",
    "mean_squared_displacement",
    "residence_times",
    "validate_trajectory_data",
]
