"""Runs to disk: the same frames, stopped anywhere, resumed bit for bit."""

import sys

import numpy as np
import pytest

import trace_flows
from jaxtrace.fields import UniformFlow
from jaxtrace.io.store import open_store
from jaxtrace.tracking.boundaries.box import box_boundary
from trace_flows import seeds

OUTPUTS = ["run.zarr", "run.h5", "run.pvd"]


def track(**options):
    often = {"progress_update_every": 0.1}  # a chunk is a file of every array
    return trace_flows.track(record_velocities=True, **often, **options)


class Stopped(Exception):
    """Stands for a killed process."""


def stop_after(part: float):
    def callback(fraction: float) -> None:
        if fraction >= part:
            raise Stopped

    return callback


@pytest.fixture(scope="module")
def reference():
    return track()


@pytest.mark.parametrize("name", OUTPUTS)
def test_a_run_to_disk_is_the_run_in_memory(tmp_path, reference, name):
    got = track(output=tmp_path / name)
    np.testing.assert_array_equal(got.positions, reference.positions)
    np.testing.assert_array_equal(got.velocities, reference.velocities)
    np.testing.assert_allclose(got.times, reference.times)
    with open_store(tmp_path / "run.zarr", "r") as store:
        assert store.frames == 31
        assert store.metadata["integrator"] == "rk2"
    with pytest.raises(FileExistsError, match=name):
        track(output=tmp_path / name)


@pytest.mark.parametrize(
    ("name", "part"), [("run.zarr", 0.1), ("run.h5", 1.0), ("run.pvd", 0.1)]
)
def test_a_stopped_run_goes_on_bit_for_bit(tmp_path, reference, name, part):
    with pytest.raises(Stopped):
        track(output=tmp_path / name, progress_callback=stop_after(part))
    got = track(output=tmp_path / name, resume=True)
    np.testing.assert_array_equal(got.positions, reference.positions)
    assert (tmp_path / name).exists()


def test_a_torn_tail_is_cut(tmp_path, reference):
    with pytest.raises(Stopped):
        track(output=tmp_path / "run.zarr", progress_callback=stop_after(0.2))
    with open_store(tmp_path / "run.zarr", "a") as store:
        torn = np.zeros((1, 60, 3), np.float32)
        store.append([99.0], {"positions": torn, "velocities": torn})
    got = track(output=tmp_path / "run.zarr", resume=True)
    np.testing.assert_array_equal(got.positions, reference.positions)


def test_a_run_killed_before_its_first_frame_begins_anew(tmp_path, reference):
    open_store(tmp_path / "run.zarr", "x").close()
    got = track(output=tmp_path / "run.zarr", resume=True)
    np.testing.assert_array_equal(got.positions, reference.positions)
    with open_store(tmp_path / "run.zarr", "r") as store:
        assert store.metadata["integrator"] == "rk2"


def test_a_run_goes_on_with_other_batches(tmp_path, reference):
    with pytest.raises(Stopped):
        track(
            output=tmp_path / "run.zarr",
            progress_callback=stop_after(0.2),
            batch_size=7,
        )
    got = track(output=tmp_path / "run.zarr", resume=True)
    np.testing.assert_array_equal(got.positions, reference.positions)


def test_another_run_is_not_resumed(tmp_path):
    with pytest.raises(Stopped):
        track(output=tmp_path / "run.zarr", progress_callback=stop_after(0.2))
    with pytest.raises(ValueError, match="integrator='rk2'"):
        track(output=tmp_path / "run.zarr", resume=True, integrator="euler")
    with pytest.raises(ValueError, match="n_particles=60"):
        track(output=tmp_path / "run.zarr", resume=True, start=seeds(5))
    with pytest.raises(ValueError, match="contains a run with seeds="):
        track(output=tmp_path / "run.zarr", resume=True, start=seeds(seed=2))
    with pytest.raises(ValueError, match="with flow='data"):
        track(output=tmp_path / "run.zarr", resume=True, field=UniformFlow(1.0))
    narrow = box_boundary([[0, 0, 0], [1, 1, 0.5]], "reflective")
    with pytest.raises(ValueError, match="with boundary='BoxBoundary"):
        track(output=tmp_path / "run.zarr", resume=True, boundary=narrow)


def test_an_unknown_format_is_refused_before_the_run(tmp_path):
    with pytest.raises(ValueError, match=r"'run\.doc': a run is written as \.zarr"):
        track(output=tmp_path / "run.doc")


def test_a_format_without_its_library_is_refused_before_the_run(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"need pyarrow.*or write \.csv"):
        track(output=tmp_path / "run.parquet")
    assert not list(tmp_path.iterdir())


def test_resuming_needs_an_output():
    with pytest.raises(ValueError, match="resume needs the output"):
        track(resume=True)
