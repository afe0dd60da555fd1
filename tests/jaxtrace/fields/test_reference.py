"""Reference coordinates against the map they invert."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.fields.reference import (
    clamp,
    invert,
    make_records,
    open_records,
    refine,
    sides,
    weights,
)
from jaxtrace.fields.topology import make_mesh
from trace_meshes import SIX, lattice, places, split, warp


def records_of(points, cells, kind):
    points = np.float32(points).astype(float)
    mesh = make_mesh(points, cells, kind=kind)
    return jax.tree.map(jnp.asarray, make_records(mesh, points, np.dtype("f4")))


def cube(kind, amount):
    points, cells = lattice((3, 3, 3))
    points = np.float32(warp(points, amount)).astype(float)
    return points, split(cells, SIX) if kind == "tetra" else cells


@pytest.mark.parametrize(("kind", "code"), [("tetra", 10), ("hexahedron", 12)])
@pytest.mark.parametrize("patient", [False, True])
def test_shape_functions_bring_a_place_back(kind, code, patient):
    points, cells = cube(kind, 0.1)
    records = records_of(points, cells, kind)
    x, _, cell = places(points, cells, [code] * len(cells), points, 400)

    @jax.jit
    def ask(x, cell):
        local = open_records(records, x, cell)
        p, sure = invert(records, local, jnp.ones(400, bool) if patient else None)
        p = refine(records, local, p)
        return weights(records, local, p), sides(records, local, p), sure

    later, inside, sure = ask(jnp.asarray(x, np.float32), jnp.asarray(cell))
    assert np.all(np.asarray(sure))
    assert np.min(inside) > -1e-5
    later = np.stack(later, 1)
    first = 1 - later.sum(1, keepdims=True)
    back = np.einsum(
        "ni,nid->nd", np.concatenate([first, later], 1), points[cells[cell]]
    )
    np.testing.assert_allclose(back, x, atol=1e-6)


def test_parallel_cells_need_no_iterations():
    points, cells = cube("hexahedron", 0.0)
    assert not records_of(points, cells, "hexahedron").warped
    skewed = points @ [[1.0, 0.3, 0.0], [0.0, 1.0, 0.2], [0.1, 0.0, 1.0]]
    assert not records_of(skewed, cells, "hexahedron").warped
    points, cells = cube("hexahedron", 0.1)
    assert records_of(points, cells, "hexahedron").warped


def test_tolerances_follow_rounding_and_shape():
    points, cells = cube("tetra", 0.0)
    table = np.asarray(records_of(points, cells, "tetra").table)
    assert np.all(table[:, 12] < 1e-4)
    assert np.all(table[:, 12] > 1e-7)
    stretched = np.asarray(records_of(points * [1, 1, 1e-3], cells, "tetra").table)
    np.testing.assert_allclose(stretched[:, 12], table[:, 12], rtol=1e-3)


@pytest.mark.parametrize("kind", ["tetra", "hexahedron"])
def test_clamped_coordinates_are_in_the_cell(kind):
    points, cells = cube(kind, 0.1)
    records = records_of(points, cells, kind)
    x = jnp.asarray(np.random.default_rng(0).uniform(-2, 3, (50, 3)), np.float32)
    local = open_records(records, x, jnp.zeros(50, np.int32))
    p, _ = invert(records, local, jnp.ones(50, bool))
    held = sides(records, local, clamp(records, local, p))
    assert np.min(held) >= -1e-6
