"""Flow maps, their exact gradients, and finite-time Lyapunov exponents.

The gradient is the forward-mode derivative of the very steps that particles take, so
neighboring seeds are not needed and no distance has to be chosen.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxrig import compile_once
from jaxrig.batching import call_together, is_out_of_memory, split_axis
from jaxrig.progress import Meter, starting
from jaxrig.settings import Checked, maybe, number, one_of, whole
from jaxtrace.config import (
    WORKSPACE_FACTOR,
    memory_budget_bytes,
    working_cores,
    working_dtype,
)
from jaxtrace.fields.analytic import HostField
from jaxtrace.fields.base import as_positions
from jaxtrace.fields.clock import Instant
from jaxtrace.integrators import METHODS
from jaxtrace.settings import as_given
from jaxtrace.tracking.particles import Particles, Scalars, Vectors, pad_slots
from jaxtrace.tracking.schedule import SLACK, Schedule, make_schedule
from jaxtrace.tracking.step import Dynamics, Method
from jaxtrace.tracking.time_loop import (
    advance,
    allow_one_program,
    begin,
    first_instant,
    make_dynamics,
    part_count,
)
from jaxtrace.tracking.windows import SliceWindows


def log_stretch(
    gradient: Float[np.ndarray, "n 3 directions"],
) -> Float[np.ndarray, " n"]:
    """Return the log of the largest singular value of each gradient; NaN stays.

    It is the root of the largest eigenvalue of the Cauchy-Green tensor F^T F.
    """
    found = np.full(len(gradient), np.nan)
    known = np.isfinite(gradient).all(axis=(1, 2))
    whole = gradient[known].astype(np.float64)
    # The tensor is a square: without a scale it leaves the range of numbers too soon.
    size = np.abs(whole).max(axis=(1, 2), initial=0.0)
    scaled = whole / np.where(size > 0, size, 1.0)[:, None, None]
    tensor = np.swapaxes(scaled, 1, 2) @ scaled
    with np.errstate(divide="ignore"):
        top = np.log(np.linalg.eigvalsh(tensor)[:, -1].clip(0)) / 2
        found[known] = np.log(size) + np.where(size > 0, top, 0.0)
    return found


#: What ends and stretching may be off by, where nothing else is asked.
DEFAULT_TOLERANCE = {"float32": 1e-4, "float64": 1e-6}
PROBES = 256  # seeds whose paths are followed to choose the number of steps
INSTANTS = 5  # of the span, at which the shear of the flow is looked at
SHARE = 95.0  # percent of the probes that must be within the tolerance
STALLED = 1.5  # a change that shrinks by less than this is rounding, or a jump

Points = Float[np.ndarray, "n 3"]
Follow = Callable[[Points, int], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True, eq=False)
class Advection(Checked):
    """How particles are carried over a span of time.

    Give one of `n_steps` (equal steps), `dt` (the longest step) and `tolerance`: steps
    are then halved until the ends of paths (as a part of the longest way) and the
    stretching around them change by less, for all but a few probes. Without any the
    tolerance is `DEFAULT_TOLERANCE`. `dtype` is that of positions.
    """

    integrator: Annotated[str, one_of(*METHODS)] = "rk4"
    n_steps: Annotated[int | None, maybe(whole())] = None
    dt: Annotated[float | None, maybe(number(0))] = None
    tolerance: Annotated[float | None, maybe(number(0))] = None
    boundary: Annotated[Any, as_given] = None
    batch_size: Annotated[int | None, maybe(whole())] = None
    dtype: Annotated[Any, as_given] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        given = {"n_steps": self.n_steps, "dt": self.dt, "tolerance": self.tolerance}
        named = [f"{name}={v}" for name, v in given.items() if v is not None]
        if len(named) > 1:
            raise ValueError(f"{' and '.join(named)}: give one of them")
        if jax.dtypes.canonicalize_dtype(self.kind) != self.kind:
            raise ValueError('float64 is off in JAX: configure(dtype="float64")')

    @property
    def kind(self) -> np.dtype:
        """Return the dtype of positions."""
        return working_dtype() if self.dtype is None else np.dtype(self.dtype)

    @property
    def open(self) -> bool:
        """Return whether the number of steps has to be found."""
        return self.n_steps is None and self.dt is None

    @property
    def error(self) -> float:
        """Return the tolerance by which the number of steps is found."""
        return self.tolerance or DEFAULT_TOLERANCE[self.kind.name]


def count_steps(
    dynamics: Dynamics,
    options: Advection,
    span: tuple[float, float],
    points: Points,
    follow: Follow,
) -> int:
    """Return how many steps a span needs; `follow` traces the probes.

    A first number follows from the shear of the flow; the number is then doubled until
    that makes no difference.
    """
    length = abs(span[1] - span[0])
    if options.n_steps is not None:
        return options.n_steps
    if options.dt is not None:
        return max(1, math.ceil(length / options.dt - SLACK))
    known = points[np.isfinite(points).all(axis=1)]
    if not len(known):
        return 1
    picked = np.linspace(0, len(known) - 1, min(len(known), PROBES)).astype(int)
    probes = known[picked]
    # One step of the fourth order errs by (shear times its length)^5 / 5!.
    allow_one_program(shear)
    largest = 0.0
    for time in np.linspace(*span, INSTANTS):
        instant = first_instant(dynamics.field, np.array([time]), options.kind)
        found = np.asarray(shear(dynamics, jnp.asarray(probes), instant))
        largest = max(largest, float(found[np.isfinite(found)].max(initial=0.0)))
    turns = largest * length
    least = turns / (120 * options.error) ** 0.2
    steps = 2 ** math.ceil(math.log2(max(least, 1.0)))
    before, change = follow(probes, steps), np.inf
    while True:
        after = follow(probes, 2 * steps)
        last, change = change, _difference(probes, before, after)
        if change <= options.error or not change * STALLED < last:
            return steps
        steps, before = 2 * steps, after


def _difference(
    seeds: Points,
    coarse: tuple[np.ndarray, np.ndarray],
    fine: tuple[np.ndarray, np.ndarray],
) -> float:
    """Return how much most probes differ in their ends or in stretching."""
    alive = np.isfinite(coarse[0][:, 0]) & np.isfinite(fine[0][:, 0])
    if not alive.any():
        return 0.0
    way = np.linalg.norm(fine[0] - seeds, axis=1)[alive].max()
    moved = np.linalg.norm(fine[0] - coarse[0], axis=1)[alive]
    stretched = np.abs(log_stretch(fine[1]) - log_stretch(coarse[1]))[alive]
    worst = np.maximum(moved / way if way > 0 else 0 * moved, stretched)
    return float(np.percentile(worst, SHARE))


@compile_once(max_traces=1)
def shear(dynamics: Dynamics, positions: Vectors, instant: Instant) -> Scalars:
    """Return how fast the velocity's gradient J turns and stretches: |J^5|^(1/5).

    A shear that turns nothing, such as that of an ocean over its depth, counts little.
    """
    sphere = dynamics.field.sphere
    # Positions on a sphere are degrees, velocities meters per second.
    meters = jnp.ones_like(positions) if sphere is None else sphere.scale(positions)

    def velocity(x: Vectors) -> Vectors:
        places = dynamics.boundary.wrap(x)
        return dynamics.field.velocity(places, instant, dynamics.field.start(places))[0]

    def along(axis: Float[Array, " 3"]) -> Vectors:
        return jax.jvp(velocity, (positions,), (axis[None] / meters,))[1]

    columns = jax.vmap(along)(jnp.eye(3, dtype=positions.dtype))
    gradient = jnp.moveaxis(columns, 0, -1)
    size = jnp.sqrt(jnp.sum(gradient * gradient, axis=(1, 2)))
    unit = gradient / jnp.where(size > 0, size, 1.0)[:, None, None]
    fifth = jnp.sum(jnp.linalg.matrix_power(unit, 5) ** 2, axis=(1, 2)) ** 0.1
    return size * fifth


SILENT = Meter()
STEPS_PER_CALL = 64  # of the compiled program, which serves any number of steps

Tangents = Float[Array, "directions n 3"]


def flow_map(field: Any, seeds: Any, t0: float, T: float, **options: Any) -> Points:
    """Return where particles from seeds (N, 2 or 3) at time t0 are at t0 + T.

    `options` are those of `Advection`. NaN marks particles that left or were recycled.
    """
    parts = advect(field, seeds, t0, T, 0, Advection(**Advection.read(options)))
    return np.concatenate([ends for ends, _ in parts])


def flow_map_gradient(
    field: Any, seeds: Any, t0: float, T: float, *, dimensions: int = 3, **options: Any
) -> Float[np.ndarray, "n 3 dimensions"]:
    """Return the gradient of path ends along `dimensions` of the seeds.

    `gradient[:, i, j]` is how the end moves along axis i with the seed's coordinate j.
    """
    if dimensions not in (1, 2, 3):
        raise ValueError(f"dimensions={dimensions}: seeds have 1, 2 or 3 to change")
    how = Advection(**Advection.read(options))
    parts = advect(field, seeds, t0, T, dimensions, how)
    return np.concatenate([gradient for _, gradient in parts])


def advect(
    field: Any,
    seeds: Any,
    t0: float,
    T: float,
    directions: int,
    options: Advection,
    meter: Meter = SILENT,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield path ends and their gradients, in batches that fit the memory limit."""
    if not (math.isfinite(t0) and math.isfinite(T) and T != 0):
        raise ValueError(f"t0={t0}, T={T}: both must be finite, and T not 0")
    given = np.asarray(seeds, options.kind)
    points = np.asarray(as_positions(given)) if given.size else np.zeros((0, 3))
    meter.compiling("flow map")
    flow = FlowMap(field, options, (t0, t0 + T), points.astype(options.kind))
    tell = starting(meter, "flow map")
    size = min(options.batch_size or flow.batch_size(directions), max(len(points), 1))
    start = 0
    while start < len(points) or start == len(points) == 0:
        # The last batch reaches back over rows already done: one shape, one program.
        first = max(0, min(start, len(points) - size))
        own = min(size, len(points) - start)
        now = lambda part, at=start, own=own: tell(int(at + part * own), len(points))
        try:
            ends, gradient = flow.advect(
                points[first : first + size], directions, None if meter.silent else now
            )
        except (jax.errors.JaxRuntimeError, MemoryError, ValueError) as error:
            if size == 1 or not is_out_of_memory(error):
                raise
            size //= 2
            continue
        new = slice(start - first, None)
        yield ends[new], gradient[new]
        start = first + size


