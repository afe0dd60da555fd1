"""The interface of a field: velocities at positions and instants, as a frozen pytree.

Particles carry a cell hint, so that on a mesh a look-up starts from the last element.
"""

import abc
import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jaxrig import compile_once
from jaxrig.notebook import Shown
from jaxtrace.fields.clock import Instant, Numbers, blend_slices
from jaxtrace.sphere import Sphere

CellHint = Any  # a pytree of arrays with one row per particle; () where none is needed
Corner = Float[np.ndarray, " 3"]


class Field(Shown, abc.ABC):
    """The calls every field answers: what users and trackers of other packages use."""

    shown_by: ClassVar[str] = "jaxtrace.plot.canvas:show_field"

    @property
    @abc.abstractmethod
    def frozen(self) -> "AbstractField":
        """Return the field as the pytree that compiled code takes."""

    def sample_at_positions(self, positions: Any, t: Numbers = 0.0) -> Array:
        """Return velocities (N, 3) at positions (N, 2 or 3) and a time."""
        field = self.frozen
        return sample(field, as_positions(positions), moment(field, t))

    def __call__(self, positions: Any, t: Numbers = 0.0) -> Array:
        """Return velocities at positions and a time."""
        return self.sample_at_positions(positions, t)

    def sample(self, positions: Any) -> Array:
        """Return velocities at positions and time zero: what a steady field answers."""
        return self.sample_at_positions(positions, 0.0)

    def contains(self, positions: Any, t: Numbers = 0.0) -> Bool[Array, " n"]:
        """Return where the field is known; particles elsewhere are lost."""
        field = self.frozen
        return _contains(field, as_positions(positions), moment(field, t))

    def get_spatial_bounds(self) -> tuple[Corner, Corner]:
        """Return the lowest and the highest corner of where the field is known."""
        return self.frozen.bounds()

    def get_time_bounds(self) -> tuple[float, float]:
        """Return the first and the last instant the field is known at."""
        return self.frozen.time_bounds()


class AbstractField(eqx.Module, Field):
    """A velocity field as arrays and pure functions of them.

    One that `searches` for the cell of a place is long to compile.
    """

    searches = False
    # By identity: arrays have no hash, which `jax.jit(field)` asks for.
    __hash__ = object.__hash__

    @property
    def frozen(self) -> "AbstractField":
        """Return itself: it is frozen already."""
        return self

    @property
    def sphere(self) -> Sphere | None:
        """Return the sphere that positions are degrees on; None in flat space."""
        return None

    @abc.abstractmethod
    def instant(self, time: Numbers) -> Instant:
        """Return an instant as this field sees it; NumPy in, NumPy out."""

    @abc.abstractmethod
    def velocity(
        self, positions: Float[Array, "n 3"], instant: Instant, cell_hint: CellHint
    ) -> tuple[Float[Array, "n 3"], CellHint]:
        """Return velocities in the dtype of the positions, and cell hints."""

    def start(self, positions: Float[Array, "n 3"]) -> CellHint:
        """Return the cell hint of particles that were nowhere yet."""
        del positions
        return ()

    def find(self, positions: Float[Array, "n 3"], instant: Instant) -> CellHint:
        """Return the cell hints of particles that were nowhere yet."""
        return self.velocity(positions, instant, self.start(positions))[1]

    def at_instant(
        self, instant: Instant, particles: int
    ) -> tuple["AbstractField", Instant]:
        """Return a field cheaper to sample at this instant, if that pays."""
        del particles
        return self, instant

    def inside(
        self, positions: Float[Array, "n 3"], cell_hint: CellHint
    ) -> Bool[Array, " n"]:
        """Return where the field is known, by the hint `velocity` gave."""
        del cell_hint
        return jnp.ones(positions.shape[0], bool)

    @property
    def moves(self) -> bool:
        """Return whether closed faces are elsewhere at another instant."""
        return False

    def settle(
        self,
        positions: Float[Array, "n 3"],
        cell_hint: CellHint,
        instant: Instant | None = None,
    ) -> tuple[Float[Array, "n 3"], CellHint]:
        """Return positions after a step, and hints, with closed faces kept closed.

        Where these move, there is the instant at which the step ends.
        """
        del instant
        return positions, cell_hint

    def on_land(
        self, positions: Float[Array, "n 3"], cell_hint: CellHint | None = None
    ) -> Bool[Array, " n"] | None:
        """Return where there is land and no flow; None where the field has none.

        Without a hint the cells of positions are looked for.
        """
        del positions, cell_hint
        return None

    def below_floor(
        self, positions: Float[Array, "n 3"], instant: Instant
    ) -> Bool[Array, " n"] | None:
        """Return which positions are below the floor; None where there is none."""
        del positions, instant
        return None

    @property
    def shore(self) -> str:
        """Return what becomes of particles on land, one of `fields.grid.SHORES`."""
        return "beach"

    def order(
        self, positions: Float[Array, "n 3"], cell_hint: CellHint
    ) -> Int[Array, " n"] | None:
        """Return sort keys: close where the data looked up is close in memory.

        None where nothing is looked up.
        """
        del positions, cell_hint
        return None

    @abc.abstractmethod
    def bounds(self) -> tuple[Corner, Corner]:
        """Return the lowest and the highest corner of where the field is known."""

    def time_bounds(self) -> tuple[float, float]:
        """Return the first and last instant; a steady field has no ends."""
        return -np.inf, np.inf


