"""What is converted holds the same as before, whatever the format."""

import csv

import numpy as np
import pytest

import trace_vtk
from jaxtrace.io.convert import convert, holds_trajectories, read_recorded
from jaxtrace.io.formats import open_slices
from jaxtrace.io.geometry import GridAxes, same_geometry
from jaxtrace.io.series import load
from jaxtrace.io.steps import listed_steps
from jaxtrace.io.store import open_store
from jaxtrace.io.vtk_export import write_points
from trace_cases import write_slices

TIMES = np.linspace(0, 1, 70)
POSITIONS = np.random.default_rng(0).normal(size=(70, 4, 3)).astype(np.float32)
POSITIONS[50:, 2] = np.nan  # absorbed


@pytest.fixture
def recorded(tmp_path):
    path = tmp_path / "run.zarr"
    with open_store(path, "x", metadata={"integrator": "rk4"}) as store:
        store.append(TIMES, {"positions": POSITIONS, "velocities": -POSITIONS})
    return path


def test_a_recorded_run_to_hdf5_and_back(recorded, tmp_path):
    seen = []
    target = convert(recorded, tmp_path / "copy.h5", lambda *done: seen.append(done))
    assert seen[-1] == (70, 70)
    assert holds_trajectories(target)
    again = convert(target, tmp_path / "again.zarr")
    for path in (target, again):
        found = read_recorded(path)
        np.testing.assert_array_equal(found.positions, POSITIONS)
        np.testing.assert_array_equal(found.velocities, -POSITIONS)
        np.testing.assert_array_equal(found.times, TIMES)
        assert found.metadata["integrator"] == "rk4"
    assert convert(target, tmp_path / "lines.vtp").exists()
    assert not list(tmp_path.glob(".*"))


def test_a_recorded_run_to_arrays_and_rows(recorded, tmp_path):
    with np.load(convert(recorded, tmp_path / "run.npz")) as arrays:
        np.testing.assert_array_equal(arrays["positions"], POSITIONS)
        np.testing.assert_array_equal(arrays["times"], TIMES)
    with open(convert(recorded, tmp_path / "run.csv"), newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 70 * 4 - 20
    frame, particle = (
        np.array([int(r[n]) for r in rows]) for n in ("frame", "particle")
    )
    place = np.array([[float(row[axis]) for axis in "xyz"] for row in rows], np.float32)
    np.testing.assert_array_equal(place, POSITIONS[frame, particle])
    np.testing.assert_array_equal([float(r["time"]) for r in rows], TIMES[frame])
    speeds = np.array([float(row["u"]) for row in rows], np.float32)
    np.testing.assert_array_equal(speeds, -place[:, 0])


def test_a_recorded_run_to_vtk(recorded, tmp_path):
    steps = listed_steps(convert(recorded, tmp_path / "run.pvd"))
    assert [step.time for step in steps] == TIMES.tolist()
    last = trace_vtk.load(steps[-1].files[0])
    np.testing.assert_array_equal(trace_vtk.points(last), POSITIONS[-1, [0, 1, 3]])
    lines = trace_vtk.load(convert(recorded, tmp_path / "lines.vtp"))
    assert sorted(map(len, trace_vtk.cells(lines))) == [50, 70, 70, 70]


@pytest.mark.parametrize("suffix", [".pvd", ".nc", ".zarr"])
def test_velocities_on_a_grid(tmp_path, suffix):
    source = write_slices(tmp_path)
    target = convert(source, tmp_path / f"again{suffix}")
    assert not holds_trajectories(target)
    before, after = (load(open_slices(str(path))) for path in (source, target))
    np.testing.assert_array_equal(after.times, before.times)
    np.testing.assert_array_equal(after.velocities, before.velocities)
    assert isinstance(before.geometry, GridAxes)
    assert isinstance(after.geometry, GridAxes)
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
        convert(recorded, tmp_path / "x.nc")
    with pytest.raises(ValueError, match="velocities are written as"):
        convert(write_slices(tmp_path), tmp_path / "x.vtp")
    with pytest.raises(FileExistsError, match="exists"):
        convert(recorded, recorded)
