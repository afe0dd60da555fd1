"""Lagrangian particle tracking in unsteady flows on grids and meshes."""

from typing import TYPE_CHECKING

from jaxrig import __version__
from jaxrig.lazy import lazy_attributes

if TYPE_CHECKING:
    from jaxtrace.analysis import (
        KDEEstimator,
        SPHDensityEstimator,
        analyze_trajectory_results,
        ftle,
        mean_squared_displacement,
        residence_times,
    )
    from jaxtrace.config import (
        configure,
        get_config,
        reset_config,
    )
    from jaxtrace.fields import (
        StructuredGridSampler,
        TimeSeriesField,
        UnstructuredField,
    )
    from jaxtrace.integrators import euler_step, rk2_step, rk4_step
    from jaxtrace.io import load_optimized_dataset, open_dataset
    from jaxtrace.memory import memory_report
    from jaxtrace.plot import (
        animate_trajectory,
        encode_video_from_frames,
        plot_particles_2d,
        plot_particles_3d,
        plot_trajectory_2d,
        plot_trajectory_3d,
        render_frames,
        save_gif_from_frames,
    )
    from jaxtrace.reports import generate_summary_report
    from jaxtrace.tracking import (
        ParticleTracker,
        TrackerOptions,
        Trajectory,
        clamping_boundary,
        continuous_inlet_boundary_factory,
        create_tracker,
        inlet_outlet_boundary_factory,
        periodic_boundary,
        random_seeds,
        reflective_boundary,
        simulate,
        uniform_grid_seeds,
    )

__getattr__ = lazy_attributes(__name__, __file__)

__all__ = [
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
    "animate_trajectory",
    "clamping_boundary",
    "configure",
    "continuous_inlet_boundary_factory",
    "create_tracker",
    "encode_video_from_frames",
    "euler_step",
    "ftle",
    "generate_summary_report",
    "get_config",
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
    "reflective_boundary",
    "render_frames",
    "reset_config",
    "residence_times",
    "rk2_step",
    "rk4_step",
    "save_gif_from_frames",
    "simulate",
    "uniform_grid_seeds",
]
