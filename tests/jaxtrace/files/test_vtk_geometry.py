import numpy as np
import pytest

from jaxtrace.files.vtk_geometry import (
    append,
    axes_of,
    cell_types,
    curvilinear_mesh,
    is_tensor,
    mesh_of,
    split_exotic,
)
from trace_files import hexahedra, image

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
