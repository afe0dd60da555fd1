"""Boundaries by their documented names: each call makes one that compiles."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Array, Float

from jaxtrace.bounds import AXES, box_bounds
from jaxtrace.tracking.boundaries.base import AbstractBoundary, Open
from jaxtrace.tracking.boundaries.box import BoxBoundary, box_boundary
from jaxtrace.tracking.boundaries.channel import ChannelBoundary
from jaxtrace.tracking.boundaries.compose import (
    CompositeBoundaryCondition,
    compose_boundary_conditions,
)
from jaxtrace.tracking.boundaries.distance import DistanceBoundary, distance_domain
from jaxtrace.tracking.boundaries.inlet import (
    absorbing_channel,
    axis_number,
    channel_boundary,
    direction,
    recycling_channel,
)
from jaxtrace.tracking.boundaries.shapes import RoundBoundary, ball, cylinder
from jaxtrace.tracking.boundaries.walls import wall_boundary

__all__ = [
    "CompositeBoundaryCondition",
    "absorbing_boundary_factory",
    "centered_box_periodic",
    "channel_boundary",
    "check_boundary_violations",
    "clamp_to_bounds",
    "clamping_boundary",
    "compose_boundary_conditions",
    "continuous_inlet_boundary_factory",
    "create_boundary_from_config",
    "cylindrical_boundary",
    "distance_based_boundary",
    "flow_through_boundary_factory",
    "inlet_outlet_boundary_factory",
    "mixed_boundary",
    "no_boundary",
    "periodic_boundary",
    "reflect_boundary",
    "reflective_boundary",
    "spherical_boundary",
    "unit_box_periodic",
    "unit_box_reflective",
    "unit_sphere_reflective",
    "wall_boundary",
]


def periodic_boundary(bounds: Any) -> BoxBoundary:
    """A box that repeats: particles go on from the opposite face, in [lo, hi)."""
    return box_boundary(bounds, "periodic")


def reflective_boundary(bounds: Any) -> BoxBoundary:
    """A box of mirrors, however far a particle went beyond them."""
    return box_boundary(bounds, "reflective")


def clamping_boundary(bounds: Any) -> BoxBoundary:
    """A box that stops particles at its faces."""
    return box_boundary(bounds, "clamping")


def absorbing_boundary_factory(
    bounds: Any, outside_value: float = float("nan")
) -> BoxBoundary:
    """A box that takes particles out of the run at its faces.

    `outside_value` stands for every coordinate of a particle that is gone.
    """
    return box_boundary(bounds, "absorbing", outside_value)


def mixed_boundary(bounds: Any, boundary_types: Mapping[str, str]) -> BoxBoundary:
    """A box with a rule per axis, `{"x": "reflective", ...}`; periodic by default.

    The rules are periodic, reflective, clamping, absorbing and open.
    """
    unknown = [axis for axis in boundary_types if axis not in tuple(AXES)]
    if unknown:
        raise ValueError(f"axis {unknown[0]!r}: choose one of {', '.join(AXES)}")
    return box_boundary(bounds, [boundary_types.get(a, "periodic") for a in AXES])


def distance_based_boundary(
    bounds: Any,
    distance_func: Callable[[Any], Any],
    inside_condition: str = "periodic",
    outside_condition: str = "absorbing",
) -> DistanceBoundary:
    """A domain where `distance_func(positions) -> (N,)` is at most 0, in a box.

    Inside, `inside_condition` holds at the faces of the box (any rule of
    `mixed_boundary`). Outside, `outside_condition` holds at the surface: absorbing,
    reflective or clamping, or periodic, which wraps the particle into the box.
    """
    box = box_boundary(bounds, inside_condition)
    return distance_domain(box, distance_func, outside_condition)


def spherical_boundary(
    center: Any, radius: float, condition: str = "reflective"
) -> RoundBoundary:
    """A ball whose surface is reflective, absorbing or clamping."""
    return ball(center, radius, condition)


def cylindrical_boundary(
    axis: str | int = "z",
    center: Any = (0.0, 0.0),
    radius: float = 1.0,
    height: float | None = None,
    condition: str = "reflective",
) -> RoundBoundary:
    """A cylinder along an axis, reflective, absorbing or clamping.

    The center is given across the axis; the ends are at half the height to both sides
    of 0, or of a third coordinate of the center. Without a height there are no ends.
    """
    return cylinder(axis_number(axis), center, radius, height, condition)


def continuous_inlet_boundary_factory(
    bounds: Any = None,
    flow_axis: str | int = "x",
    flow_direction: str = "positive",
    inlet_distribution: str | None = None,
    concentrations: Any = None,
    *,
    seed: int = 0,
    inlet_position: float | str | None = None,
    outlet_position: float | str | None = None,
    domain_bounds: Any = None,
) -> ChannelBoundary:
    """A channel where a particle that leaves is replaced by a new one at the inlet.

    New particles start on the inlet plane: `grid` (at the lattice value nearest to the
    old one; `concentrations` are counts per axis), `uniform` or `random`, or
    `gaussian`. Without a distribution it is `grid` if there are concentrations and
    `uniform` if not. `inlet_position` and `outlet_position` move the ends of the
    channel and decide the direction; `domain_bounds` is another name of `bounds`.
    """
    if (bounds is None) == (domain_bounds is None):
        raise TypeError("give the box of the channel once, as bounds or domain_bounds")
    inlet, outlet = direction(flow_direction)
    if inlet_distribution is None:
        inlet_distribution = "uniform" if concentrations is None else "grid"
    return recycling_channel(
        domain_bounds if bounds is None else bounds,
        flow_axis,
        (
            inlet if inlet_position is None else inlet_position,
            outlet if outlet_position is None else outlet_position,
        ),
        "returning",
        inlet_distribution,
        concentrations,
        seed,
    )


def inlet_outlet_boundary_factory(
    bounds: Any,
    inlet_axis: str | int = "x",
    inlet_position: float | str = "min",
    outlet_position: float | str = "max",
    inlet_particle_generator: Callable[[Any], Any] | None = None,
    *,
    seed: int = 0,
) -> ChannelBoundary:
    """A channel that particles leave: exited at the outlet, absorbed at the inlet.

    With a generator every slot that gets free is used again: it is called with uniform
    numbers (N, 3) in [0, 1), one row per slot, and answers first positions (N, 3).
    """
    planes = (inlet_position, outlet_position)
    return absorbing_channel(bounds, inlet_axis, planes, inlet_particle_generator, seed)


def flow_through_boundary_factory(
    bounds: Any,
    flow_axis: str | int = "x",
    flow_direction: str = "positive",
    *,
    seed: int = 0,
) -> ChannelBoundary:
    """A channel whose leavers start anew somewhere on the inlet; backflow mirrors."""
    planes = direction(flow_direction)
    return recycling_channel(
        bounds, flow_axis, planes, "reflective", "uniform", None, seed
    )


def no_boundary() -> Open:
    """No boundary at all."""
    return Open()


def unit_box_periodic() -> BoxBoundary:
    """The box [0, 1)³, repeating."""
    return periodic_boundary([[0, 0, 0], [1, 1, 1]])


def unit_box_reflective() -> BoxBoundary:
    """The box [0, 1]³ of mirrors."""
    return reflective_boundary([[0, 0, 0], [1, 1, 1]])


def centered_box_periodic(size: float = 2.0) -> BoxBoundary:
    """A repeating cube of this size about the origin."""
    return periodic_boundary([[-size / 2] * 3, [size / 2] * 3])


def unit_sphere_reflective() -> RoundBoundary:
    """The unit ball about the origin, with a mirror for a surface."""
    return spherical_boundary((0.0, 0.0, 0.0), 1.0)


def reflect_boundary(x: Any, bounds: Any) -> Float[Array, "n 3"]:
    """Positions folded back into a box of mirrors."""
    return reflective_boundary(bounds)(x)


def clamp_to_bounds(x: Any, bounds: Any) -> Float[Array, "n 3"]:
    """Positions moved to the closest point of a box."""
    return clamping_boundary(bounds)(x)


def check_boundary_violations(
    positions: Any, bounds: Any, tolerance: float = 1e-6
) -> dict[str, int]:
    """How many positions lie outside a box: along x, y and z, and in all (`total`).

    The tolerance is a fraction of the box's width along the axis. Positions that are
    NaN are nowhere and do not count.
    """
    box = box_bounds(bounds)
    points = np.atleast_2d(np.asarray(positions, np.float64))
    width = points.shape[-1]
    room = tolerance * box.size[:width]
    low, high = box.lo[:width] - room, box.hi[:width] + room
    outside = ((points < low) | (points > high)) & box.active[:width]
    counts = {a: int(n) for a, n in zip(AXES, outside.sum(0), strict=False)}
    return counts | {"total": int(outside.any(1).sum())}


FACTORIES: dict[str, Callable[..., AbstractBoundary]] = {
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
    "wall": wall_boundary,
}


def create_boundary_from_config(config: Mapping[str, Any]) -> AbstractBoundary:
    """The boundary of a configuration: its `type`, and the arguments of that factory.

    `{"type": "mixed", "bounds": ..., "boundary_types": {"x": "periodic"}}`
    """
    arguments = dict(config)
    kind = arguments.pop("type", None)
    if kind not in FACTORIES:
        known = ", ".join(FACTORIES)
        raise ValueError(f"boundary type {kind!r}: choose one of {known}")
    factory = FACTORIES[kind]
    signature = inspect.signature(factory)
    try:
        signature.bind(**arguments)
    except TypeError as error:
        known = ", ".join(signature.parameters) or "nothing else"
        raise ValueError(f"boundary type {kind!r} takes {known}: {error}") from error
    return factory(**arguments)
