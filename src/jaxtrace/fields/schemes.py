"""How values at nodes become a field: by a grid, by elements, or from points alone.

A scheme is chosen once from the nodes; it makes the frozen field of any values there
and gives them back in the order of the nodes.
"""

import abc
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import dtypes
from jaxtyping import Array, Float, Integer

from jaxtrace.fields.blocks import flatten, read_blocks
from jaxtrace.fields.cells import VTK_KINDS
from jaxtrace.fields.clock import Clock
from jaxtrace.fields.grid import OUTSIDE as GRID_OUTSIDE
from jaxtrace.fields.grid import make_grid_field
from jaxtrace.fields.lattice import Lattice, fills, find_lattice
from jaxtrace.fields.mesh import make_mesh_field
from jaxtrace.fields.scattered import make_scattered_field
from jaxtrace.fields.shapes import OUTSIDE as MESH_OUTSIDE

CHOICES = ("auto", "elements", "nearest")
# The same policy has one name for grids and another for elements.
_BESIDE = {"clamp": "nearest_element", "nearest_element": "clamp"}
_PLURALS = {"tetra": "tetrahedra", "hexahedron": "hexahedra"}

Points = Float[np.ndarray, "nodes 3"]
Values = Float[Array | np.ndarray, "slices nodes 3"]


@dataclass(frozen=True, eq=False)
class Elements:
    """Cells over nodes: rows (M, k), or VTK's flat list with offsets and types."""

    connectivity: Integer[np.ndarray, "..."]
    types: Integer[np.ndarray, " cells"] | None = None
    offsets: Integer[np.ndarray, " ends"] | None = None

    def cover(self, lattice: Lattice, points: Points) -> bool:
        """Whether the cells fill a grid that the nodes form."""
        given = (self.connectivity, self.offsets, self.types)
        return fills(lattice, read_blocks(points, *given)[0])

    def kinds(self, points: Points) -> tuple[str, ...]:
        """The names of the kinds of cells, those of lower dimension left out."""
        given = (self.connectivity, self.offsets, self.types, None)
        codes = np.unique(flatten(points, *given)[2]).tolist()
        found = [VTK_KINDS[code][0] for code in codes if code in VTK_KINDS]
        most = max(kind.dimension for kind in found)
        return tuple({k.name: None for k in found if k.dimension == most})


def make_elements(connectivity: Any, types: Any, offsets: Any) -> Elements | None:
    """Cells from whatever arrays are given; None without any."""
    if connectivity is None:
        return None
    rest = [None if a is None else np.asarray(a) for a in (types, offsets)]
    return Elements(np.asarray(connectivity), *rest)


class Scheme(abc.ABC):
    """Nodes, and what is between and beyond them."""

    outside: str

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """How values between nodes are made."""

    @abc.abstractmethod
    def build(self, values: Values, clock: Clock) -> Any:
        """The frozen field of values at the nodes."""

    def replace(self, field: Any, values: Values) -> Any:
        """The field with other values."""
        return self.build(values, field.clock)

    def unpack(self, stored: Array) -> Float[Array, "slices nodes 3"]:
        """The values as the field stores them, in the order of the nodes."""
        return stored


@dataclass(frozen=True, eq=False)
class OnGrid(Scheme):
    """Trilinear between the nodes of a grid."""

    lattice: Lattice
    outside: str

    @property
    def name(self) -> str:
        """Linear along each axis."""
        return "trilinear"

    def build(self, values: Values, clock: Clock) -> Any:
        """A grid field: the nodes brought into the order of the grid."""
        if not self.lattice.sorted:
            values = values[:, self.lattice.order]
        return make_grid_field(
            values.reshape(values.shape[0], *self.lattice.shape, 3),
            self.lattice.axes,
            **_instants(clock),
            outside=self.outside,
        )

    def unpack(self, stored: Array) -> Float[Array, "slices nodes 3"]:
        """Components last, without the layers that close a period."""
        shape = self.lattice.shape
        closed = [n + (self.outside == "periodic" and n > 1) for n in shape]
        whole = stored.reshape(-1, 3, *closed)
        table = whole[:, :, : shape[0], : shape[1], : shape[2]]
        table = table.reshape(*table.shape[:2], -1)
        if not self.lattice.sorted:
            table = table[:, :, self.lattice.ranks]
        return jnp.swapaxes(table, 1, 2)


