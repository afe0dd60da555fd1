"""Particles in motion: boundaries, seeds, the time loop and the recorded paths."""

from jaxtrace.analysis.clustering import analyze_particle_clustering
from jaxtrace.analysis.mixing import compute_mixing_metrics
from jaxtrace.analysis.statistics import (
    analyze_trajectory_results,
    compute_trajectory_statistics,
)
from jaxtrace.analysis.validation import validate_trajectory_data
from jaxtrace.fields.factories import create_time_series_from_arrays
from jaxtrace.tracking.boundaries.compose import (
    CompositeBoundaryCondition,
    compose_boundary_conditions,
)
from jaxtrace.tracking.boundaries.inlet import channel_boundary
from jaxtrace.tracking.boundaries.walls import wall_boundary
from jaxtrace.tracking.boundary import (
    absorbing_boundary_factory,
    centered_box_periodic,
    check_boundary_violations,
    clamp_to_bounds,
    clamping_boundary,
    continuous_inlet_boundary_factory,
    create_boundary_from_config,
    cylindrical_boundary,
    distance_based_boundary,
    flow_through_boundary_factory,
    inlet_outlet_boundary_factory,
    mixed_boundary,
    no_boundary,
    periodic_boundary,
    reflect_boundary,
    reflective_boundary,
    spherical_boundary,
    unit_box_periodic,
    unit_box_reflective,
    unit_sphere_reflective,
)
from jaxtrace.tracking.diffusion import Diffusion
from jaxtrace.tracking.flows import (
    create_saddle_field,
    create_simple_field_from_function,
    create_uniform_field,
    create_vortex_field,
)
from jaxtrace.tracking.inertia import Inertial
from jaxtrace.tracking.motion import Tracer
from jaxtrace.tracking.options import TrackerOptions
from jaxtrace.tracking.records import (
    create_empty_trajectory,
    create_single_particle_trajectory,
    create_trajectory_from_positions,
    merge_trajectories,
)
from jaxtrace.tracking.seeding import (
    boundary_seeds,
    circle_seeds,
    combine_seed_strategies,
    custom_distribution_seeds,
    field_informed_seeds,
    gaussian_cluster_seeds,
    line_seeds,
    random_seeds,
    rectangular_seeds,
    seed_density_analysis,
    sphere_seeds,
    stratified_seeds,
    uniform_grid_seeds,
    validate_seeds,
)
from jaxtrace.tracking.shortcuts import (
    compare_integrators,
    create_tracking_workflow,
    get_default_options,
    quick_track,
    set_default_options,
    track_particles_simple,
)
from jaxtrace.tracking.simulate import Paths, simulate
from jaxtrace.tracking.tracker import ParticleTracker, create_tracker
from jaxtrace.tracking.trajectory import Trajectory

__all__ = [
    "CompositeBoundaryCondition",
    "Diffusion",
    "Inertial",
    "ParticleTracker",
    "Paths",
    "Tracer",
    "TrackerOptions",
    "Trajectory",
    "absorbing_boundary_factory",
    "analyze_particle_clustering",
    "analyze_trajectory_results",
    "boundary_seeds",
    "centered_box_periodic",
    "channel_boundary",
    "check_boundary_violations",
    "circle_seeds",
    "clamp_to_bounds",
    "clamping_boundary",
    "combine_seed_strategies",
    "compare_integrators",
    "compose_boundary_conditions",
    "compute_mixing_metrics",
    "compute_trajectory_statistics",
    "continuous_inlet_boundary_factory",
    "create_boundary_from_config",
    "create_empty_trajectory",
    "create_saddle_field",
    "create_simple_field_from_function",
    "create_single_particle_trajectory",
    "create_time_series_from_arrays",
    "create_tracker",
    "create_tracking_workflow",
    "create_trajectory_from_positions",
    "create_uniform_field",
    "create_vortex_field",
    "custom_distribution_seeds",
    "cylindrical_boundary",
    "distance_based_boundary",
    "field_informed_seeds",
    "flow_through_boundary_factory",
    "gaussian_cluster_seeds",
    "get_default_options",
    "inlet_outlet_boundary_factory",
    "line_seeds",
    "merge_trajectories",
    "mixed_boundary",
    "no_boundary",
    "periodic_boundary",
    "quick_track",
    "random_seeds",
    "rectangular_seeds",
    "reflect_boundary",
    "reflective_boundary",
    "seed_density_analysis",
    "set_default_options",
    "simulate",
    "sphere_seeds",
    "spherical_boundary",
    "stratified_seeds",
    "track_particles_simple",
    "uniform_grid_seeds",
    "unit_box_periodic",
    "unit_box_reflective",
    "unit_sphere_reflective",
    "validate_seeds",
    "validate_trajectory_data",
    "wall_boundary",
]
