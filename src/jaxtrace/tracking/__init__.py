"""Particles in motion: boundaries, seeds, the time loop and the recorded paths."""

from jaxtrace.tracking.boundary import (
    absorbing_boundary_factory,
    channel_boundary,
    clamping_boundary,
    compose_boundaries,
    continuous_inlet_boundary_factory,
    cylindrical_boundary,
    distance_based_boundary,
    flow_through_boundary_factory,
    inlet_outlet_boundary_factory,
    mixed_boundary,
    no_boundary,
    periodic_boundary,
    reflective_boundary,
    spherical_boundary,
    wall_boundary,
)
from jaxtrace.tracking.motion import Diffusion, Inertial, PassiveTracer
from jaxtrace.tracking.seeding import (
    boundary_seeds,
    circle_seeds,
    custom_distribution_seeds,
    gaussian_cluster_seeds,
    line_seeds,
    random_seeds,
    sphere_seeds,
    uniform_grid_seeds,
)
from jaxtrace.tracking.simulation import Paths, simulate
from jaxtrace.tracking.tracker import ParticleTracker, TrackerOptions, create_tracker
from jaxtrace.trajectory import Trajectory, merge_trajectories

__all__ = [
    "Diffusion",
    "Inertial",
    "ParticleTracker",
    "PassiveTracer",
    "Paths",
    "TrackerOptions",
    "Trajectory",
    "absorbing_boundary_factory",
    "boundary_seeds",
    "channel_boundary",
    "circle_seeds",
    "clamping_boundary",
    "compose_boundaries",
    "continuous_inlet_boundary_factory",
    "create_tracker",
    "custom_distribution_seeds",
    "cylindrical_boundary",
    "distance_based_boundary",
    "flow_through_boundary_factory",
    "gaussian_cluster_seeds",
    "inlet_outlet_boundary_factory",
    "line_seeds",
    "merge_trajectories",
    "mixed_boundary",
    "no_boundary",
    "periodic_boundary",
    "random_seeds",
    "reflective_boundary",
    "simulate",
    "sphere_seeds",
    "spherical_boundary",
    "uniform_grid_seeds",
    "wall_boundary",
]
