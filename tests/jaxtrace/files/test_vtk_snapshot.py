import numpy as np
import pytest

from jaxtrace.files.snapshot import Cells, GridAxes
from jaxtrace.files.vtk_snapshot import leaves, snapshot_of
from trace_files import hexahedra, image, linear

pyvista = pytest.importorskip("pyvista")


def test_an_image_becomes_axes_with_x_as_the_first_index():
    snapshot = snapshot_of(image((3, 4, 5)), "a")
    grid = snapshot.geometry
    assert isinstance(grid, GridAxes)
    values = snapshot.arrays["velocity"]
    assert values.shape == (3, 4, 5, 3)
    for i, j, k in [(2, 0, 0), (0, 3, 0), (0, 0, 4), (1, 2, 3)]:
        here = np.array([[grid.x[i], grid.y[j], grid.z[k]]])
        np.testing.assert_allclose(values[i, j, k], linear(here)[0], rtol=1e-12)


def test_descending_rectilinear_axes_are_turned_with_points_and_cells():
    x, y, z = np.array([5.0, 2, 1]), np.array([0.0, 1]), np.array([3.0, 4])
    grid = pyvista.RectilinearGrid(x, y, z)
    grid["velocity"] = linear(grid.points)
    grid.cell_data["x"] = grid.cell_centers().points[:, 0]
    snapshot = snapshot_of(grid, "a")
    axes = snapshot.geometry
    assert isinstance(axes, GridAxes)
    assert axes.x.tolist() == [1, 2, 5]
    expected = linear(np.array([[1.0, 0, 3]]))[0]
    np.testing.assert_allclose(snapshot.arrays["velocity"][0, 0, 0], expected)
    assert snapshot.cell_arrays["x"][:, 0, 0, 0].tolist() == [1.5, 3.5]


def test_ghost_cells_are_left_out_of_meshes_with_their_values():
    grid = hexahedra((4, 2, 2))
    grid.cell_data["id"] = [10.0, 11.0, 12.0]
    grid.cell_data["vtkGhostType"] = np.array([0, 1, 32], np.uint8)
    snapshot = snapshot_of(grid, "a")
    assert isinstance(snapshot.geometry, Cells)
    assert snapshot.geometry.n_cells == 1
    assert snapshot.cell_arrays["id"].tolist() == [[10.0]]
    assert "vtkGhostType" not in snapshot.cell_arrays


def test_a_grid_with_hidden_cells_is_a_mesh_of_the_others():
    grid = image((4, 2, 2))
    grid.cell_data["vtkGhostType"] = np.array([0, 32, 0], np.uint8)
    snapshot = snapshot_of(grid, "a")
    assert isinstance(snapshot.geometry, Cells)
    assert snapshot.geometry.n_cells == 2
    np.testing.assert_allclose(
        snapshot.arrays["velocity"], linear(snapshot.geometry.points)
    )


def test_blocks_are_one_mesh_with_the_arrays_they_share():
    low, high = hexahedra((3, 2, 2)), hexahedra((2, 2, 2))
    high["only"] = np.zeros(8)
    blocks = pyvista.MultiBlock([low, None, pyvista.MultiBlock([high])])
    assert len(leaves(blocks)) == 2
    snapshot = snapshot_of(blocks, "a")
    assert isinstance(snapshot.geometry, Cells)
    assert snapshot.geometry.n_cells == 3
    assert snapshot.assembled
    assert list(snapshot.arrays) == ["velocity"]


def test_an_empty_data_set_is_refused_by_name():
    with pytest.raises(ValueError, match=r"void\.vtu: no points"):
        snapshot_of(pyvista.UnstructuredGrid(), "void.vtu")
    with pytest.raises(ValueError, match=r"void\.vtm: no points"):
        snapshot_of(pyvista.MultiBlock(), "void.vtm")


def test_an_array_of_another_length_is_refused_by_name():
    from vtkmodules.util.numpy_support import numpy_to_vtk

    grid = hexahedra()
    wrong = numpy_to_vtk(np.zeros((7, 3)))
    wrong.SetName("U")
    grid.GetPointData().AddArray(wrong)
    with pytest.raises(ValueError, match=r"bad\.vtu: array 'U' has 7 rows where 60"):
        snapshot_of(grid, "bad.vtu")
