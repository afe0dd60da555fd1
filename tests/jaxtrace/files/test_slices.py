import numpy as np
import pytest

from jaxtrace.files.slices import SliceReader, float_dtype, prepare_mesh
from jaxtrace.files.snapshot import Cells, GridAxes
from jaxtrace.files.steps import open_steps
from trace_files import hexahedra, image, linear, write_xml

pyvista = pytest.importorskip("pyvista")


def reader(spec, *args, **options) -> SliceReader:
    steps = open_steps(spec)
    return SliceReader(steps, range(len(steps.times)), *args, **options)


def two_lines(gap: float = 0.0) -> Cells:
    x = np.array([0.0, 1, 1 + gap, 2])
    points = np.stack([x, 0 * x, 0 * x], axis=-1)
    return Cells(points, np.arange(4), np.array([0, 2, 4]), np.array([3, 3]))


def test_cells_without_common_nodes_are_connected():
    assert prepare_mesh(two_lines(), False, None).cells.n_points == 3
    assert prepare_mesh(two_lines(), False, False).cells.n_points == 4
    assert prepare_mesh(two_lines(gap=1e-12), False, None).cells.n_points == 4


def test_parts_are_connected_and_a_connected_mesh_keeps_its_copies():
    points = np.array([[0.0, 0, 0], [1, 0, 0], [2, 0, 0], [1, 0, 0]])
    lines = np.array([0, 1, 1, 2, 3, 2])
    mesh = Cells(points, lines, np.array([0, 2, 4, 6]), np.array([3, 3, 3]))
    assert prepare_mesh(mesh, False, None).weld is None
    for prepared in (prepare_mesh(mesh, True, None), prepare_mesh(mesh, False, True)):
        assert prepared.cells.n_points == 3
        assert prepared.notes() == ("1 coincident nodes joined",)


def test_cell_values_skip_cells_of_lower_dimension():
    points = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [5, 5, 5]])
    offsets = np.array([0, 2, 5])
    mesh = Cells(points, np.array([0, 1, 0, 1, 2]), offsets, np.array([3, 5]))
    prepared = prepare_mesh(mesh, False, None)
    values = prepared.nodal(np.array([[100.0], [2.0]]), on_cells=True)
    assert values[:, 0].tolist() == [2, 2, 2, 0]
    assert prepared.notes() == (
        "1 cells of lower dimension left out",
        "1 nodes belong to no cell",
    )


def test_slices_of_a_mesh(tmp_path):
    for index in (1, 2):
        data = hexahedra()
        data["velocity"] = index * linear(data.points)
        write_xml(data, tmp_path / f"a_{index}.vtu")
    slices = reader(tmp_path)
    assert len(slices) == 2
    mesh = slices.geometry
    assert isinstance(mesh, Cells)
    values = slices.read(1)
    assert values.dtype == np.float32
    np.testing.assert_allclose(values, 2 * linear(mesh.points), rtol=1e-6)
    assert slices.read_slice(0)[0] is mesh
    assert slices.describe()[0] == "velocity: velocity"
    assert slices.describe()[1] == "times: the number in the file name"


def test_slices_of_a_grid_with_values_on_cells(tmp_path):
    data = image((3, 4, 5))
    del data.point_data["velocity"]
    data.cell_data["U"] = np.tile([1.0, 2.0], (24, 1))
    slices = reader(write_xml(data, tmp_path / "a.vti"), dtype="float64")
    assert "averaged from cells to nodes" in slices.describe()[0]
    axes, values = slices.read_slice(0)
    assert isinstance(axes, GridAxes)
    assert slices.read_slice(0)[0] is axes
    np.testing.assert_array_equal(values, np.broadcast_to([1.0, 2, 0], (3, 4, 5, 3)))
    assert slices.size(0) == 60


def test_a_later_file_without_the_array_is_named(tmp_path):
    write_xml(hexahedra(), tmp_path / "a_1.vtu")
    other = hexahedra()
    other.rename_array("velocity", "U")
    write_xml(other, tmp_path / "a_2.vtu")
    slices = reader(tmp_path)
    slices.read(0)
    with pytest.raises(ValueError, match=r"a_2\.vtu: no \('velocity',\).* U"):
        slices.read(1)


def test_values_and_coordinates_must_be_finite(tmp_path):
    data = hexahedra()
    values = linear(data.points)
    values[3, 1] = np.nan
    data["velocity"] = values
    path = write_xml(data, tmp_path / "a.vtu")
    with pytest.raises(ValueError, match=r"a\.vtu: 1 of 180 values of velocity"):
        reader(path).read(0)
    assert np.isnan(reader(path, allow_nan=True).read(0)).sum() == 1
    data = hexahedra()
    data.points = np.where(np.arange(60)[:, None] == 7, np.inf, data.points)
    path = write_xml(data, tmp_path / "b.vtu")
    with pytest.raises(ValueError, match=r"b\.vtu: .* the coordinates are not finite"):
        reader(path, allow_nan=True).read(0)


def test_only_two_precisions_are_offered():
    assert float_dtype("float64") == np.float64
    with pytest.raises(ValueError, match="float32 or float64, got 'int32'"):
        float_dtype("int32")
