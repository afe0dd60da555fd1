"""Boxes whose faces repeat, mirror, stop or absorb particles, axis by axis."""

from collections.abc import Mapping
from typing import Any, Literal, cast, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxtrace.bounds import AXES, box_bounds
from jaxtrace.sphere import TURN, Sphere
from jaxtrace.tracking.boundaries.base import AbstractBoundary, StepContext, reach
from jaxtrace.tracking.particles import Particles, Vectors, move, retire
from jaxtrace.types import ParticleStatus, check_choice

Rule = Literal["periodic", "reflective", "clamping", "absorbing", "open"]
RULES = get_args(Rule)


def wrap_axis(x: Array, lo: Array, hi: Array) -> Array:
    """Wrap coordinates into [lo, hi); those inside stay as they are."""
    width = hi - lo
    moved = x - width * jnp.floor((x - lo) / width)
    # Rounding may end on the far face, which is the near one.
    moved = jnp.where((moved >= lo) & (moved < hi), moved, lo)
    return jnp.where((x < lo) | (x >= hi), moved, x)


def mirror_axis(x: Array, lo: Array, hi: Array) -> Array:
    """Return coordinates folded back between two mirrors, however far they went."""
    width = hi - lo
    # A reflected coordinate is a triangle wave of period 2 width.
    along = (x - lo) / (2 * width)
    phase = (along - jnp.floor(along)) * 2 * width
    folded = lo + jnp.where(phase <= width, phase, 2 * width - phase)
    # Near a mirror the plain reflection keeps the rounding of a short step.
    folded = jnp.where((x < lo) & (x >= lo - width), lo + (lo - x), folded)
    folded = jnp.where((x > hi) & (x <= hi + width), hi - (x - hi), folded)
    folded = jnp.where(folded >= lo, jnp.minimum(folded, hi), lo)
    return jnp.where((x < lo) | (x > hi), folded, x)


class BoxBoundary(AbstractBoundary):
    """One rule per axis for particles that cross the faces of a box."""

    lo: Float[Array | np.ndarray, "3"]
    hi: Float[Array | np.ndarray, "3"]
    rules: tuple[Rule, Rule, Rule] = eqx.field(static=True)
    outside_value: float = eqx.field(static=True, default=float("nan"))

    def apply(self, particles: Particles, context: StepContext) -> Particles:
        """Absorb first, at the face that was crossed; then move what is left."""
        if "absorbing" in self.rules:
            gone, point, fraction = self.crossing(context.before, particles.positions)
            when = context.time_at(fraction)
            particles = retire(particles, gone, ParticleStatus.ABSORBED, point, when)
        return move(particles, self._map(particles.positions, ("absorbing", "open")))

    def wrap(self, positions: Vectors) -> Vectors:
        """Return stage points of repeating axes, moved into the box."""
        if "periodic" not in self.rules:
            return positions
        others = ("reflective", "clamping", "absorbing", "open")
        return self._map(positions, others)

    @property
    def period(self) -> tuple[float, float, float]:
        """Return the widths of the repeating axes."""
        widths = [
            float(h - l) if rule == "periodic" else 0.0
            for l, h, rule in zip(self.lo, self.hi, self.rules, strict=True)
        ]
        return widths[0], widths[1], widths[2]

    @property
    def fill(self) -> float:
        """Return the value the user chose for particles outside."""
        return self.outside_value

    def crossing(self, before: Vectors, after: Vectors) -> tuple[Any, Any, Any]:
        """Return who left through an absorbing face, where on it, and how far along."""
        dtype = after.dtype
        fraction = jnp.ones(after.shape[0], dtype)
        gone = jnp.zeros(after.shape[0], bool)
        met: dict[int, tuple[Array, Array]] = {}
        for axis in self._axes("absorbing"):
            lo, hi = self._ends(axis, dtype)
            x = after[:, axis]
            out = (x < lo) | (x > hi)
            face = jnp.where(x < lo, lo, hi)
            part = jnp.where(out, reach(before[:, axis], x, face), 1)
            fraction, gone = jnp.minimum(fraction, part), gone | out
            met[axis] = face, part
        point = before + fraction[:, None] * (after - before)
        point = self._map(point, ("absorbing", "open"))
        columns = [point[:, axis] for axis in range(3)]
        for axis, (face, part) in met.items():
            # Where it left, it is on the face to the last bit.
            within = jnp.clip(columns[axis], *self._ends(axis, dtype))
            columns[axis] = jnp.where(gone & (part <= fraction), face, within)
        return gone, jnp.stack(columns, 1), fraction

    def _axes(self, rule: str) -> list[int]:
        return [axis for axis in range(3) if self.rules[axis] == rule]

    def _ends(self, axis: int, dtype: Any) -> tuple[Array, Array]:
        return jnp.asarray(self.lo[axis], dtype), jnp.asarray(self.hi[axis], dtype)

    def _map(self, positions: Array, skipped: tuple[str, ...]) -> Array:
        columns = []
        for axis, rule in enumerate(self.rules):
            x = positions[:, axis]
            if rule not in skipped:
                x = MAPS[rule](x, *self._ends(axis, x.dtype))
            columns.append(x)
        return jnp.stack(columns, 1)


