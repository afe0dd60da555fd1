"""Door to the boundaries by their documented names, and the registry of them.

A new boundary is a file in `boundaries` and a line in `BOUNDARIES`.
"""

from collections.abc import Callable

from jaxtrace.tracking.boundaries.base import AbstractBoundary, no_boundary
from jaxtrace.tracking.boundaries.base import compose_boundaries as compose_boundaries
from jaxtrace.tracking.boundaries.box import (
    absorbing_boundary_factory,
    clamping_boundary,
    mixed_boundary,
    periodic_boundary,
    reflective_boundary,
)
from jaxtrace.tracking.boundaries.channel import (
    channel_boundary,
    continuous_inlet_boundary_factory,
    flow_through_boundary_factory,
    inlet_outlet_boundary_factory,
)
from jaxtrace.tracking.boundaries.solids import (
    cylindrical_boundary,
    distance_based_boundary,
    spherical_boundary,
)
from jaxtrace.tracking.boundaries.walls import wall_boundary

# By the names that case files use.
BOUNDARIES: dict[str, Callable[..., AbstractBoundary]] = {
    "none": no_boundary,
    "periodic": periodic_boundary,
    "reflective": reflective_boundary,
    "clamping": clamping_boundary,
    "absorbing": absorbing_boundary_factory,
    "mixed": mixed_boundary,
    "distance": distance_based_boundary,
    "spherical": spherical_boundary,
    "cylindrical": cylindrical_boundary,
    "continuous_inlet": continuous_inlet_boundary_factory,
    "inlet_outlet": inlet_outlet_boundary_factory,
    "flow_through": flow_through_boundary_factory,
    "channel": channel_boundary,
    "walls": wall_boundary,
}
