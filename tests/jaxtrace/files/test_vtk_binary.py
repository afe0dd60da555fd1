import numpy as np
import pytest

import trace_vtk
from jaxtrace.files import columns, vtk_binary
from jaxtrace.files.columns import Cells, column

DATA = {
    **{kind: np.arange(6).astype(kind) for kind in columns.KINDS},
    "two words & 50%": np.random.default_rng(0).normal(size=(6, 3)),
}


def assert_data(found, expected):
    assert set(found) == set(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values)


def test_polydata(tmp_path):
    points = np.random.default_rng(0).normal(size=(6, 3)).astype("f4")
    verts = Cells(column("connectivity", [5]), column("offsets", [1]))
    lines = Cells(column("connectivity", np.arange(5)), column("offsets", [2, 5]))
    path = vtk_binary.write_binary_polydata(
        tmp_path / "a.vtk",
        points,
        verts=verts,
        lines=lines,
        point_data=DATA,
        cell_data={"length": np.arange(3.0)},
        field_data={"TimeValue": 0.25},
    )
    found = trace_vtk.load(path)
    np.testing.assert_array_equal(trace_vtk.points(found), points)
    assert trace_vtk.cells(found) == [(5,), (0, 1), (2, 3, 4)]
    assert_data(trace_vtk.arrays(found.GetPointData()), DATA)
    assert_data(trace_vtk.arrays(found.GetCellData()), {"length": np.arange(3.0)})
    assert trace_vtk.arrays(found.GetFieldData())["TimeValue"] == [0.25]


def test_unstructured_grid(tmp_path):
    points = np.random.default_rng(0).normal(size=(6, 3))
    path = vtk_binary.write_binary_grid(
        tmp_path / "a.vtk", points, columns.vertices(6), point_data=DATA
    )
    found = trace_vtk.load(path)
    np.testing.assert_array_equal(trace_vtk.points(found), points)
    assert trace_vtk.cells(found) == [(i,) for i in range(6)]
    assert [found.GetCellType(i) for i in range(6)] == [1] * 6
    assert_data(trace_vtk.arrays(found.GetPointData()), DATA)
    untyped = Cells(column("connectivity", [0]), column("offsets", [1]))
    with pytest.raises(ValueError, match="type numbers"):
        vtk_binary.write_binary_grid(tmp_path / "b.vtk", points, untyped)


def test_grids(tmp_path):
    path = tmp_path / "a.vtk"
    origin, spacing = (0.1, -2.0, 1e-6), (0.25, 1e-3, 3.0)
    vtk_binary.write_binary_image(path, (1, 2, 3), origin, spacing, point_data=DATA)
    found = trace_vtk.load(path)
    assert trace_vtk.dimensions(found) == (1, 2, 3)
    assert found.GetOrigin() == origin
    assert found.GetSpacing() == spacing
    assert_data(trace_vtk.arrays(found.GetPointData()), DATA)

    axes = [np.array([0.5]), np.array([0.0, 3.0]), np.array([0.0, 1.0, 5.0])]
    vtk_binary.write_binary_axes(path, axes, point_data=DATA)
    found = trace_vtk.load(path)
    assert trace_vtk.dimensions(found) == (1, 2, 3)
    np.testing.assert_array_equal(trace_vtk.as_numpy(found.GetZCoordinates()), axes[2])
    assert_data(trace_vtk.arrays(found.GetPointData()), DATA)

    place = np.random.default_rng(0).normal(size=(6, 3))
    vtk_binary.write_binary_curved(path, (1, 2, 3), place, point_data=DATA)
    found = trace_vtk.load(path)
    assert trace_vtk.dimensions(found) == (1, 2, 3)
    np.testing.assert_array_equal(trace_vtk.points(found), place)
    assert_data(trace_vtk.arrays(found.GetPointData()), DATA)
