import numpy as np
import pytest

import trace_files as files
from jaxtrace.files.snapshot import Cells, GridAxes
from jaxtrace.io.sources import (
    PickedSlices,
    node_arrays,
    noted,
    open_slices,
    source_name,
)

xarray = pytest.importorskip("xarray")


@pytest.fixture
def series(tmp_path):
    """Six images, one per instant, whose velocity is the time."""
    for i in range(6):
        image = files.image((2, 2, 2))
        image["velocity"] = np.full((8, 3), float(i))
        files.write_xml(image, tmp_path / f"flow_{i}.vti", time=10.0 * i)
    return str(tmp_path / "flow_*.vti")


def dataset():
    times, x, y = np.arange(6) * 10.0, np.arange(3.0), np.arange(4.0)
    values = np.broadcast_to(times[:, None, None] / 10, (6, 4, 3))
    names = ("time", "y", "x")
    return xarray.Dataset(
        {"u": (names, values), "v": (names, values)},
        coords={"time": times, "y": y, "x": x},
    )


def write_hdf5(path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as root:
        root["velocity"] = np.arange(6.0)[:, None, None] * np.ones((6, 5, 3))
        root["times"] = np.arange(6) * 10.0
        root["positions"] = np.random.default_rng(0).uniform(size=(5, 3))
    return path


@pytest.mark.parametrize("kind", ["vtk", "grid", "hdf5"])
def test_every_format_chooses_slices_alike(kind, series, tmp_path):
    makers = {
        "vtk": lambda: series,
        "grid": dataset,
        "hdf5": lambda: write_hdf5(tmp_path / "flow.h5"),
    }
    options = {"skip_initial_timesteps": 1, "time_range": (10.0, 50.0)}
    slices = open_slices(makers[kind](), max_time_steps=3, **options)
    np.testing.assert_array_equal(slices.times, [20.0, 40.0, 50.0])
    assert len(slices) == len(slices.labels) == 3
    read = [slices.read_slice(i)[1].ravel()[0] for i in range(3)]
    np.testing.assert_array_equal(read, [2.0, 4.0, 5.0])
    # A mesh that cannot change is stable.
    assert len(open_slices(makers[kind](), use_stable_mesh_only=True)) == 6


def test_skipping_everything_is_named():
    with pytest.raises(ValueError, match="no slices left of 6"):
        open_slices(dataset(), skip_initial_timesteps=6)
    with pytest.raises(ValueError, match="must not be negative"):
        open_slices(dataset(), skip_initial_timesteps=-1)


def test_options_belong_to_formats(series):
    with pytest.raises(TypeError, match=r"'land' for vtk files; did you mean"):
        open_slices(series, land="zero")
    with pytest.raises(TypeError, match="did you mean 'velocity_field_name'"):
        open_slices(series, velocity_name="U")
    slices = open_slices(series, merge_points=None, velocity_field_name="velocity")
    assert noted(slices, "velocity") == "velocity"
    assert noted(slices, "times") == "field data (TimeValue or TIME)"


def test_precision_is_checked(series):
    with pytest.raises(ValueError, match="float32 or float64"):
        open_slices(series, dtype="float16")
    assert open_slices(series, dtype="float64").read_slice(0)[1].dtype == np.float64


def test_picked_slices_are_those(series):
    picked = PickedSlices(open_slices(series), np.array([4, 1]))
    np.testing.assert_array_equal(picked.times, [40.0, 10.0])
    assert picked.read_slice(1)[1].ravel()[0] == 1.0
    assert "flow_4" in picked.labels[0]


def test_nodes_of_grids_run_as_flattened_arrays_do():
    axes = GridAxes(np.arange(2.0), np.arange(3.0), np.arange(4.0))
    arrays = node_arrays(axes)
    assert arrays["connectivity"] is None
    points = arrays["positions"].reshape(2, 3, 4, 3)
    np.testing.assert_array_equal(points[1, 2, 3], [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(points[1, 0, 2], [1.0, 0.0, 2.0])


def test_sources_have_a_name(tmp_path):
    assert source_name(tmp_path / "a.vtu") == str(tmp_path / "a.vtu")
    assert source_name(["a.vtu", "b.vtu"]) == "a.vtu, b.vtu"
    assert source_name(dataset()) == "a dataset in memory"


def test_points_without_cells_have_none():
    none = np.zeros(0, np.int64)
    cloud = Cells(np.zeros((3, 3)), none, np.zeros(1, np.int64), none)
    arrays = node_arrays(cloud)
    assert arrays["positions"].shape == (3, 3)
    assert arrays["cell_types"] is arrays["cell_offsets"] is None
