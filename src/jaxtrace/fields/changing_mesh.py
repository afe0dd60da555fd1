"""Velocities on meshes that change from slice to slice.

All meshes lie end to end in one set of tables, each with a search tree of its own; an
instant between two slices asks each on its own mesh and blends the answers.
"""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jaxtrace.fields.base import Corner, RecordField
from jaxtrace.fields.box_tree import rows
from jaxtrace.fields.clock import Clock, Instant, steady_clock
from jaxtrace.fields.locate import (
    NOWHERE,
    Crossing,
    close_seams,
    hinted_wall,
    locate,
    make_locator,
    no_hint,
)
from jaxtrace.fields.mesh import (
    OUTSIDE,
    MeshField,
    Outside,
    blend,
    box_around,
    check_clock,
    check_values,
    interpolate,
    unit_scale,
    whole_slice,
)
from jaxtrace.fields.topology import Mesh, check_points, coincident, flatten, make_mesh
from jaxtrace.types import check_choice

Positions = Float[Array, "n 3"]
CellHint = Int[Array, "n blended"]


class MeshSlice(NamedTuple):
    """One slice of a record: a mesh, and velocities (N, 3) at its nodes."""

    points: Any
    connectivity: Any
    values: Any
    offsets: Any = None
    types: Any = None
    kind: str | None = None


class Joined(NamedTuple):
    """Meshes as one, and the number of the first node of each cell's own mesh."""

    mesh: Mesh
    first_node: Int[np.ndarray, " cells"]


class Parts(eqx.Module):
    """Which mesh a slice is on, and which mesh a cell or a wall is of."""

    of_slice: Int[Array | np.ndarray, "*batch slices"]
    first_value: Int[Array | np.ndarray, "*batch slices"]
    of_cell: Int[Array | np.ndarray, "*batch cells"]
    of_wall: Int[Array | np.ndarray, "*batch walls"]


class ChangingMeshField(RecordField):
    """Velocities at the nodes of one mesh per slice; equal meshes are kept once.

    Particles remember a cell for every slice blended. The `meshes` hold all values of
    all slices as one.
    """

    meshes: MeshField
    parts: Parts
    clock: Clock
    searches = True

    def start(self, positions: Positions) -> CellHint:
        """Return that no cell is known yet: particles are looked for everywhere."""
        blended = self.clock.instant(np.float64(0)).weights.shape[-1]
        return no_hint((positions.shape[0], blended))

    def velocity(
        self, positions: Positions, instant: Instant, cell_hint: CellHint
    ) -> tuple[Positions, CellHint]:
        """Return velocities in the positions' dtype, and the cells found."""
        x = self.meshes.scaled(positions)
        total, cells = jnp.zeros_like(positions), []
        for k in range(instant.weights.shape[-1]):
            index = jnp.asarray(instant.slices)[..., k]
            slices = jnp.broadcast_to(index, positions.shape[:1])
            found, cell = self._slice(x, slices, cell_hint)
            weight = jnp.asarray(instant.weights)[..., k].astype(positions.dtype)
            weight = jnp.broadcast_to(weight, positions.shape[:1])[:, None]
            # Where a slice counts for nothing, it may say anything, even no number.
            part = jnp.where(weight == 0, 0, weight * found.astype(positions.dtype))
            total = total + part
            cells.append(cell)
        return total, jnp.stack(cells, 1)

    def inside(self, positions: Positions, cell_hint: CellHint) -> Bool[Array, " n"]:
        """Return whether a cell of every mesh in use holds the particle."""
        del positions
        return jnp.all(cell_hint >= 0, -1)

    def bounds(self) -> tuple[Corner, Corner]:
        """Return the corners of the box around all meshes."""
        return self.meshes.bounds()

    def first_exit(
        self, start: Positions, end: Positions, cell_hint: CellHint
    ) -> Crossing:
        """Return where paths first leave the mesh of their earliest slice."""
        part = self._part(cell_hint[:, 0])
        found = self.meshes.first_exit(start, end, cell_hint[:, 0], part)
        both = cell_hint.at[:, 0].set(found.cell_hint)
        return eqx.tree_at(lambda c: c.cell_hint, found, both)

    def _part(self, cell_hint: Int[Array, " n"]) -> Int[Array, " n"]:
        """Return the mesh that a hinted cell or wall is of."""
        of_cell = rows(self.parts.of_cell, jnp.maximum(cell_hint, 0))
        wall = hinted_wall(self.meshes.locator, cell_hint)
        of_wall = rows(self.parts.of_wall, wall)
        return jnp.where(cell_hint >= 0, of_cell, of_wall)

    def _slice(
        self, x: Array, slices: Int[Array, " n"], cell_hint: CellHint
    ) -> tuple[Array, Array]:
        """Return velocities and cells of one slice, on its own mesh."""
        meshes = self.meshes
        part = rows(self.parts.of_slice, slices)
        guess = jnp.full_like(part, NOWHERE)
        for j in range(cell_hint.shape[1]):
            guess = jnp.where(
                self._part(cell_hint[:, j]) == part, cell_hint[:, j], guess
            )
        place = locate(meshes.locator, x, guess, part)
        first = rows(self.parts.first_value, slices)[:, None]

        def read(cell: Array, later: list[Array]) -> Array:
            nodes = rows(meshes.nodes, cell) + first
            return blend(meshes.values, nodes, later, whole_slice(x.dtype))

        found = interpolate(meshes.locator, meshes.outside, x, place, read)
        return found, place.cell_hint


