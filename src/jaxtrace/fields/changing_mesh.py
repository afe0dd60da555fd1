"""Velocities on meshes that change from slice to slice.

All meshes lie end to end in one set of tables, each with a search tree of its own; an
instant between two slices asks each on its own mesh and blends the answers.
"""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jaxtrace.fields.base import Corner, RecordField
from jaxtrace.fields.box_tree import rows
from jaxtrace.fields.clock import Clock, Instant, make_clock, steady_clock
from jaxtrace.fields.locate import NOWHERE, Crossing, hinted_wall, locate, no_hint
from jaxtrace.fields.mesh import (
    OUTSIDE,
    MeshField,
    blend,
    check_values,
    interpolate,
    place_values,
    prepare_mesh,
)
from jaxtrace.fields.topology import Elements, Mesh, check_points, coincident, make_mesh
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
        one = jnp.ones(1, x.dtype)
        whole = Instant(one[0], jnp.zeros(1, np.int32), one)

        def read(cell: Array, later: list[Array]) -> Array:
            nodes = rows(meshes.nodes, cell) + first
            return blend(meshes.values, nodes, later, whole)

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
    clock = make_clock(times, interpolation, extrapolation, len(slices))
    of_slice = _number_meshes(slices)
    owners = [int(np.argmax(of_slice == m)) for m in range(of_slice.max() + 1)]
    kept = values[0].dtype
    mesh, starts, of_cell = _join([slices[i] for i in owners], kept)
    prepared = prepare_mesh(mesh, kept, of_cell)
    # Cells name nodes of their own mesh: those of a slice begin at its first value.
    own = (mesh.nodes - starts[of_cell][:, None]).astype(np.int32)
    prepared = dataclasses.replace(prepared, nodes=own)
    table = np.concatenate(values, axis=1)
    meshes = place_values(prepared, table, steady_clock(), outside)
    of_wall = of_cell[np.asarray(prepared.locator.walls.cells)]
    first_value = _starts([v[0] for v in values])[:-1]
    numbers = (of_slice, first_value, of_cell, of_wall)
    parts = Parts(*(jnp.asarray(n, np.int32) for n in numbers))
    return ChangingMeshField(meshes, parts, clock)


def _number_meshes(slices: Sequence[MeshSlice]) -> Int[np.ndarray, " slices"]:
    """Return the mesh of every slice; equal meshes in a row are shared."""
    numbers = [0]
    for before, here in itertools.pairwise(slices):
        equal = all(
            np.array_equal(getattr(before, name), getattr(here, name))
            for name in MeshSlice._fields
            if name != "values"
        )
        numbers.append(numbers[-1] + (not equal))
    return np.asarray(numbers)


def _starts(arrays: Sequence[np.ndarray]) -> Int[np.ndarray, " ends"]:
    return np.concatenate([[0], np.cumsum([len(a) for a in arrays])])


def _join(
    slices: Sequence[MeshSlice], kept: np.dtype
) -> tuple[Mesh, Int[np.ndarray, " ends"], Int[np.ndarray, " cells"]]:
    """Return all meshes as one, where the nodes of each begin, and cells' meshes."""
    points = [check_points(s.points).astype(kept).astype(np.float64) for s in slices]
    starts = _starts(points)
    connectivity, sizes, types, same = [], [], [], []
    for given, here, start in zip(slices, points, starts, strict=False):
        cells = Elements(given.connectivity, given.types, given.offsets, given.kind)
        nodes, offsets, codes = cells.flatten(here)
        connectivity.append(nodes + start)
        sizes.append(np.diff(offsets))
        types.append(codes)
        same.append(coincident(here) + start)
    joined = Elements(
        np.concatenate(connectivity),
        np.concatenate(types),
        np.concatenate([[0], np.cumsum(np.concatenate(sizes))]),
    )
    mesh = make_mesh(np.concatenate(points), joined, np.concatenate(same))
    of_cell = np.searchsorted(starts, mesh.nodes[:, 0], side="right") - 1
    empty = np.setdiff1d(np.arange(len(slices)), of_cell)
    if empty.size:
        raise ValueError(f"mesh {empty[0]} of the record has no cell with a volume")
    return mesh, starts, of_cell.astype(np.int32)
