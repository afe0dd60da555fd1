"""What is converted holds the same as before, whatever the format."""

import csv
import importlib.util

import numpy as np
import pytest

import trace_vtk
from jaxtrace.fields.interpolation import TensorGrid
from jaxtrace.io.convert import convert, holds_trajectories, read_recorded
from jaxtrace.io.formats import open_slices
from jaxtrace.io.geometry import same_geometry
from jaxtrace.io.series import load
from jaxtrace.io.steps import listed_steps
from jaxtrace.io.store import open_store
from jaxtrace.io.vtk_export import export_trajectory_to_vtk, write_points
from trace_cases import write_slices

TIMES = np.linspace(0, 1, 70)
POSITIONS = np.random.default_rng(0).normal(size=(70, 4, 3)).astype(np.float32)
POSITIONS[50:, 2] = np.nan  # absorbed
POSITIONS[:3, 0] = np.nan  # released later
STATUS = np.array([0, 5, 1, 0], np.int8)
AGES = np.where(np.isnan(POSITIONS[..., 0]), np.nan, TIMES[:, None])


@pytest.fixture
def recorded(tmp_path):
    path = tmp_path / "run.zarr"
    with open_store(path, "x", metadata={"integrator": "rk4"}) as store:
        moving = {"positions": POSITIONS, "velocities": -POSITIONS}
        store.append(TIMES, {**moving, "age": AGES})
        store.finish({"status": STATUS, "exit_time": STATUS * 0.7})
    return path


@pytest.mark.parametrize("suffix", [".h5", ".nc"])
def test_a_recorded_run_to_a_file_and_back(recorded, tmp_path, suffix):
    seen = []
    name = tmp_path / f"copy{suffix}"
    target = convert(recorded, name, lambda *done: seen.append(done))
    assert seen[-1] == (70, 70)
    assert holds_trajectories(target)
    again = convert(target, tmp_path / "again.zarr")
    for path in (target, again):
        found = read_recorded(path)
        np.testing.assert_array_equal(found.positions, POSITIONS)
        np.testing.assert_array_equal(found.velocities, -POSITIONS)
        np.testing.assert_array_equal(found.variables["age"], AGES)
        np.testing.assert_array_equal(found.status, STATUS)
        np.testing.assert_array_equal(found.exit_time, STATUS * 0.7)
        np.testing.assert_array_equal(found.times, TIMES)
        assert found.metadata["integrator"] == "rk4"
    assert convert(target, tmp_path / "lines.vtp").exists()
    assert not list(tmp_path.glob(".*"))


