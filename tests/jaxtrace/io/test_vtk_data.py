import numpy as np
import pytest

from jaxtrace.io.geometry import Cells, GridAxes
from jaxtrace.io.vtk_data import (
    append,
    axes_of,
    cell_types,
    curvilinear_mesh,
    is_tensor,
    leaves,
    mesh_of,
    snapshot_of,
    split_exotic,
)
from trace_files import hexahedra, image, linear

pyvista = pytest.importorskip("pyvista")


def test_axes_of_an_image_start_at_its_extent():
    grid = image((3, 4, 5))
    grid.SetExtent(2, 4, 0, 3, -1, 3)
    x, y, z = axes_of(grid)
    assert x.tolist() == [2.0, 2.5, 3.0]
    assert y.tolist() == [2.0, 2.25, 2.5, 2.75]
    assert z.tolist() == [1.0, 3.0, 5.0, 7.0, 9.0]


def test_a_turned_image_is_a_mesh_at_the_points_vtk_gives():
    grid = image((3, 4, 2))
    assert is_tensor(grid)
    grid.direction_matrix = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
    assert not is_tensor(grid)
    mesh = curvilinear_mesh(grid)
    np.testing.assert_allclose(mesh.points, grid.points, rtol=1e-14)


def test_cells_that_point_outside_are_refused_by_name():
    grid = hexahedra()
    connectivity = grid.GetCells().GetConnectivityArray()
    connectivity.SetTuple1(3, 999)
    with pytest.raises(ValueError, match=r"somewhere\.vtu: .*999 of 60"):
        mesh_of(grid, "somewhere.vtu")


def test_a_cloud_has_points_and_no_cells():
    cloud = pyvista.UnstructuredGrid()
    cloud.points = np.array([[1.0, 2, 3]])
    mesh = mesh_of(cloud, "cloud")
    assert (mesh.n_points, mesh.n_cells) == (1, 0)


def volume(mesh):
    tets = mesh.points[mesh.connectivity.reshape(-1, 4)]
    return np.abs(np.linalg.det(tets[:, 1:] - tets[:, :1])).sum() / 6


def test_polyhedra_are_split_and_keep_nodes_and_volume():
    corners = np.array(list(np.ndindex(2, 2, 2)), float)[:, ::-1]
    faces = [[0, 2, 3, 1], [4, 5, 7, 6], [0, 1, 5, 4], [2, 6, 7, 3], [0, 4, 6, 2]]
    faces.append([1, 3, 7, 5])
    stream = [6, *(n for face in faces for n in (4, *face))]
    grid = pyvista.UnstructuredGrid([len(stream), *stream], [42], corners)
    mesh = mesh_of(split_exotic(grid), "p")
    assert set(mesh.types.tolist()) == {10}
    np.testing.assert_array_equal(mesh.points, corners)
    assert volume(mesh) == pytest.approx(1.0)


def test_polygons_are_split_into_triangles_and_known_cells_are_not():
    angles = np.arange(5) * 2 * np.pi / 5
    ring = np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=-1)
    pentagon = append([pyvista.PolyData(ring, faces=[5, 0, 1, 2, 3, 4])])
    assert cell_types(split_exotic(pentagon)).tolist() == [5, 5, 5]
    grid = hexahedra()
    assert split_exotic(grid) is grid


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