class RecordField(AbstractField):
    """A field of slices in time, its `values`; its `clock` says when they are."""

    # To blend whole slices is worth it while they have no more places per particle: a
    # blend streams through memory, a look-up jumps about in it. 0 never blends.
    blend_up_to: ClassVar[Any] = 0

    # Typed as Any: a checker would take a declared clock for the first argument of all.
    def at_instant(
        self: Any, instant: Instant, particles: int
    ) -> tuple[AbstractField, Instant]:
        """Return the field with its slices blended at one instant, if that pays."""
        if not self.blend_up_to or instant.time.ndim or self.values.shape[0] == 1:
            return self, instant
        # Places come before components at nodes, after them in tables.
        if max(self.values.shape[1:]) > self.blend_up_to * max(particles, 1):
            return self, instant
        values, clock, instant = blend_slices(self.values, instant)
        return dataclasses.replace(self, values=values, clock=clock), instant

    def instant(self: Any, time: Numbers) -> Instant:
        """Return an instant as slices of the record and their weights."""
        return self.clock.instant(time)

    def time_bounds(self: Any) -> tuple[float, float]:
        """Return the first and the last instant of the record."""
        return self.clock.bounds()


# No budget for these: any field may be sampled at any number of positions.
@compile_once(max_traces=None)
def sample(field: AbstractField, positions: Array, instant: Instant) -> Array:
    """Return velocities at positions and one instant, without cell hints."""
    return field.velocity(positions, instant, field.start(positions))[0]


@compile_once(max_traces=None)
def _contains(field: AbstractField, positions: Array, instant: Instant) -> Array:
    return field.inside(positions, field.find(positions, instant))


@compile_once(max_traces=None)
def find_land(field: AbstractField, positions: Array) -> Array | None:
    """Return which positions are on land; None where the field has none."""
    return field.on_land(positions)


@compile_once(max_traces=None)
def find_sunk(field: AbstractField, positions: Array, instant: Instant) -> Array | None:
    """Return which positions are below the floor; None where the field has none."""
    return field.below_floor(positions, instant)


def as_positions(positions: Any) -> Float[Array, "n 3"]:
    """Return positions as (N, 3): one position becomes a row, a missing z becomes 0."""
    given = positions if isinstance(positions, jax.Array) else np.asarray(positions)
    if not np.issubdtype(given.dtype, np.floating):
        given = given.astype(jnp.result_type(float))
    points = jnp.asarray(given)
    if points.ndim == 1:
        points = points[None]
    if points.ndim != 2 or points.shape[1] not in (2, 3):
        raise ValueError(f"positions of shape {given.shape}: give (N, 3) or (N, 2)")
    return points if points.shape[1] == 3 else jnp.pad(points, ((0, 0), (0, 1)))


def moment(field: AbstractField, t: Numbers) -> Instant:
    """Return an instant on the device, computed in float64 if t is a number."""
    instant = field.instant(np.float64(t) if isinstance(t, float | int) else t)
    return jax.tree.map(jnp.asarray, instant)


def shares_search(field: AbstractField) -> bool:
    """Return whether the stages of a step share one copy of the search."""
    # Four copies take a CPU seconds to compile; a GPU runs them 12 to 25 % faster.
    shared = field.searches and field.sphere is None
    return shared and jax.default_backend() == "cpu"


def at_stage(
    numbers: list[int], fields: list[tuple[AbstractField, Instant]], shared: bool
) -> Callable[[Any], tuple[AbstractField, Instant]]:
    """Return what gives field and instant, by number, of a stage or of a traced one."""
    if not shared:
        return lambda stage: fields[numbers[stage]]
    # What all instants share, the mesh, is not stacked.
    differs = lambda first, *rest: any(other is not first for other in rest)
    stack = lambda *options: jnp.stack(options) if differs(*options) else options[0]
    varies = jax.tree.map(differs, *fields)
    stacked = jax.tree.map(stack, *fields)

    def pick(stage: Int[Array, ""]) -> tuple[AbstractField, Instant]:
        at = jnp.asarray(numbers)[stage]
        return jax.tree.map(lambda v, x: x[at] if v else x, varies, stacked)

    return pick