def test_a_recorded_run_to_arrays_and_rows(recorded, tmp_path):
    with np.load(convert(recorded, tmp_path / "run.npz")) as arrays:
        np.testing.assert_array_equal(arrays["positions"], POSITIONS)
        np.testing.assert_array_equal(arrays["times"], TIMES)
        np.testing.assert_array_equal(arrays["status"], STATUS)
    with open(convert(recorded, tmp_path / "run.csv"), newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 70 * 4 - 23
    frame, particle = (
        np.array([int(r[n]) for r in rows]) for n in ("frame", "particle")
    )
    place = np.array([[float(row[axis]) for axis in "xyz"] for row in rows], np.float32)
    np.testing.assert_array_equal(place, POSITIONS[frame, particle])
    np.testing.assert_array_equal([float(r["time"]) for r in rows], TIMES[frame])
    speeds = np.array([float(row["u"]) for row in rows], np.float32)
    np.testing.assert_array_equal(speeds, -place[:, 0])
    ages = [float(row["age"]) for row in rows]
    np.testing.assert_array_equal(ages, AGES[frame, particle])


def test_a_netcdf_file_is_of_the_conventions(recorded, tmp_path):
    xarray = pytest.importorskip("xarray")
    with xarray.open_dataset(convert(recorded, tmp_path / "run.nc")) as found:
        assert found["x"].dims == found["time"].dims == ("trajectory", "obs")
        np.testing.assert_array_equal(found["x"].values, POSITIONS[..., 0].T)
        assert found.attrs["featureType"] == "trajectory"
        gone = np.isnan(POSITIONS[..., 0]).T
        assert (np.isnan(found["time"].values) == gone).all()


def test_rows_have_dates_where_the_run_has_them(tmp_path):
    facts = {"coordinate_system": "spherical"}
    facts["time_units"] = "hours since 2019-02-28"
    with open_store(tmp_path / "run.zarr", "x", metadata=facts) as store:
        store.append([0.0, 24.5], {"positions": POSITIONS[:2]})
        store.finish({})
    text = convert(tmp_path / "run.zarr", tmp_path / "run.csv").read_text()
    head, first, *_, last = text.splitlines()
    assert head == "frame,time,particle,lon,lat,z"
    assert first.startswith("0,2019-02-28T00:00:00.000,1,")
    assert last.startswith("1,2019-03-01T00:30:00.000,3,")


def test_parquet_needs_its_library_or_holds_the_rows(recorded, tmp_path):
    target = tmp_path / "run.parquet"
    if importlib.util.find_spec("pyarrow") is None:
        with pytest.raises(ImportError, match=r"need pyarrow.*or write \.csv or \.nc"):
            convert(recorded, target)
        return
    parquet = importlib.import_module("pyarrow.parquet")
    table = parquet.read_table(convert(recorded, target))
    assert table.num_rows == 70 * 4 - 23


def test_a_recorded_run_to_vtk(recorded, tmp_path):
    steps = listed_steps(convert(recorded, tmp_path / "run.pvd"))
    assert [step.time for step in steps] == TIMES.tolist()
    last = trace_vtk.load(steps[-1].files[0])
    np.testing.assert_array_equal(trace_vtk.points(last), POSITIONS[-1, [0, 1, 3]])
    lines = trace_vtk.load(convert(recorded, tmp_path / "lines.vtp"))
    assert sorted(map(len, trace_vtk.cells(lines))) == [50, 67, 70, 70]
    series = {"time_series": True}
    made = export_trajectory_to_vtk(read_recorded(recorded), tmp_path / "s", **series)
    one = trace_vtk.load(listed_steps(made["collection"])[-1].files[0])
    for found, ages in ((last, [1.0] * 3), (one, [1.0] * 3), (lines, TIMES[3:])):
        data = trace_vtk.arrays(found.GetPointData())
        np.testing.assert_array_equal(data["age"][: len(ages)], ages)
    first = trace_vtk.arrays(lines.GetPointData())["InitialX"][0]
    assert first == POSITIONS[3, 0, 0]


@pytest.mark.parametrize("suffix", [".pvd", ".nc", ".zarr"])
def test_velocities_on_a_grid(tmp_path, suffix):
    source = write_slices(tmp_path)
    target = convert(source, tmp_path / f"again{suffix}")
    assert not holds_trajectories(target)
    before, after = (load(open_slices(str(path))) for path in (source, target))
    np.testing.assert_array_equal(after.times, before.times)
    np.testing.assert_array_equal(after.velocities, before.velocities)
    assert isinstance(before.geometry, TensorGrid)
    assert isinstance(after.geometry, TensorGrid)
    assert same_geometry(after.geometry, before.geometry)


def test_velocities_on_a_mesh_go_to_vtk_only(tmp_path):
    points = np.random.default_rng(0).random((6, 3))
    source = write_points(tmp_path / "m.vtu", points, np.ones((6, 3), np.float32))
    convert(source, tmp_path / "m.pvd")
    found = load(open_slices(str(tmp_path / "m.pvd")))
    np.testing.assert_array_equal(found.velocities[0], 1)
    with pytest.raises(ValueError, match=r"convert them to \.pvd"):
        convert(source, tmp_path / "m.nc")


def test_what_cannot_be_written_is_refused(recorded, tmp_path):
    with pytest.raises(ValueError, match="trajectories are written as"):
        convert(recorded, tmp_path / "x.doc")
    with pytest.raises(ValueError, match="velocities are written as"):
        convert(write_slices(tmp_path), tmp_path / "x.vtp")
    with pytest.raises(FileExistsError, match="exists"):
        convert(recorded, recorded)
