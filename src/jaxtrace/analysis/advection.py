"""How particles are carried over a span of time, and how many steps that takes."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxrig import compile_once
from jaxtrace.analysis.stretching import log_stretch
from jaxtrace.config import working_dtype
from jaxtrace.fields.clock import Moment
from jaxtrace.tracking.schedule import SLACK
from jaxtrace.tracking.simulate import first_moment
from jaxtrace.tracking.step import World

#: What ends and stretching may be off by, where nothing else is asked.
DEFAULT_TOLERANCE = {"float32": 1e-4, "float64": 1e-6}
PROBES = 256  # seeds whose paths are followed to choose the number of steps
INSTANTS = 5  # of the span, at which the shear of the flow is looked at
SHARE = 95.0  # percent of the probes that must be within the tolerance
STALLED = 1.5  # a change that shrinks by less than this is rounding, or a jump

Points = Float[np.ndarray, "n 3"]
Follow = Callable[[Points, int], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True, eq=False)
class Advection:
    """How particles are carried over a span of time.

    Give one of `n_steps` (equal steps), `dt` (the longest step) and `tolerance`: steps
    are then halved until the ends of paths (as a part of the longest way) and the
    stretching around them change by less, for all but a few probes. Without any the
    tolerance is `DEFAULT_TOLERANCE`. `dtype` is that of positions.
    """

    integrator: str = "rk4"
    n_steps: int | None = None
    dt: float | None = None
    tolerance: float | None = None
    boundary: Any = None
    batch_size: int | None = None
    dtype: Any = None

    def __post_init__(self) -> None:
        given = {"n_steps": self.n_steps, "dt": self.dt, "tolerance": self.tolerance}
        named = [f"{name}={v}" for name, v in given.items() if v is not None]
        if len(named) > 1:
            raise ValueError(f"{' and '.join(named)}: give one of them")
        if self.n_steps is not None and self.n_steps < 1:
            raise ValueError(f"n_steps={self.n_steps}: take at least one step")
        for name in ("dt", "tolerance"):
            value = given[name]
            if value is not None and not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name}={value} must be finite and above 0")
        if self.batch_size is not None and self.batch_size < 1:
            raise ValueError(f"batch_size={self.batch_size}: need at least one")
        if jax.dtypes.canonicalize_dtype(self.kind) != self.kind:
            raise ValueError('float64 is off in JAX: configure(dtype="float64")')

    @property
    def kind(self) -> np.dtype:
        """The dtype of positions."""
        return working_dtype() if self.dtype is None else np.dtype(self.dtype)

    @property
    def open(self) -> bool:
        """Whether the number of steps has to be found."""
        return self.n_steps is None and self.dt is None

    @property
    def error(self) -> float:
        """The tolerance by which the number of steps is found."""
        return self.tolerance or DEFAULT_TOLERANCE[self.kind.name]


def count_steps(
    world: World,
    how: Advection,
    span: tuple[float, float],
    points: Points,
    follow: Follow,
) -> int:
    """How many steps a span is cut into; `follow` gives ends and gradients of probes.

    A first number follows from the shear of the flow; the number is then doubled until
    that makes no difference.
    """
    length = abs(span[1] - span[0])
    if how.n_steps is not None:
        return how.n_steps
    if how.dt is not None:
        return max(1, math.ceil(length / how.dt - SLACK))
    known = points[np.isfinite(points).all(axis=1)]
    if not len(known):
        return 1
    picked = np.linspace(0, len(known) - 1, min(len(known), PROBES)).astype(int)
    probes = known[picked]
    # One step of the fourth order errs by (shear times its length)^5 / 5!.
    turns = _largest_shear(world, how, span, probes) * length
    steps = _power_of_two(turns / (120 * how.error) ** 0.2)
    before, change = follow(probes, steps), np.inf
    while True:
        after = follow(probes, 2 * steps)
        last, change = change, _difference(probes, before, after)
        if change <= how.error or not change * STALLED < last:
            return steps
        steps, before = 2 * steps, after


def _power_of_two(number: float) -> int:
    return 2 ** max(0, math.ceil(math.log2(max(number, 1.0))))


def _difference(
    seeds: Points,
    coarse: tuple[np.ndarray, np.ndarray],
    fine: tuple[np.ndarray, np.ndarray],
) -> float:
    """How much most probes differ, in where they end or in how much is stretched."""
    alive = np.isfinite(coarse[0][:, 0]) & np.isfinite(fine[0][:, 0])
    if not alive.any():
        return 0.0
    way = np.linalg.norm(fine[0] - seeds, axis=1)[alive].max()
    moved = np.linalg.norm(fine[0] - coarse[0], axis=1)[alive]
    stretched = np.abs(log_stretch(fine[1]) - log_stretch(coarse[1]))[alive]
    worst = np.maximum(moved / way if way > 0 else 0 * moved, stretched)
    return float(np.percentile(worst, SHARE))


def _largest_shear(
    world: World, how: Advection, span: tuple[float, float], probes: Points
) -> float:
    largest = 0.0
    for time in np.linspace(*span, INSTANTS):
        moment = first_moment(world.field, np.array([time]), how.kind)
        found = np.asarray(shear(world, jnp.asarray(probes), moment))
        largest = max(largest, float(found[np.isfinite(found)].max(initial=0.0)))
    return largest


@compile_once(max_traces=None)
def shear(
    world: World, positions: Float[Array, "n 3"], moment: Moment
) -> Float[Array, " n"]:
    """The size of the velocity's gradient."""

    def velocity(x: Float[Array, "n 3"]) -> Float[Array, "n 3"]:
        places = world.boundary.wrap(x)
        return world.field.velocity(places, moment, world.field.start(places))[0]

    def along(axis: Float[Array, " 3"]) -> Float[Array, "n 3"]:
        way = jnp.broadcast_to(axis[None], positions.shape)
        return jax.jvp(velocity, (positions,), (way,))[1]

    columns = jax.vmap(along)(jnp.eye(3, dtype=positions.dtype))
    return jnp.sqrt(jnp.sum(columns * columns, axis=(0, 2)))
