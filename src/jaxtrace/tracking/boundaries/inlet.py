"""Channels as users name them: by flow axis, ends and where new particles start."""

from collections.abc import Callable, Mapping
from typing import Any, cast, get_args

import numpy as np

from jaxtrace.bounds import AXES, Box, axis_number, box_bounds
from jaxtrace.tracking.boundaries.channel import (
    AbstractEntry,
    ChannelBoundary,
    GridEntry,
    RandomEntry,
    Rule,
    generated_entry,
    make_salt,
)
from jaxtrace.types import check_choice

DISTRIBUTIONS = ("uniform", "random", "gaussian", "grid")
INLETS = {
    "continuous": "returning",
    "none": "absorbing",
    "reflective": "reflective",
    "periodic": "periodic",
}
OUTLETS = ("absorbing", "reflective", "periodic")


def channel_ends(bounds: Any, axis: int, inlet: Any, outlet: Any) -> tuple[Box, bool]:
    """Return the box between inlet and outlet, and whether flow goes upwards.

    A plane is "min", "max" or a coordinate.
    """
    box = box_bounds(bounds)
    planes = []
    for name, plane in (("inlet", inlet), ("outlet", outlet)):
        if plane in ("min", "max"):
            plane = box.lo[axis] if plane == "min" else box.hi[axis]
        elif isinstance(plane, str) or not np.isfinite(plane):
            raise ValueError(f"{name} {plane!r}: give 'min', 'max' or a coordinate")
        planes.append(float(plane))
    if planes[0] == planes[1]:
        raise ValueError(
            f"inlet and outlet are both at {AXES[axis]} = {planes[0]:g}: a channel has "
            "a length along its flow axis"
        )
    lo, hi, active = box.lo.copy(), box.hi.copy(), box.active.copy()
    lo[axis], hi[axis], active[axis] = min(planes), max(planes), True
    return Box(lo, hi, active), planes[0] < planes[1]


def make_channel(
    bounds: Any,
    flow_axis: Any,
    planes: tuple[Any, Any],
    inlet: str,
    outlet: str,
    entry: Callable[[Box, int, bool], AbstractEntry] | None = None,
) -> ChannelBoundary:
    """Return a channel between two planes with rules at its ends.

    `entry(box, axis, forward)` makes what says where newcomers start.
    """
    axis = axis_number(flow_axis)
    box, forward = channel_ends(bounds, axis, *planes)
    for rule in (inlet, outlet):
        check_choice("end", rule, get_args(Rule))
    mirrors = tuple(a for a in range(3) if a != axis and box.active[a])
    ends = cast(Rule, inlet), cast(Rule, outlet)
    newcomers = None if entry is None else entry(box, axis, forward)
    return ChannelBoundary(box.lo, box.hi, newcomers, axis, forward, *ends, mirrors)


def face_entry(
    box: Box,
    axis: int,
    forward: bool,
    distribution: str,
    concentrations: Any,
    seed: int,
) -> AbstractEntry:
    """Return entry on the inlet face of a channel, by lattice or by chance."""
    check_choice("inlet_distribution", distribution, DISTRIBUTIONS)
    plane = np.asarray(box.lo[axis] if forward else box.hi[axis])
    face = tuple(a for a in range(3) if a != axis and box.active[a])
    if distribution == "grid":
        counts = lattice_counts(concentrations, face)
        lattices = {a: np.linspace(box.lo[a], box.hi[a], n) for a, n in counts.items()}
        return GridEntry(plane, axis, lattices)
    gaussian = distribution == "gaussian"
    return RandomEntry(plane, axis, box.lo, box.hi, make_salt(seed), face, gaussian)


def lattice_counts(concentrations: Any, face: tuple[int, ...]) -> dict[int, int]:
    """Return how many lattice nodes lie along each axis of the inlet face."""
    names = ", ".join(repr(AXES[axis]) for axis in face)
    remedy = f"give counts per axis for {names}, as in {{'x': 60, 'y': 50, 'z': 15}}"
    if concentrations is None:
        raise ValueError(f"inlet_distribution 'grid' needs concentrations: {remedy}")
    if not isinstance(concentrations, Mapping):
        concentrations = dict(zip(AXES, concentrations, strict=False))
    counts = {}
    for axis in face:
        count = concentrations.get(AXES[axis])
        if count is None or int(count) != count or count < 1:
            found = f"{AXES[axis]}: {count!r}"
            raise ValueError(f"concentrations have {found}: {remedy}")
        counts[axis] = int(count)
    return counts