@dataclass(frozen=True, eq=False)
class OnElements(Scheme):
    """The shape functions of cells."""

    points: Points
    elements: Elements
    outside: str

    @property
    def name(self) -> str:
        """The kinds of cells."""
        kinds = self.elements.kinds(self.points)
        plural = (_PLURALS.get(kind, f"{kind}s") for kind in kinds)
        return " + ".join(plural).replace("_", " ")

    @cached_property
    def repeats(self) -> bool:
        """Whether some nodes coincide: then values decide which cells are joined."""
        return len(np.unique(self.points, axis=0)) < len(self.points)

    def build(self, values: Values, clock: Clock) -> Any:
        """A mesh field."""
        elements = self.elements
        return make_mesh_field(
            self.points,
            elements.connectivity,
            values,
            offsets=elements.offsets,
            types=elements.types,
            **_instants(clock),
            outside=self.outside,
        )

    def replace(self, field: Any, values: Values) -> Any:
        """The same mesh with other values."""
        if self.repeats and not _equal(field.values, values):
            return self.build(values, field.clock)
        return _with_values(field, values)


@dataclass(frozen=True, eq=False)
class AmongPoints(Scheme):
    """Points without cells."""

    points: Points
    method: str
    outside: str

    @property
    def name(self) -> str:
        """Delaunay's simplices between points, or the nearest point."""
        return "delaunay" if self.method == "linear" else self.method

    def build(self, values: Values, clock: Clock) -> Any:
        """A scattered field."""
        return make_scattered_field(
            self.points,
            values,
            spatial_interpolation=self.method,
            **_instants(clock),
            outside=self.outside,
        )

    def replace(self, field: Any, values: Values) -> Any:
        """The same points with other values."""
        return _with_values(field, values)


def _instants(clock: Clock) -> dict[str, Any]:
    """A clock as the arguments of every field of slices."""
    return {
        "times": clock.times,
        "interpolation": clock.interpolation,
        "extrapolation": clock.extrapolation,
    }


def choose_scheme(
    points: Points, elements: Elements | None, choice: str, outside: str | None
) -> Scheme:
    """The best scheme that nodes and cells allow, or the one asked for.

    By itself a grid comes first (where there are cells, if they fill it), then cells,
    then Delaunay's simplices of the points.
    """
    if choice not in CHOICES:
        raise ValueError(
            f"spatial_interpolation {choice!r}: choose one of {', '.join(CHOICES)}"
        )
    if choice == "elements" and elements is None:
        raise ValueError("interpolation by elements needs their connectivity")
    if choice == "nearest":
        return AmongPoints(points, "nearest", _policy(outside, MESH_OUTSIDE[:1]))
    lattice = find_lattice(points) if choice == "auto" else None
    if lattice and (elements is None or elements.cover(lattice, points)):
        return OnGrid(lattice, _policy(outside, GRID_OUTSIDE))
    if elements is not None:
        return OnElements(points, elements, _policy(outside, MESH_OUTSIDE))
    return AmongPoints(points, "linear", _policy(outside, MESH_OUTSIDE))


def _policy(outside: str | None, allowed: tuple[str, ...]) -> str:
    """The policy by the name that the scheme has for it."""
    if outside is None:
        return allowed[0]
    name = outside if outside in allowed else _BESIDE.get(outside, outside)
    if name not in allowed:
        raise ValueError(
            f"outside {outside!r}: for these nodes choose one of {', '.join(allowed)}"
        )
    return name


def _equal(stored: Array, values: Values) -> bool:
    given = jnp.asarray(values, stored.dtype)
    return stored.shape == given.shape and bool(jnp.array_equal(stored, given))


def _with_values(field: Any, values: Values) -> Any:
    stored = jnp.asarray(values, dtypes.canonicalize_dtype(values.dtype))
    return eqx.tree_at(lambda f: f.values, field, stored)
