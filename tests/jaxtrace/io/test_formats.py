"""Every format is found by its extension, and its slices are chosen alike."""

import subprocess
import sys
from collections.abc import Mapping

import numpy as np
import pytest

import trace_files as files
from jaxtrace.fields.time_series import TimeSeriesField
from jaxtrace.io import loader as module
from jaxtrace.io import series as base
from jaxtrace.io.formats import FORMATS, detect_format, open_slices, source_name
from jaxtrace.io.loader import KEYS, open_dataset

xarray = pytest.importorskip("xarray")


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("flow.vtu", "vtk"),
        ("run_*.pvtu", "vtk"),
        ("flow.pvd", "vtk"),
        ("case.nek5000", "vtk"),
        ("flow.H5", "hdf5"),
        (["a.hdf5", "b.hdf5"], "hdf5"),
        ("ocean_*.nc", "grid"),
        ("ocean.zarr", "grid"),
    ],
)
def test_extensions_tell_the_format(spec, name):
    assert detect_format(spec) == name


def test_folders_and_open_globs_are_looked_into(tmp_path):
    (tmp_path / "readme.txt").touch()
    (tmp_path / "flow_1.vtu").touch()
    assert detect_format(tmp_path) == "vtk"
    assert detect_format(str(tmp_path / "flow*")) == "vtk"
    (tmp_path / "flow_2.h5").touch()
    with pytest.raises(ValueError, match="formats hdf5, vtk; give format_type="):
        detect_format(tmp_path)


def test_unknown_extensions_list_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown extension \.dat; known are .*\.vtu"):
        detect_format("flow.dat")


def test_nothing_to_look_at(tmp_path):
    for spec in (tmp_path, str(tmp_path / "none*"), []):
        with pytest.raises(FileNotFoundError, match="no files"):
            detect_format(spec)


def test_every_format_is_known_by_its_name():
    for name, entry in FORMATS.items():
        assert entry.name == name
        assert entry.extensions
    with pytest.raises(ValueError, match="'csv': choose one of vtk, hdf5, grid"):
        open_slices("a.csv", "csv")


def test_a_missing_package_is_named(monkeypatch, tmp_path):
    found = lambda name: None if name == "h5py" else object()
    monkeypatch.setattr(base.importlib.util, "find_spec", found)
    (tmp_path / "a.h5").touch()
    with pytest.raises(ImportError, match=r"need h5py: pip install .*\[trace\]"):
        open_dataset(tmp_path / "a.h5")


def test_importing_loads_no_backend():
    code = (
        "import sys, jaxtrace, jaxtrace.io;"
        "heavy = {'vtkmodules', 'h5py', 'xarray', 'zarr', 'matplotlib', 'plotly'};"
        "loaded = (heavy | {'scipy.stats', 'scipy.optimize'}) & set(sys.modules);"
        "assert not loaded, loaded"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


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


def test_options_belong_to_formats(series):
    with pytest.raises(TypeError, match=r"option for vtk files 'land'; no name"):
        open_slices(series, land="zero")
    with pytest.raises(TypeError, match="did you mean 'velocity_field_name'"):
        open_slices(series, velocity_name="U")
    slices = open_slices(series, time_source=None, velocity_field_name="velocity")
    assert slices.velocity_name == "velocity"
    assert slices.time_source == "field data (TimeValue or TIME)"


def test_sources_have_a_name(tmp_path):
    assert source_name(tmp_path / "a.vtu") == str(tmp_path / "a.vtu")
    assert source_name(["a.vtu", "b.vtu"]) == "a.vtu, b.vtu"
    assert source_name(dataset()) == "a dataset in memory"


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
    assert len(data.times) == len(data["times"]) == 3
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


def test_grids_are_nodes_in_the_order_of_the_array(tmp_path):
    file = files.write_xml(files.image(), tmp_path / "a.vti")
    data = open_dataset(file)
    expected = files.linear(data["positions"])
    np.testing.assert_allclose(data["velocity_data"][0], expected, rtol=1e-6)
    assert data["connectivity"] is None
