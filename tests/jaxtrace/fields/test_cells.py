"""Cells against the textbook: partitions of unity, nodes, faces, exact maps."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.fields.cells import KINDS, VTK_CODES, later_weights, side_values
from jaxtrace.fields.reference_coordinates import (
    clamp,
    invert,
    make_records,
    open_records,
    refine,
    sides,
    weights,
)
from jaxtrace.fields.topology import Elements, make_mesh
from trace_meshes import SIX, lattice, places, shares, split, warp


def coordinates(kind, weights):
    """Reference coordinates of given weights, from the corners' own coordinates."""
    corners = weights[:, : kind.corners]
    if kind.middle_edges:
        middle = weights[:, kind.corners :]  # a corner's share: l = N + half its edges
        corners = corners.copy()
        for i, pair in enumerate(kind.middle_edges):
            for corner in pair:
                corners[:, corner] += middle[:, i] / 2
    return corners @ reference_corners(kind)


def reference_corners(kind):
    square = np.array([(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)])
    if kind.simplex:
        return np.concatenate([np.zeros((1, kind.dimension)), np.eye(kind.dimension)])
    if kind.name == "quad":
        return square
    low, high = (
        np.pad(square, ((0, 0), (0, 1)), constant_values=z) for z in (-0.5, 0.5)
    )
    if kind.name == "hexahedron":
        return np.concatenate([low, high])
    if kind.name == "pyramid":
        return np.concatenate([low + np.array([0, 0, 0.5]), [[0, 0, 1]]])
    triangle = np.array([(0, 0), (1, 0), (0, 1)]) - 1 / 3
    return np.concatenate([np.insert(triangle, 2, z, axis=1) for z in (-0.5, 0.5)])


@pytest.mark.parametrize("name", sorted(KINDS))
def test_shape_functions_are_the_textbook_ones(name):
    kind = KINDS[name]
    weights = shares(VTK_CODES[name], np.random.default_rng(0), 50)
    # At the corners each node has a function of its own.
    own = np.eye(kind.corners, kind.nodes)
    at = np.concatenate([coordinates(kind, weights), reference_corners(kind)])
    later = later_weights(kind, list(at.astype(np.float32).T))
    expected = np.concatenate([weights, own])[:, 1:]
    np.testing.assert_allclose(np.stack(later, 1), expected, atol=3e-6)


@pytest.mark.parametrize("name", sorted(KINDS))
def test_sides_vanish_on_their_faces_and_only_there(name):
    kind = KINDS[name]
    p = reference_corners(kind)
    values = np.stack(side_values(kind, list(p.T)), 1)
    for face, corners in enumerate(kind.faces):
        on = np.isin(np.arange(kind.corners), corners)
        np.testing.assert_allclose(values[on, face], 0, atol=1e-12)
        assert np.all(values[~on, face] > 0.1)


@pytest.mark.parametrize("name", sorted(KINDS))
def test_expansion_is_the_map_of_the_shape_functions(name):
    kind = KINDS[name]
    rng = np.random.default_rng(1)
    points = rng.standard_normal((kind.corners, kind.dimension))
    weights = shares(VTK_CODES[name if "quadratic" not in name else name[10:]], rng, 20)
    p = weights @ reference_corners(kind)
    terms = np.asarray(kind.expansion) @ points
    x = p[:, 0] * p[:, 1]
    products = [x]
    if kind.dimension == 3:
        x = x / (1 - p[:, 2]) if name == "pyramid" else x
        products = [x, p[:, 1] * p[:, 2], p[:, 2] * p[:, 0], p.prod(1)]
    basis = np.stack([np.ones(20), *p.T, *products], 1)[:, : len(terms)]
    np.testing.assert_allclose(basis @ terms, weights @ points, atol=1e-12)


def records_of(points, cells, kind):
    points = np.float32(points).astype(float)
    mesh = make_mesh(points, Elements(cells, kind=kind))
    found = make_records(mesh, points, np.dtype("f4"))
    # Cells lie along a curve in a mesh; here they are as given.
    table = jnp.asarray(found.table[np.argsort(mesh.numbers)])
    return dataclasses.replace(found, table=table)


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
    x = np.random.default_rng(0).uniform(-2, 3, (50, 3)).astype(np.float32)

    @jax.jit
    def hold(x):
        local = open_records(records, x, jnp.zeros(50, np.int32))
        p, _ = invert(records, local, jnp.ones(50, bool))
        return sides(records, local, clamp(records, local, p))

    assert np.min(hold(x)) >= -1e-6
