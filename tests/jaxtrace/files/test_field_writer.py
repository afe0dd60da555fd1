import numpy as np
import pytest

import trace_vtk
from jaxtrace.files.collection import listed_steps
from jaxtrace.files.field_writer import VTKFieldWriter


def sampled(dataset, values):
    """The values at the points of a data set, in its own order."""
    count = dataset.GetNumberOfPoints()
    return values(*np.array([dataset.GetPoint(i) for i in range(count)]).T)


def ramp(x, y, z):
    return x + 10 * y + 100 * z


@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("format", ["xml", "binary"])
def test_planar_grids_in_either_order(tmp_path, indexing, format):
    X, Y = np.meshgrid(np.linspace(0, 1, 4), np.linspace(2, 3, 3), indexing=indexing)
    path = VTKFieldWriter().write_structured_2d(
        X, Y, ramp(X, Y, 0), str(tmp_path / "a.vti"), "density", format=format
    )
    found = trace_vtk.load(path)
    assert trace_vtk.dimensions(found) == (4, 3, 1)
    data = trace_vtk.arrays(found.GetPointData())
    np.testing.assert_allclose(data["density"], sampled(found, ramp), rtol=1e-12)
    with pytest.raises(ValueError, match=r"'density' is \(2, 2\)"):
        VTKFieldWriter().write_structured_2d(X, Y, X[:2, :2], path, "density")


@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("suffix", [".vti", ".vtr", ".vts"])
def test_grids_in_space(tmp_path, indexing, suffix):
    axes = [np.linspace(0, 1, 4), np.linspace(2, 3, 3), np.linspace(0, 5, 2)]
    X, Y, Z = np.meshgrid(*axes, indexing=indexing)
    values = np.stack([ramp(X, Y, Z), X, Y * Z], axis=-1)
    writer = VTKFieldWriter(tmp_path)
    path = writer.write_structured_3d(X, Y, Z, values, f"a{suffix}", "u")
    found = trace_vtk.load(path)
    assert path == tmp_path / f"a{suffix}"
    data = trace_vtk.arrays(found.GetPointData())["u"]
    np.testing.assert_allclose(data[:, 0], sampled(found, ramp), rtol=1e-12)
    np.testing.assert_allclose(data[:, 2], sampled(found, lambda x, y, z: y * z))


def test_uneven_grids_find_their_kind(tmp_path):
    X, Y, Z = np.meshgrid([0.0, 1.0, 4.0], [0.0, 1.0], [0.0, 1.0], indexing="ij")
    writer = VTKFieldWriter(tmp_path)
    path = writer.write_structured_3d(X, Y, Z, ramp(X, Y, Z), "a")
    assert path == tmp_path / "a.vtr"
    found = trace_vtk.load(path)
    data = trace_vtk.arrays(found.GetPointData())["field"]
    np.testing.assert_array_equal(data, sampled(found, ramp))


def test_a_structured_field(tmp_path):
    values = np.random.default_rng(0).normal(size=(3, 4, 2, 3)).astype(np.float32)
    path = VTKFieldWriter(tmp_path).write_structured_field(
        values, np.array([1.0, 2.0, 3.0]), [0.1, 0.2, 0.3], "a.vti", time_value=0.5
    )
    found = trace_vtk.load(path)
    assert found.GetOrigin() == (1.0, 2.0, 3.0)
    assert found.GetSpacing() == (0.1, 0.2, 0.3)
    data = trace_vtk.arrays(found.GetPointData())
    flat = values.reshape(-1, 3, order="F")
    np.testing.assert_array_equal(data["velocity"], flat)
    np.testing.assert_array_equal(
        data["velocity_magnitude"], np.linalg.norm(flat, axis=1)
    )
    assert set(data["Time"]) == {0.5}
    with pytest.raises(ValueError, match=r"grid_data has shape \(3, 4\)"):
        VTKFieldWriter(tmp_path).write_structured_field(
            values[:, :, 0, 0], [0, 0, 0], [1, 1, 1]
        )


