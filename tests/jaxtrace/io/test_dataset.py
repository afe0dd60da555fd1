from collections.abc import Mapping

import numpy as np
import pytest

import trace_files as files
from jaxtrace.fields.time_series import TimeSeriesField
from jaxtrace.files.collection import write_collection
from jaxtrace.files.hdf5 import H5Series
from jaxtrace.io import dataset as module
from jaxtrace.io import registry
from jaxtrace.io.dataset import (
    KEYS,
    open_dataset,
    open_hdf5_series,
    open_vtk_dataset,
    open_vtk_series,
    open_vtk_structured_series,
    open_vtk_time_series,
)
from jaxtrace.io.readers import VTKStructuredSeries, VTKUnstructuredTimeSeriesReader


@pytest.fixture
def folder(tmp_path):
    for i in range(3):
        mesh = files.hexahedra()
        mesh["velocity"] = files.linear(mesh.points) * (i + 1)
        files.write_xml(mesh, tmp_path / f"flow_{i}.vtu", time=0.25 * i)
    return tmp_path


def test_a_mapping_of_the_documented_arrays(folder):
    data = open_dataset(str(folder / "flow_*.vtu"))
    assert isinstance(data, Mapping)
    assert set(data) == set(KEYS)
    assert data["velocity_data"].shape == (3, 60, 3)
    np.testing.assert_array_equal(data["times"], [0.0, 0.25, 0.5])
    expected = files.linear(data["positions"]) * 3
    np.testing.assert_allclose(data["velocity_data"][2], expected, rtol=1e-6)
    assert len(data["cell_types"]) == len(data["cell_offsets"]) - 1 == 24
    assert data["connectivity"].max() == 59
    assert data["velocity_field_name"] == "velocity"
    assert (data["source"], "flow_*" in data["file_pattern"]) == ("vtk", True)
    with pytest.raises(KeyError, match="'data': there are velocity_data"):
        data["data"]


def test_the_documented_script_makes_a_field(folder):
    series = open_dataset(str(folder), max_time_steps=2).load_time_series()
    field = TimeSeriesField(
        data=series["velocity_data"],
        times=series["times"],
        positions=series["positions"],
        interpolation="linear",
        extrapolation="constant",
        _source_info=series,
    )
    place = np.array([[1.6, 2.3, 7.0]])
    np.testing.assert_allclose(
        field.sample_at_positions(place, 0.25), files.linear(place) * 2, rtol=1e-5
    )


def test_nothing_is_read_for_times_and_all_is_read_once(folder, monkeypatch):
    data = open_dataset(folder)
    calls = []
    monkeypatch.setattr(
        module, "load", lambda slices, load=module.load: calls.append(1) or load(slices)
    )
    assert data.n_timesteps == len(data["times"]) == 3
    assert "3 slices from t = 0 to 0.5" in repr(data)
    assert data["source"] == "vtk"
    assert not calls
    assert data["velocity_data"] is data["velocity_data"]
    assert data["positions"].shape == (60, 3)
    assert data.load_time_series()["velocity_data"] is data["velocity_data"]
    assert calls == [1]


def test_some_slices_only(folder):
    data = open_dataset(folder)
    part = data.load_time_series(1)
    np.testing.assert_array_equal(part["times"], [0.25, 0.5])
    assert part["velocity_data"].shape == (2, 60, 3)
    np.testing.assert_array_equal(data.load_slice(-1), part["velocity_data"][1])
    with pytest.raises(ValueError, match="no slices from 2 to 1"):
        data.load_time_series(2, 1)


def test_a_collection_gives_its_times(folder):
    steps = [(100.0 * i, f"flow_{i}.vtu") for i in range(3)]
    write_collection(folder / "all.pvd", steps)
    data = open_dataset(folder / "all.pvd", time_source="collection")
    np.testing.assert_array_equal(data["times"], [0.0, 100.0, 200.0])
    assert data["time_source"] == "the timestep of the collection"


def test_a_mesh_that_changes_has_an_array_per_slice(tmp_path):
    for i in range(3):
        files.write_xml(files.hexahedra((2, 2, 2 + i)), tmp_path / f"f_{i}.vtu", time=i)
    data = open_dataset(tmp_path)
    assert [len(values) for values in data["velocity_data"]] == [8, 12, 16]
    assert [len(points) for points in data["positions"]] == [8, 12, 16]
    assert [len(kinds) for kinds in data["cell_types"]] == [1, 2, 3]


def test_grids_are_nodes_in_the_order_of_the_array(tmp_path):
    file = files.write_xml(files.image(), tmp_path / "a.vti")
    data = open_dataset(file)
    expected = files.linear(data["positions"])
    np.testing.assert_allclose(data["velocity_data"][0], expected, rtol=1e-6)
    assert data["connectivity"] is None


def test_what_cannot_be_opened_says_why(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"none\.vtu"):
        open_dataset(tmp_path / "none.vtu")
    with pytest.raises(FileNotFoundError, match="no files found"):
        open_dataset(str(tmp_path / "x_*.vtu"))
    with pytest.raises(ValueError, match=r"unknown extension \.txt; known are \.vti"):
        open_dataset(tmp_path / "notes.txt")
    with pytest.raises(ValueError, match="'csv' is not one of: vtk, hdf5, grid"):
        open_dataset(tmp_path / "a.vtu", "csv")
    monkeypatch.setattr(registry, "has_package", lambda name: False)
    with pytest.raises(ImportError, match=r"jaxrig\[trace\]"):
        open_dataset(tmp_path / "a.vtu")


def test_the_openers_open(folder, tmp_path):
    h5py = pytest.importorskip("h5py")
    pattern = str(folder / "flow_*.vtu")
    assert isinstance(open_vtk_time_series(pattern), VTKUnstructuredTimeSeriesReader)
    assert len(open_vtk_time_series(pattern, max_time_steps=2)) == 2
    assert open_vtk_dataset(pattern).n_timesteps == 3
    assert open_vtk_series(pattern)["source"] == "vtk"
    image = files.write_xml(files.image(), tmp_path / "a.vti")
    assert isinstance(open_vtk_structured_series(image), VTKStructuredSeries)
    with h5py.File(tmp_path / "a.h5", "w") as root:
        root["velocity"] = np.ones((2, 4, 3))
        root["positions"] = np.ones((4, 3))
    series = open_hdf5_series(tmp_path / "a.h5")
    assert isinstance(series, H5Series)
    assert len(series) == 2
    assert open_dataset(tmp_path / "a.h5")["velocity_data"].shape == (2, 4, 3)