def direction(flow_direction: str) -> tuple[str, str]:
    """Return the ends of the box that are inlet and outlet."""
    ends = {"positive": ("min", "max"), "negative": ("max", "min")}
    check_choice("flow_direction", flow_direction, ends)
    return ends[flow_direction]


def recycling_channel(
    bounds: Any, flow_axis: Any, planes: tuple[Any, Any], inlet: str, *lattice: Any
) -> ChannelBoundary:
    """Return a channel whose outlet frees slots for newcomers.

    `lattice` is the distribution, the concentrations and the seed of `face_entry`.
    """
    entry = lambda *channel: face_entry(*channel, *lattice)
    return make_channel(bounds, flow_axis, planes, inlet, "recycling", entry)


def channel_boundary(
    bounds: Any,
    flow_axis: Any = "x",
    inlet: str = "continuous",
    outlet: str = "absorbing",
    *,
    flow_direction: str = "positive",
    inlet_distribution: str = "grid",
    concentrations: Any = None,
    seed: int = 0,
) -> ChannelBoundary:
    """Return a channel by the rules of its ends, as case files name them.

    - inlet "continuous": newcomers take the slots of those whom an absorbing outlet
      takes; who is pushed back goes on a little inside
    - inlet "none": nobody enters; who is pushed back is absorbed
    - outlet "absorbing": who leaves has exited
    - either "reflective": a mirror
    - either "periodic": a particle beyond this end goes on from the other
    """
    check_choice("inlet", inlet, INLETS)
    check_choice("outlet", outlet, OUTLETS)
    planes = direction(flow_direction)
    if (inlet, outlet) == ("continuous", "absorbing"):
        lattice = (inlet_distribution, concentrations, seed)
        return recycling_channel(bounds, flow_axis, planes, INLETS[inlet], *lattice)
    return make_channel(bounds, flow_axis, planes, INLETS[inlet], outlet)


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
    """Return a channel that replaces leaving particles by new ones at the inlet.

    New particles start on the inlet plane: `grid` (at the lattice value nearest to the
    old one; `concentrations` are counts per axis), `uniform` or `random`, or
    `gaussian`. Without a distribution it is `grid` if there are concentrations and
    `uniform` if not. `inlet_position` and `outlet_position` move the ends of the
    channel and decide the direction. `domain_bounds` is another name for `bounds`.
    """
    if (bounds is None) == (domain_bounds is None):
        raise TypeError("give the box of the channel once, as bounds or domain_bounds")
    bounds = domain_bounds if bounds is None else bounds
    inlet, outlet = direction(flow_direction)
    if inlet_distribution is None:
        inlet_distribution = "uniform" if concentrations is None else "grid"
    planes = (
        inlet if inlet_position is None else inlet_position,
        outlet if outlet_position is None else outlet_position,
    )
    lattice = (inlet_distribution, concentrations, seed)
    return recycling_channel(bounds, flow_axis, planes, "returning", *lattice)


def inlet_outlet_boundary_factory(
    bounds: Any,
    inlet_axis: str | int = "x",
    inlet_position: float | str = "min",
    outlet_position: float | str = "max",
    inlet_particle_generator: Callable[[Any], Any] | None = None,
    *,
    seed: int = 0,
) -> ChannelBoundary:
    """Return a channel that particles leave: exited or, at the inlet, absorbed.

    With a generator every slot that gets free is used again: it is called with uniform
    numbers (N, 3) in [0, 1), one row per slot, and answers first positions (N, 3).
    """
    generator, planes = inlet_particle_generator, (inlet_position, outlet_position)
    entry = None if generator is None else generated_entry(generator, seed)
    ends = ("absorbing", "absorbing", entry and (lambda *_: entry))
    return make_channel(bounds, inlet_axis, planes, *ends)


def flow_through_boundary_factory(
    bounds: Any,
    flow_axis: str | int = "x",
    flow_direction: str = "positive",
    *,
    seed: int = 0,
) -> ChannelBoundary:
    """Return a channel whose exits re-enter at the inlet; backflow mirrors."""
    planes = direction(flow_direction)
    return recycling_channel(
        bounds, flow_axis, planes, "reflective", "uniform", None, seed
    )