def make_changing_field(
    slices: Sequence[MeshSlice],
    times: Any,
    *,
    interpolation: str = "linear",
    extrapolation: str = "constant",
    outside: str = "nearest_element",
    dtype: Any = None,
) -> ChangingMeshField:
    """Return a field of slices that are each on a mesh of their own."""
    check_choice("outside", outside, OUTSIDE)
    if not slices:
        raise ValueError("a record needs at least one slice")
    values = [check_values(s.values, len(s.points), dtype)[:1] for s in slices]
    of_slice = _number_meshes(slices)
    owners = [int(np.argmax(of_slice == m)) for m in range(of_slice.max() + 1)]
    joined, of_cell = _join([slices[i] for i in owners], values[0].dtype)
    meshes, of_wall = _tables(joined, of_cell, np.concatenate(values, axis=1), outside)
    first_value = _starts([v[0] for v in values])[:-1]
    parts = Parts(*map(_numbers, (of_slice, first_value, of_cell, of_wall)))
    clock = check_clock(times, len(slices), interpolation, extrapolation)
    return ChangingMeshField(meshes, parts, clock)


def _numbers(values: np.ndarray) -> Int[Array, " n"]:
    return jnp.asarray(values, np.int32)


def _tables(
    joined: Joined,
    of_cell: Int[np.ndarray, " cells"],
    values: Float[np.ndarray, "1 points 3"],
    outside: str,
) -> tuple[MeshField, Int[np.ndarray, " walls"]]:
    """Return all meshes as one field, and the mesh of every wall."""
    kept, mesh = values.dtype, joined.mesh
    corners = box_around(mesh)
    scale = unit_scale(corners)
    places = (mesh.points * scale)[:, mesh.axes]
    locator = make_locator(mesh, places, kept, of_cell)
    locator = close_seams(locator, mesh, of_cell)
    own = (mesh.nodes - joined.first_node[:, None]).astype(np.int32)
    table, nodes, locator = jax.device_put((values, own, locator))
    field = MeshField(
        table,
        nodes,
        locator,
        jnp.asarray(scale, kept),
        corners.astype(kept),
        steady_clock(),
        mesh.axes,
        cast(Outside, outside),
    )
    return field, of_cell[np.asarray(locator.walls.cells)]


def _number_meshes(slices: Sequence[MeshSlice]) -> Int[np.ndarray, " slices"]:
    """Return the mesh of every slice; equal meshes in a row are shared."""
    numbers = [0]
    for before, here in itertools.pairwise(slices):
        equal = all(
            np.array_equal(getattr(before, name), getattr(here, name))
            for name in ("points", "connectivity", "offsets", "types", "kind")
        )
        numbers.append(numbers[-1] + (not equal))
    return np.asarray(numbers)


def _starts(arrays: Sequence[np.ndarray]) -> Int[np.ndarray, " ends"]:
    return np.concatenate([[0], np.cumsum([len(a) for a in arrays])])


def _join(
    slices: Sequence[MeshSlice], kept: np.dtype
) -> tuple[Joined, Int[np.ndarray, " cells"]]:
    """Return all meshes as one of separate parts, and the part of every cell."""
    points = [check_points(s.points).astype(kept).astype(np.float64) for s in slices]
    starts = _starts(points)
    connectivity, sizes, types, same = [], [], [], []
    for given, here, start in zip(slices, points, starts, strict=False):
        cells = (given.connectivity, given.offsets, given.types, given.kind)
        nodes, offsets, codes = flatten(here, *cells)
        connectivity.append(nodes + start)
        sizes.append(np.diff(offsets))
        types.append(codes)
        same.append(coincident(here) + start)
    mesh = make_mesh(
        np.concatenate(points),
        np.concatenate(connectivity),
        np.concatenate([[0], np.cumsum(np.concatenate(sizes))]),
        np.concatenate(types),
        same=np.concatenate(same),
    )
    of_cell = np.searchsorted(starts, mesh.nodes[:, 0], side="right") - 1
    empty = np.setdiff1d(np.arange(len(slices)), of_cell)
    if empty.size:
        raise ValueError(f"mesh {empty[0]} of the record has no cell with a volume")
    return Joined(mesh, starts[of_cell]), of_cell.astype(np.int32)
