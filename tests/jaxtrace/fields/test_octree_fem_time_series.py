"""Time series with a search tree, by their documented names."""

import numpy as np

from jaxtrace.fields.octree_fem_time_series import (
    OctreeFEMTimeSeriesField,
    build_octree_mesh,
    create_octree_fem_interpolator,
)
from trace_meshes import flat, mixed
from trace_series import TIMES, growing, linear, places, tetra_mesh


def test_the_shape_of_a_tree_makes_no_difference():
    points, tets = tetra_mesh()
    data = np.random.default_rng(0).standard_normal((4, len(points), 3))
    given = (data, TIMES, points, tets)
    fields = [
        OctreeFEMTimeSeriesField(*given),
        OctreeFEMTimeSeriesField(*given, "linear", "constant", None, 4, 3),
    ]
    first, second = (f.sample_at_positions(places(), 0.3) for f in fields)
    assert np.array_equal(first, second)


def test_its_mesh_and_interpolator():
    points, tets = tetra_mesh()
    field = OctreeFEMTimeSeriesField(
        growing(points), TIMES, points, tets, max_elements_per_leaf=8, max_depth=6
    )
    assert field.octree_mesh.num_elements == len(tets)
    found = field.octree_interpolator(places(), 3 * linear(points))
    assert np.allclose(found, 3 * linear(places()), atol=3e-5)
    periodic = field.create_time_periodic_field(2)
    assert isinstance(periodic, OctreeFEMTimeSeriesField)
    assert periodic.octree_mesh.num_nodes == len(points)


def test_mixed_elements_have_a_mesh_too():
    points, cells, types = mixed()
    nodes, offsets = flat(cells)
    field = OctreeFEMTimeSeriesField(
        growing(points), TIMES, points, nodes, cell_types=types, cell_offsets=offsets
    )
    assert field.octree_mesh.num_elements == len(types)
    assert " + " in field.interpolation_scheme


def test_the_low_level_interpolator():
    points, tets = tetra_mesh()
    mesh = build_octree_mesh(points, tets, max_elements_per_leaf=4)
    interpolate = create_octree_fem_interpolator(mesh)
    assert np.allclose(
        interpolate(places(), linear(points)), linear(places()), atol=1e-5
    )
