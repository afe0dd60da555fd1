import numpy as np

from jaxtrace.files.join import as_mesh, join_cells, join_snapshots
from jaxtrace.files.snapshot import Cells, GridAxes, Snapshot


def line(x: float) -> Cells:
    points = np.array([[x, 0, 0], [x + 1, 0, 0]])
    return Cells(points, np.array([0, 1]), np.array([0, 2]), np.array([3]))


def part(x: float, **arrays: np.ndarray) -> Snapshot:
    return Snapshot(line(x), arrays, {}, x, f"part {x}", available=tuple(arrays))


def test_joined_cells_point_at_their_own_nodes():
    joined = join_cells([line(0.0), line(5.0), line(7.0)])
    assert joined.points[joined.connectivity, 0].tolist() == [0, 1, 5, 6, 7, 8]
    assert joined.offsets.tolist() == [0, 2, 4, 6]
    assert joined.types.tolist() == [3, 3, 3]


def test_joined_snapshots_keep_the_arrays_every_part_has():
    ones = np.ones((2, 3))
    whole = join_snapshots([part(0.0, u=ones, p=ones), part(1.0, u=2 * ones)])
    assert list(whole.arrays) == ["u"]
    assert whole.arrays["u"][:, 0].tolist() == [1, 1, 2, 2]
    assert whole.assembled
    assert whole.available == ("u", "p")
    assert "part 0.0" in whole.source
    assert "part 1.0" in whole.source


def test_arrays_of_different_width_are_not_the_same_array():
    whole = join_snapshots([part(0.0, u=np.ones((2, 3))), part(1.0, u=np.ones((2, 2)))])
    assert whole.arrays == {}


def test_one_part_is_the_whole():
    only = part(0.0)
    assert join_snapshots([only]) is only


def test_a_grid_becomes_a_mesh_with_its_values_in_place():
    axes = GridAxes(np.array([0.0, 1, 2]), np.array([0.0, 5]), np.array([0.0]))
    x = np.broadcast_to(axes.x[:, None, None, None], (3, 2, 1, 1))
    mesh = as_mesh(Snapshot(axes, {"x": x}, {}, None, "grid"))
    assert isinstance(mesh.geometry, Cells)
    np.testing.assert_array_equal(mesh.arrays["x"][:, 0], mesh.geometry.points[:, 0])
