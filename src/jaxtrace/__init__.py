"""Lagrangian particle tracking in unsteady flows on grids and meshes."""

from jaxrig import __version__
from jaxtrace.analysis import (
    analyze_trajectory_results,
    ftle,
    mean_squared_displacement,
    residence_times,
)
from jaxtrace.config import (
    configure,
    configure_package,
    ensure_consistent_arrays,
    get_config,
    get_package_config,
    reset_config,
)
from jaxtrace.density import KDEEstimator, SPHDensityEstimator
from jaxtrace.fields import (
    StructuredGridSampler,
    TimeSeriesField,
    UnstructuredField,
)
from jaxtrace.integrators import euler_step, rk2_step, rk4_step
from jaxtrace.io import load_optimized_dataset, open_dataset
from jaxtrace.reports import generate_summary_report
from jaxtrace.tracking import (
    ParticleTracker,
    TrackerOptions,
    Trajectory,
    clamp_to_bounds,
    clamping_boundary,
    continuous_inlet_boundary_factory,
    create_tracker,
    inlet_outlet_boundary_factory,
    periodic_boundary,
    random_seeds,
    reflect_boundary,
    reflective_boundary,
    simulate,
    uniform_grid_seeds,
)
from jaxtrace.utils import check_system_requirements, memory_report
from jaxtrace.visualization import (
    animate_trajectory_plotly_2d,
    encode_video_from_frames,
    plot_particles_2d,
    plot_particles_3d,
    plot_trajectory_2d,
    plot_trajectory_3d,
    render_frames_2d,
    render_frames_3d,
    save_gif_from_frames,
)

JAX_AVAILABLE = True

__all__ = [
    "JAX_AVAILABLE",
    "KDEEstimator",
    "ParticleTracker",
    "SPHDensityEstimator",
    "StructuredGridSampler",
    "TimeSeriesField",
    "TrackerOptions",
    "Trajectory",
    "UnstructuredField",
    "__version__",
    "analyze_trajectory_results",
    "animate_trajectory_plotly_2d",
    "check_system_requirements",
    "clamp_to_bounds",
    "clamping_boundary",
    "configure",
    "configure_package",
    "continuous_inlet_boundary_factory",
    "create_tracker",
    "encode_video_from_frames",
    "ensure_consistent_arrays",
    "euler_step",
    "ftle",
    "generate_summary_report",
    "get_config",
    "get_package_config",
    "inlet_outlet_boundary_factory",
    "load_optimized_dataset",
    "mean_squared_displacement",
    "memory_report",
    "open_dataset",
    "periodic_boundary",
    "plot_particles_2d",
    "plot_particles_3d",
    "plot_trajectory_2d",
    "plot_trajectory_3d",
    "random_seeds",
    "reflect_boundary",
    "reflective_boundary",
    "render_frames_2d",
    "render_frames_3d",
    "reset_config",
    "residence_times",
    "rk2_step",
    "rk4_step",
    "save_gif_from_frames",
    "simulate",
    "uniform_grid_seeds",
]
