"""Point location against brute force, and in bulk: nothing inside is ever missed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.fields.locate import locate, make_locator, walk
from jaxtrace.fields.mesh import make_mesh_field
from jaxtrace.fields.topology import make_mesh
from trace_meshes import (
    SIX,
    TWO,
    flat,
    holding_simplices,
    lattice,
    mixed,
    places,
    pyramids,
    split,
    warp,
)

SIZE = np.array([1.0, 0.8, 0.5])


def tetra():
    points, cells = lattice((4, 5, 4), SIZE)
    points = np.float32(warp(points, 0.03)).astype(float)
    return points, split(cells, SIX)


def locator(points, cells):
    mesh = make_mesh(points, cells, kind="tetra")
    return jax.tree.map(jnp.asarray, make_locator(mesh, points, np.dtype("f4")))


def test_the_cell_found_is_one_that_holds_the_place():
    points, cells = tetra()
    x = np.asarray(
        np.random.default_rng(0).uniform(-0.2, 1.2, (500, 3)) * SIZE, np.float32
    )
    place = jax.jit(locate)(locator(points, cells), x, jnp.full(500, -1, np.int32))
    inside = ((x >= 0) & (x <= SIZE.astype(np.float32))).all(1)
    np.testing.assert_array_equal(np.asarray(place.cell_hint) >= 0, inside)
    for i in np.flatnonzero(inside):
        depth = holding_simplices(points, cells, x[i].astype(float))
        assert depth[place.cell[i]] > -1e-5


def test_nodes_and_middles_of_faces_are_inside():
    points, cells = tetra()
    middles = [points[cells[:, face]].mean(1) for face in ([0, 1, 2], [1, 2, 3])]
    x = np.concatenate([points, *middles]).astype(np.float32)
    start = jnp.full(len(x), -1, np.int32)
    place = jax.jit(locate)(locator(points, cells), x, start)
    assert np.all(np.asarray(place.cell_hint) >= 0)


def test_a_walk_ends_in_the_cell_or_says_it_does_not():
    points, cells = tetra()
    found_by = locator(points, cells)
    rng = np.random.default_rng(1)
    x = (rng.random((500, 3)) * SIZE).astype(np.float32)
    start = rng.integers(0, len(cells), 500).astype(np.int32)
    cell, found = jax.jit(walk)(found_by, x, start, jnp.ones(500, bool))
    assert np.mean(found) > 0.5
    for i in np.flatnonzero(found):
        assert holding_simplices(points, cells, x[i].astype(float))[cell[i]] > -1e-5


def graded(ratio):
    points, cells = lattice((9, 8, 7), (2.0, 1.0, 0.5), ratio)
    gaps = []
    for axis in range(3):
        nodes = np.unique(points[:, axis])
        step = np.diff(nodes)
        least = np.minimum(np.append(step, np.inf), np.insert(step, 0, np.inf))
        gaps.append(least[np.searchsorted(nodes, points[:, axis])])
    return warp(points, 0.25 * np.stack(gaps, 1)), cells


def solids(name):
    points, cells = graded(100.0 if name == "graded" else 1.0)
    if name in ("tetra", "graded"):
        return points, split(cells, SIX), 10
    if name == "wedge":
        return points, split(cells, TWO), 13
    if name == "pyramid":
        return *pyramids(points, cells), 14
    if name == "mixed":
        points, cells, codes = mixed((6, 6, 6))
        return warp(points, 0.04), cells, codes
    return points, cells, 12


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["tetra", "graded", "hexahedron", "wedge", "pyramid", "mixed"]
)
def test_a_million_places_and_not_one_missed(name):
    points, rows, codes = solids(name)
    points = np.float32(points).astype(float)
    codes = np.broadcast_to(codes, len(rows))
    connectivity, offsets = flat(rows)
    field = make_mesh_field(
        points, connectivity, points, offsets=offsets, types=codes, dtype=np.float32
    )
    count = 1_000_000 // len(np.unique(codes))
    x, _, _ = places(points, rows, codes, points, count)
    x = jnp.asarray(x, np.float32)

    @jax.jit
    def ask(field, x):
        return field.velocity(x, field.instant(jnp.float32(0)), field.start(x))

    velocity, cell_hint = ask(field, x)
    assert np.sum(np.asarray(cell_hint) < 0) == 0
    np.testing.assert_allclose(velocity, x, atol=3e-6)