def test_both_conventions_of_unstructured_fields(tmp_path):
    rng = np.random.default_rng(0)
    positions, velocity = rng.normal(size=(8, 3)), rng.normal(size=(8, 3))
    writer = VTKFieldWriter(tmp_path)
    path = writer.write_unstructured_field(positions, velocity[:, 0], "a.vtu", "heat")
    data = trace_vtk.arrays(trace_vtk.load(path).GetPointData())
    assert set(data) == {"heat"}
    path = writer.write_unstructured_field(
        positions=positions,
        velocity_data=velocity,
        scalar_data={"p": velocity[:, 1]},
        time_value=1.5,
    )
    assert path == tmp_path / "velocity_field.vtu"
    found = trace_vtk.load(path)
    data = trace_vtk.arrays(found.GetPointData())
    assert set(data) == {"velocity", "velocity_magnitude", "Time", "p"}
    np.testing.assert_array_equal(data["velocity"], velocity)
    assert trace_vtk.cells(found) == [(i,) for i in range(8)]
    path = writer.write_unstructured_field(positions, velocity, "b.vtu", {"q": [0] * 8})
    assert "q" in trace_vtk.arrays(trace_vtk.load(path).GetPointData())
    with pytest.raises(ValueError, match="write_time_series_collection"):
        writer.write_unstructured_field(positions, velocity[np.newaxis])


@pytest.mark.parametrize(("nodes", "kind"), [(3, 5), (4, 10), (8, 12)])
@pytest.mark.parametrize("format", ["xml", "binary"])
def test_cells_have_the_type_of_their_nodes(tmp_path, nodes, kind, format):
    rng = np.random.default_rng(nodes)
    positions = rng.normal(size=(9, 3))
    cells = np.array([rng.permutation(9)[:nodes] for _ in range(5)])
    path = VTKFieldWriter(tmp_path).write_unstructured_field(
        positions, positions, "a.vtu", format=format, cell_connectivity=cells
    )
    found = trace_vtk.load(path)
    assert trace_vtk.cells(found) == [tuple(cell) for cell in cells.tolist()]
    assert {found.GetCellType(i) for i in range(5)} == {kind}


@pytest.mark.parametrize(
    ("cells", "problem"),
    [
        (np.zeros((2, 7), int), "one row per cell"),
        (np.zeros(4, int), "one row per cell"),
        ([[0, 1, 3]], "names node 3, there are 3"),
        ([[0, 1, -1]], "numbered from 0"),
    ],
)
def test_wrong_cells_are_refused(tmp_path, cells, problem):
    with pytest.raises(ValueError, match=problem):
        VTKFieldWriter(tmp_path).write_unstructured_field(
            np.zeros((3, 3)), np.zeros(3), cell_connectivity=cells
        )


def test_a_series_of_fields(tmp_path):
    rng = np.random.default_rng(0)
    series = {
        "velocity_data": rng.normal(size=(7, 5, 3)),
        "positions": rng.normal(size=(5, 3)),
        "times": np.linspace(0.0, 3.0, 7),
        "connectivity": np.array([[0, 1, 2, 3], [1, 2, 3, 4]]),
    }
    writer = VTKFieldWriter(tmp_path)
    path = writer.write_time_series_collection(series, "flow", max_time_steps=3)
    assert path == tmp_path / "flow.pvd"
    steps = listed_steps(path)
    assert steps == [
        (0.0, "flow_0000.vtu"),
        (1.5, "flow_0001.vtu"),
        (3.0, "flow_0002.vtu"),
    ]
    found = trace_vtk.load(tmp_path / "flow_0001.vtu")
    data = trace_vtk.arrays(found.GetPointData())
    np.testing.assert_array_equal(data["velocity"], series["velocity_data"][3])
    assert set(data["Time"]) == {1.5}
    assert found.GetNumberOfCells() == 2
    assert len(listed_steps(writer.write_time_series_collection(series))) == 7
