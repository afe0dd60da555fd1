"""Meshes as users describe them, and the element that holds a point."""

import numpy as np
import pytest

from jaxtrace.fields.unstructured import (
    ElementType,
    UnstructuredMesh,
)
from trace_meshes import lattice
from trace_series import tetra_mesh


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
