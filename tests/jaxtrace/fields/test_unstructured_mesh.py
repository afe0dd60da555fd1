"""Meshes as users describe them, and the element that holds a point."""

import numpy as np
import pytest

from jaxtrace.fields.unstructured_mesh import (
    ElementType,
    UnstructuredMesh,
    guess_type,
    optimized_element_search,
    precompute_element_data,
)
from trace_meshes import holding_simplices, lattice, plane_lattice, quadratic, split
from trace_series import places, tetra_mesh


def test_a_mesh_describes_itself():
    points, tets = tetra_mesh()
    mesh = UnstructuredMesh(points, tets, ElementType.TETRA)
    assert (mesh.num_nodes, mesh.num_elements) == (48, 108)
    assert mesh.expected_nodes_per_element == 4
    assert mesh.get_spatial_bounds()[1].tolist() == [2, 1, 0.5]
    assert mesh.kind == "tetra"
    cloud = UnstructuredMesh(points)
    assert cloud.num_elements == 0
    assert cloud.kind is None


@pytest.mark.parametrize(
    ("etype", "order", "nodes"),
    [("triangle", 1, 3), ("triangle", 2, 6), ("tetra", 1, 4), ("tetra", 2, 10)],
)
def test_nodes_per_element_follow_from_type_and_order(etype, order, nodes):
    points = np.random.default_rng(0).uniform(size=(12, 3))
    good = np.arange(nodes)[None]
    assert UnstructuredMesh(points, good, etype, order).num_elements == 1
    with pytest.raises(ValueError, match=f"has {nodes} nodes"):
        UnstructuredMesh(points, np.arange(nodes + 1)[None], etype, order)


@pytest.mark.parametrize(
    ("elements", "etype", "order", "error", "message"),
    [
        ([[0, 1, 2, 8]], "tetra", 1, ValueError, "name node 8, but there are 8"),
        ([[0, 1, 2, -1]], "tetra", 1, ValueError, "name node -1"),
        ([[0.0, 1, 2, 3]], "tetra", 1, TypeError, "give whole numbers"),
        ([[0, 1, 2, 3]], "tetra", 3, ValueError, "order 1 or 2"),
        ([[0, 1, 2, 3]], "quad", 2, ValueError, "order 1 or 2"),
        ([[0, 1, 2, 3]], None, 1, ValueError, "etype None"),
        ([[0, 1, 2, 3]], "blob", 1, ValueError, "blob"),
    ],
)
def test_wrong_meshes_are_refused(elements, etype, order, error, message):
    points, _ = lattice((2, 2, 2))
    with pytest.raises(error, match=message):
        UnstructuredMesh(points, elements, etype, order)


def test_mixed_elements_come_with_their_types():
    points, cells = lattice((2, 2, 2))
    mesh = UnstructuredMesh(points, cells.ravel(), cell_types=[12], cell_offsets=[0, 8])
    assert mesh.num_elements == 1
    with pytest.raises(ValueError, match="several types"):
        _ = mesh.expected_nodes_per_element


def test_types_are_guessed_from_the_number_of_nodes():
    flat, quads = plane_lattice((3, 3))
    triangles = split(quads, [[0, 1, 2], [0, 2, 3]])
    solid, cells = lattice((3, 3, 3))
    assert guess_type(flat, quads) == (ElementType.QUAD, 1)
    assert guess_type(flat, triangles) == (ElementType.TRIANGLE, 1)
    assert guess_type(*quadratic(flat, triangles)) == (ElementType.TRIANGLE, 2)
    assert guess_type(solid, cells) == (ElementType.HEXAHEDRON, 1)
    assert guess_type(solid, np.zeros((1, 4), int)) == (ElementType.TETRA, 1)
    assert guess_type(solid, np.zeros((1, 10), int)) == (ElementType.TETRA, 2)
    with pytest.raises(ValueError, match="elements of 7 nodes in space"):
        guess_type(solid, np.zeros((1, 7), int))


@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e6])
def test_the_element_that_holds_a_point_is_found(scale):
    points, tets = tetra_mesh()
    points = points * scale
    mesh = UnstructuredMesh(points, tets, "tetra")
    data = precompute_element_data(mesh)
    assert data["centroids"].shape == (108, 3)
    assert data["element_bounds"].shape == (108, 2, 3)
    assert data["element_nodes"].shape == (108, 4, 3)
    for x in places(20) * scale:
        found = optimized_element_search(x, data, mesh)
        depths = holding_simplices(points, tets, x)
        assert found == int(np.argmax(depths))
        assert found == optimized_element_search(x.astype(np.float32), data, mesh)
    assert optimized_element_search(np.array([3.0, 0, 0]) * scale, data, mesh) is None


def test_nodes_belong_to_elements_and_a_plane_has_triangles():
    points, quads = plane_lattice((4, 3))
    triangles = split(quads, [[0, 1, 2], [0, 2, 3]])
    mesh = UnstructuredMesh(points[:, :2], triangles, "triangle")
    data = precompute_element_data(mesh)
    for node, point in enumerate(points):
        found = optimized_element_search(point[:2], data, mesh)
        assert found is not None
        assert node in triangles[found]
    assert optimized_element_search([0.5, 0.5, 0.1], data, mesh) is None


def test_only_simplices_of_one_type_are_searched():
    points, cells = lattice((3, 3, 3))
    mesh = UnstructuredMesh(points, cells, "hexahedron")
    data = precompute_element_data(mesh)
    with pytest.raises(ValueError, match="only simplices"):
        optimized_element_search(points[0], data, mesh)
    with pytest.raises(ValueError, match="elements of one type"):
        precompute_element_data(UnstructuredMesh(points))