def check_longitudes(boundary: AbstractBoundary, sphere: Sphere | None) -> None:
    """Raise ValueError for boxes over the meridian at which longitudes begin again."""
    if sphere is None:
        return
    boxes = lambda part: isinstance(part, BoxBoundary)
    west = float(sphere.west)
    for part in filter(boxes, jax.tree.leaves(boundary, is_leaf=boxes)):
        low, high = float(part.lo[0]), float(part.hi[0])
        within = west - SEAM <= low and high <= west + TURN + SEAM
        if not within and part.rules[0] not in ("open", "periodic"):
            raise ValueError(
                f"bounds from {low:g} to {high:g} degrees east are not within those of "
                f"the data, {west:g} to {west + TURN:g}, where particles are: leave "
                'longitudes "open" in a mixed boundary, or let those of the data begin '
                'elsewhere, as data.assign_coords(lon=data.lon % 360).sortby("lon") '
                "does in xarray"
            )


SEAM = 1e-3  # degrees, such as rounding leaves
MAPS = {"periodic": wrap_axis, "reflective": mirror_axis, "clamping": jnp.clip}


def box_boundary(
    bounds: Any, rules: Any, outside_value: float = float("nan")
) -> BoxBoundary:
    """Return a box with one rule for all axes or one each; flat axes are open."""
    box = box_bounds(bounds)
    chosen = [rules] * 3 if isinstance(rules, str) else list(rules)
    for rule in chosen:
        check_choice("boundary", rule, RULES)
    x, y, z = (
        rule if active else "open"
        for rule, active in zip(chosen, box.active, strict=True)
    )
    rules = cast(tuple[Rule, Rule, Rule], (x, y, z))
    return BoxBoundary(box.lo, box.hi, rules, float(outside_value))


def periodic_boundary(bounds: Any) -> BoxBoundary:
    """Return a box that repeats: particles re-enter at the opposite face."""
    return box_boundary(bounds, "periodic")


def reflective_boundary(bounds: Any) -> BoxBoundary:
    """Return a box of mirrors, however far a particle went beyond them."""
    return box_boundary(bounds, "reflective")


def clamping_boundary(bounds: Any) -> BoxBoundary:
    """Return a box that stops particles at its faces."""
    return box_boundary(bounds, "clamping")


def absorbing_boundary_factory(
    bounds: Any, outside_value: float = float("nan")
) -> BoxBoundary:
    """Return a box that takes particles out of the run at its faces.

    `outside_value` stands for every coordinate of a particle that is gone.
    """
    return box_boundary(bounds, "absorbing", outside_value)


def mixed_boundary(bounds: Any, boundary_types: Mapping[str, str]) -> BoxBoundary:
    """Return a box with rules per axis, `{"x": "reflective"}`; else periodic.

    The rules are periodic, reflective, clamping, absorbing and open.
    """
    for axis in boundary_types:
        check_choice("axis", axis, tuple(AXES))
    return box_boundary(bounds, [boundary_types.get(a, "periodic") for a in AXES])
