import numpy as np
import pytest

import trace_files as files
from jaxtrace.io.readers import VTKStructuredSeries, VTKUnstructuredTimeSeriesReader


def write(folder, make, count=4, suffix="vtu"):
    """Files 8, 9, 10, ...: the velocity is linear in space times the number."""
    for i in range(8, 8 + count):
        data = make(i)
        data["velocity"] = files.linear(data.points) * i
        files.write_xml(data, folder / f"flow_{i}.{suffix}", time=0.5 * i)
    return str(folder / f"flow_*.{suffix}")


@pytest.fixture
def mesh(tmp_path):
    return write(tmp_path, lambda i: files.hexahedra())


@pytest.fixture
def grid(tmp_path):
    return write(tmp_path, lambda i: files.image(), suffix="vti")


def test_steps_of_a_mesh_in_order(mesh):
    reader = VTKUnstructuredTimeSeriesReader(mesh)
    assert len(reader) == 4
    np.testing.assert_array_equal(reader.times, [4.0, 4.5, 5.0, 5.5])
    assert reader.get_time_range() == (4.0, 5.5)
    step = reader[-1]
    assert step["time"] == 5.5
    expected = files.linear(step["positions"]) * 11
    np.testing.assert_allclose(step["velocity_data"], expected, rtol=1e-6)
    assert step["velocity_data"].dtype == np.float32
    assert step["cell_offsets"][-1] == len(step["connectivity"])
    with pytest.raises(IndexError, match="step 4 of a series of 4"):
        reader[4]


def test_a_part_of_the_series(mesh):
    reader = VTKUnstructuredTimeSeriesReader(mesh, velocity_field_name="velocity")
    part = reader.load_time_series(1, 3)
    assert part["velocity_data"].shape == (2, 60, 3)
    np.testing.assert_array_equal(part["times"], [4.5, 5.0])
    assert part["velocity_field_name"] == "velocity"
    assert part["time_source"].startswith("field data")
    whole = reader.load_time_series()
    np.testing.assert_array_equal(whole["velocity_data"][1:3], part["velocity_data"])
    with pytest.raises(ValueError, match="no steps from 4 to None of 4"):
        reader.load_time_series(4)


def test_most_steps_are_evenly_spaced(mesh):
    reader = VTKUnstructuredTimeSeriesReader(mesh, max_time_steps=2)
    np.testing.assert_array_equal(reader.times, [4.0, 5.5])


def test_what_a_mesh_is(mesh):
    reader = VTKUnstructuredTimeSeriesReader(mesh)
    assert reader.get_bounds() == (1.0, 2.0, 3.0, 2.0, 2.75, 11.0)
    info = reader.get_grid_info()
    assert (info["n_points"], info["n_cells"]) == (60, 24)
    assert sum(info["cell_types"].values()) == 24
    values = reader[0]["velocity_data"]
    figures = reader.get_velocity_statistics()
    assert figures["u"]["max"] == pytest.approx(values[:, 0].max())
    speed = np.linalg.norm(values.astype(float), axis=1)
    assert figures["mean_speed"] == pytest.approx(speed.mean(), rel=1e-6)


def test_steps_are_read_once_and_forgotten_when_asked(mesh, monkeypatch):
    reader, read = VTKUnstructuredTimeSeriesReader(mesh, cache_size_limit=2), []
    original = reader._slices.read_slice
    monkeypatch.setattr(
        reader._slices, "read_slice", lambda i: read.append(i) or original(i)
    )
    reader.preload_timesteps([0, 1])
    assert reader[0]["velocity_data"] is reader[0]["velocity_data"]
    assert read == [0, 1]
    reader.preload_timesteps([2])
    reader.preload_timesteps([0])
    assert read == [0, 1, 2], "the step used last stays, the other one made room"
    reader.clear_cache()
    reader.preload_timesteps()
    assert read == [0, 1, 2, 0, 1, 2, 3]


def test_broken_files_are_named(mesh, tmp_path):
    reader = VTKUnstructuredTimeSeriesReader(mesh)
    assert reader.validate_files() == {
        "valid": True,
        "checked": [str(tmp_path / f"flow_{i}.vtu") for i in range(8, 12)],
        "errors": {},
    }
    (tmp_path / "flow_9.vtu").write_text("<VTKFile")
    report = reader.validate_files(2)
    assert not report["valid"]
    assert list(report["errors"]) == [str(tmp_path / "flow_9.vtu")]


def test_a_mesh_that_changes_is_named(tmp_path):
    pattern = write(tmp_path, lambda i: files.hexahedra((3, 3, 2 + i // 10)))
    with pytest.raises(ValueError, match=r"flow_10.*27 nodes is not that of 18 nodes"):
        VTKUnstructuredTimeSeriesReader(pattern).load_time_series()


def test_a_grid_reads_as_a_mesh_too(grid):
    series = VTKUnstructuredTimeSeriesReader(grid).load_time_series()
    expected = files.linear(series["positions"]) * 9
    np.testing.assert_allclose(series["velocity_data"][1], expected, rtol=1e-6)
    assert set(series["cell_types"]) == {12}


def test_steps_of_a_grid(grid):
    series = VTKStructuredSeries(grid)
    assert len(series) == 4
    np.testing.assert_array_equal(series.get_times(), [4.0, 4.5, 5.0, 5.5])
    place = np.array([[1.5, 2.25, 9.0]])
    np.testing.assert_allclose(
        series.load_slice(1)[1, 1, 3], files.linear(place)[0] * 9
    )
    whole = series.load_full_series()
    assert whole.shape == (4, 3, 4, 5, 3)
    np.testing.assert_array_equal(whole[-1], series.load_slice(-1))
    with pytest.raises(IndexError, match="step -5"):
        series.load_slice(-5)


def test_a_grid_must_be_one_and_stay_so(mesh, tmp_path):
    with pytest.raises(ValueError, match="a mesh and no grid"):
        VTKStructuredSeries(mesh)
    folder = tmp_path / "changing"
    folder.mkdir()
    pattern = write(folder, lambda i: files.image((i, 2, 2)), suffix="vti")
    with pytest.raises(ValueError, match=r"flow_9\.vti: its grid differs"):
        VTKStructuredSeries(pattern).load_full_series()
