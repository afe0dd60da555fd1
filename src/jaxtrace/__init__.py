"""Lagrangian particle tracking in unsteady flows on grids and meshes."""

from typing import TYPE_CHECKING

from jaxrig import __version__
from jaxrig.lazy_imports import lazy_attributes

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
    from jaxtrace.io import load_optimized_dataset, open_dataset
    from jaxtrace.memory import memory_report
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
    "clamping_boundary",
    "configure",
    "continuous_inlet_boundary_factory",
    "create_tracker",
    "ftle",
    "get_config",
    "inlet_outlet_boundary_factory",
    "load_optimized_dataset",
    "mean_squared_displacement",
    "memory_report",
    "open_dataset",
    "periodic_boundary",
    "random_seeds",
    "reflective_boundary",
    "reset_config",
    "residence_times",
    "simulate",
    "uniform_grid_seeds",
]
