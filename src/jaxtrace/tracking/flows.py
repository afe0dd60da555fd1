"""Ready fields to try things with: uniform, vortex, saddle, or any function."""

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
from jaxtyping import Array, Bool, Float

from jaxtrace.bounds import box_bounds
from jaxtrace.fields.analytic import FLOWS
from jaxtrace.fields.base import AbstractField, Corner, Memory
from jaxtrace.fields.clock import Moment, Numbers
from jaxtrace.fields.function import as_field
from jaxtrace.settings import known_only


class Bounded(AbstractField):
    """A field that holds everywhere, together with the box one is interested in."""

    field: AbstractField
    low: tuple[float, float, float] = eqx.field(static=True)
    high: tuple[float, float, float] = eqx.field(static=True)

    def moment(self, time: Numbers) -> Moment:
        """An instant as the field sees it."""
        return self.field.moment(time)

    def velocity(
        self, positions: Float[Array, "n 3"], moment: Moment, memory: Memory
    ) -> tuple[Float[Array, "n 3"], Memory]:
        """What the field answers."""
        return self.field.velocity(positions, moment, memory)

    def start(self, positions: Float[Array, "n 3"]) -> Memory:
        """What particles remember at first."""
        return self.field.start(positions)

    def inside(
        self, positions: Float[Array, "n 3"], memory: Memory
    ) -> Bool[Array, " n"]:
        """Where the field is known, in the box and beyond."""
        return self.field.inside(positions, memory)

    def bounds(self) -> tuple[Corner, Corner]:
        """The corners of the box."""
        box = box_bounds([self.low, self.high])
        return box.lo, box.hi

    def time_bounds(self) -> tuple[float, float]:
        """The first and the last instant of the field."""
        return self.field.time_bounds()


def within(field: Any, bounds: Any = None) -> AbstractField:
    """A field that answers these bounds when asked for its own; it still has no end."""
    frozen = as_field(field)
    if bounds is None:
        return frozen
    box = box_bounds(bounds)
    (x0, y0, z0), (x1, y1, z1) = box.lo.tolist(), box.hi.tolist()
    return Bounded(frozen, (x0, y0, z0), (x1, y1, z1))


def create_uniform_field(
    velocity: Any = (1.0, 0.0, 0.0), bounds: Any = None
) -> AbstractField:
    """The same velocity everywhere, given by two or three components."""
    components = tuple(velocity)
    if len(components) not in (2, 3):
        raise ValueError(f"velocity={velocity}: give two or three components")
    return within(
        make_flow("uniform", **dict(zip("uvw", components, strict=False))), bounds
    )


def create_vortex_field(
    center: Any = (0.0, 0.0),
    strength: float = 1.0,
    bounds: Any = None,
    core: float = 0.1,
) -> AbstractField:
    """A vortex about an upright axis; its strength is the circulation.

    Within about `core` of the axis it turns like a solid, so that it has no pole.
    """
    if not core > 0:
        raise ValueError(f"core={core}: the radius of a vortex core is above 0")
    x0, y0 = tuple(center)[:2]
    return within(
        make_flow("vortex", circulation=strength, core=core, x0=x0, y0=y0), bounds
    )


def create_saddle_field(
    center: Any = (0.0, 0.0), strength: float = 1.0, bounds: Any = None
) -> AbstractField:
    """Stretching along x and squeezing along y at the rate `strength`."""
    x0, y0 = tuple(center)[:2]
    return within(make_flow("saddle", rate=strength, x0=x0, y0=y0), bounds)


def create_simple_field_from_function(
    field_func: Callable[[Any, Any], Any], bounds: Any = None
) -> AbstractField:
    """A field of a function `f(positions, t) -> velocities`, with bounds if given."""
    return within(field_func, bounds)


def make_flow(type: str, **parameters: Any) -> Any:
    """An analytic flow by name, with its parameters.

    >>> make_flow("uniform", u=2.0).get_time_bounds()
    (-inf, inf)
    """
    if type not in FLOWS:
        raise ValueError(f"flow {type!r}: choose one of {', '.join(FLOWS)}")
    names = [field.name for field in dataclasses.fields(FLOWS[type])]
    return FLOWS[type](**known_only(parameters, names, f"parameter of {type}"))
