import numpy as np
import pytest

from jaxtrace.files.hdf5 import H5Series
from jaxtrace.files.snapshot import Cells, GridAxes
from jaxtrace.io.hdf5_slices import H5Slices

h5py = pytest.importorskip("h5py")


def write(path, **arrays):
    with h5py.File(path, "w") as root:
        for name, values in arrays.items():
            root[name] = values
    return path


def test_a_grid_with_axes_down_and_up(tmp_path):
    values = np.random.default_rng(0).normal(size=(2, 3, 2, 1, 2))
    axes = {"x": [0.0, 1.0, 4.0], "y": [5.0, 3.0]}
    file = write(tmp_path / "a.h5", velocity=values, times=[1.0, 2.0], **axes)
    slices = H5Slices(file, dtype="float64")
    geometry, found = slices.read_slice(1)
    assert isinstance(geometry, GridAxes)
    np.testing.assert_array_equal(geometry.y, [3.0, 5.0])
    np.testing.assert_array_equal(geometry.z, [0.0])
    np.testing.assert_array_equal(found[..., :2], values[1][:, ::-1])
    np.testing.assert_array_equal(found[..., 2], np.zeros((3, 2, 1)))
    assert slices.read_slice(0)[0] is geometry


def test_nodes_with_and_without_cells(tmp_path):
    points = np.random.default_rng(0).uniform(size=(4, 3))
    arrays = {"velocity": np.ones((3, 4, 3)), "points": points}
    cloud = H5Slices(write(tmp_path / "a.h5", **arrays)).geometry
    assert isinstance(cloud, Cells)
    assert cloud.n_cells == 0
    cells = {
        "connectivity": np.arange(4),
        "cell_offsets": np.array([0, 4]),
        "cell_types": np.array([10]),
    }
    mesh = H5Slices(write(tmp_path / "b.h5", **arrays, **cells)).geometry
    assert isinstance(mesh, Cells)
    assert (mesh.n_points, mesh.n_cells) == (4, 1)


@pytest.mark.parametrize(
    ("shape", "names"), [((2, 3, 2, 2, 3), "x, y, z"), ((2, 5, 3), "positions")]
)
def test_missing_coordinates_are_named(tmp_path, shape, names):
    slices = H5Slices(write(tmp_path / "a.h5", velocity=np.ones(shape)))
    with pytest.raises(ValueError, match=f"no coordinates; store them .* as {names}"):
        slices.read_slice(0)


def test_coordinates_that_do_not_fit_are_named(tmp_path):
    file = write(tmp_path / "a.h5", velocity=np.ones((2, 5, 3)), points=np.ones((4, 3)))
    with pytest.raises(ValueError, match=r"shape \(5, 3\) at coordinates of \(4,\)"):
        H5Slices(file).read(0)


def test_a_range_without_slices_is_named(tmp_path):
    file = write(tmp_path / "a.h5", velocity=np.ones((2, 5, 3)), times=[1.0, 2.0])
    with pytest.raises(ValueError, match="times run from 1 to 2"):
        H5Slices(file, time_range=(3.0, 4.0))


def test_the_series_class_writes_trajectories(tmp_path):
    path = tmp_path / "paths.h5"
    H5Series.write_trajectories(path, np.zeros((2, 3, 3)), times=[0.0, 0.5])
    H5Series.append_trajectories(path, np.ones((1, 3, 3)))
    with h5py.File(path) as root:
        group = root["trajectories"]
        assert group["positions"].shape == (3, 3, 3)
        np.testing.assert_array_equal(group["times"][()], [0.0, 0.5, 1.0])