class FlowMap:
    """A span of time in a field, ready to carry batches of particles through it."""

    def __init__(
        self, field: Any, options: Advection, span: tuple[float, float], points: Points
    ) -> None:
        self._how, self._span = options, span
        self._world = make_dynamics(field, options.boundary, None, 0)
        if isinstance(self._world.field, HostField):
            raise ValueError(
                "a field function of NumPy arrays has no derivative: write it with "
                "jax.numpy"
            )
        self._windows = SliceWindows(self._world, field)
        self._method = Method(options.integrator, len(points))
        if self._windows.streams and options.open:
            raise ValueError("a streamed field needs n_steps or dt, to be read once")
        probe = lambda seeds, steps: self.advect(seeds, steps=steps)
        self._steps: int | None = None  # while it is found, calls are of one length
        self._steps = count_steps(self._world, options, span, points, probe)

    def batch_size(self, directions: int) -> int:
        """Return particles whose stages and derivatives fit the memory limit."""
        stages = len(self._method.tableau.nodes)
        row = 3 * self._how.kind.itemsize * (1 + directions) * (1 + stages)
        return max(1, memory_budget_bytes() // (WORKSPACE_FACTOR * row))

    def advect(
        self,
        seeds: Points,
        directions: int = 3,
        tell: Callable[[float], None] | None = None,
        steps: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return where a batch ends, and how that changes along the first few axes.

        `tell` is given the part of the steps that are done.
        """
        steps = steps or self._steps or 1
        windows, method, kind = self._windows, self._method, self._how.kind
        field, times = self._world.field, np.linspace(*self._span, steps + 1)
        schedule = make_schedule(field, times, 1, method.tableau, kind)
        dynamics, instant, _ = windows.at(first_instant(field, times, kind), {})
        allow_one_program(begin, push)
        particles, _ = begin(dynamics, jnp.asarray(seeds), instant, method)
        parts = part_count(dynamics, len(seeds), working_cores())
        split = split_axis(pad_slots(particles, parts), parts)
        axes = jnp.eye(3, dtype=kind)[:directions, None]
        tangents = jnp.broadcast_to(axes, (directions, *split[0].positions.shape))
        pieces: list[Any] = [(some, tangents) for some in split]
        searching = self._steps is None
        length = STEPS_PER_CALL if searching else min(STEPS_PER_CALL, steps)
        padded = bool(steps % length) or windows.streams or searching
        first = 0
        while first < steps:
            dynamics, part, first = windows.piece(schedule, first, length)
            work = lambda piece, w=dynamics, s=part: push(
                w, piece[0], piece[1], s, method, padded
            )
            pieces = call_together(work, pieces)
            windows.prefetch(schedule, first)
            if tell is not None:
                jax.block_until_ready(pieces)
                tell(first / steps)
        ends, gradients = zip(*(_ends(*piece) for piece in pieces), strict=True)
        count = len(seeds)
        ends, gradient = (np.concatenate(p)[:count] for p in (ends, gradients))
        if field.sphere is None:
            return ends, gradient
        # Meters per meter, where the axes are east, north and up at either end.
        scales = (np.asarray(field.sphere.scale(jnp.asarray(p))) for p in (seeds, ends))
        before, after = scales
        return ends, gradient * after[:, :, None] / before[:, None, :directions]


@compile_once(max_traces=1)
def push(
    dynamics: Dynamics,
    particles: Particles,
    tangents: Tangents,
    part: Schedule,
    method: Method,
    padded: bool,
) -> tuple[Particles, Tangents]:
    """Advance particles, and tangents of their positions along with them."""

    def run(positions: Vectors) -> tuple[Any, Particles]:
        start = eqx.tree_at(lambda p: p.positions, particles, positions)
        after, _ = advance(dynamics, start, part, method, padded=padded)
        return after.positions, after

    def along(tangent: Vectors) -> tuple[Any, Particles]:
        at, way = (particles.positions,), (tangent,)
        _, change, after = jax.jvp(run, at, way, has_aux=True)
        return change, after

    if not tangents.shape[0]:
        return run(particles.positions)[1], tangents
    # One forward-mode pass per direction, batched: the primal run is shared by all.
    changes, after = jax.vmap(along, out_axes=(0, None))(tangents)
    return after, changes


def _ends(particles: Particles, tangents: Tangents) -> tuple[np.ndarray, np.ndarray]:
    """Return positions (n, 3) and gradients (n, 3, directions), NaN if gone.

    A slot that was used again holds another particle, which tells nothing of its seed.
    """
    gone = ~np.asarray(particles.alive) | (np.asarray(particles.generation) > 0)
    ends = np.array(particles.positions)
    gradient = np.moveaxis(np.array(tangents), 0, -1)
    ends[gone] = np.nan
    gradient[gone] = np.nan
    return ends, gradient


def ftle(
    field: Any,
    grid: Sequence[Any],
    t0: float,
    T: float,
    *,
    level: float = 0.0,
    meter: Meter = SILENT,
    **how: Any,
) -> Float[np.ndarray, "*grid"]:
    """Return the exponent ln(sigma) / |T| at every node of a grid.

    sigma, the root of the largest eigenvalue of the Cauchy-Green tensor F^T F, is the
    largest stretching by the flow map from t0 to t0 + T; T < 0 goes back in time. The
    grid is (x, y) axes at z = `level`, whose particles are told apart in the plane
    only, or (x, y, z). `how` are the options of `Advection`. NaN marks particles that
    left. A meter hears how far it is.

    >>> from jaxtrace.fields.analytic import Saddle
    >>> rates = ftle(Saddle(rate=0.5), ([0.1, 0.2], [0.3]), 0.0, 2.0, n_steps=20)
    >>> rates.shape, bool(abs(rates - 0.5).max() < 1e-4)
    ((2, 1), True)
    """
    axes = [np.atleast_1d(np.asarray(axis, np.float64)) for axis in grid]
    if len(axes) not in (2, 3) or any(axis.ndim != 1 for axis in axes):
        shapes = ", ".join(str(axis.shape) for axis in axes)
        raise ValueError(f"a grid of {shapes}: give the axes (x, y) or (x, y, z)")
    options = Advection(**Advection.read(how))
    mesh = np.meshgrid(*axes, *[[level]] * (3 - len(axes)), indexing="ij")
    seeds = np.stack([part.ravel() for part in mesh], axis=1)
    parts = advect(field, seeds, t0, T, len(axes), options, meter)
    rates = np.concatenate([log_stretch(gradient) / abs(T) for _, gradient in parts])
    return rates.astype(options.kind).reshape([axis.size for axis in axes])
