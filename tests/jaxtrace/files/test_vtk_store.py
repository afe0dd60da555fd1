import numpy as np
import pytest

import trace_vtk
from jaxtrace.files import vtk_store
from jaxtrace.files.collection import listed_steps, write_collection
from jaxtrace.files.stores import open_store
from trace_stores import Killed, assert_frames, frames


def test_the_dead_have_no_point_and_come_back_as_nan(tmp_path):
    times, arrays = frames(2)
    arrays["alive"][1, [0, 3]] = False
    arrays["positions"][0, 2] = np.nan
    with open_store(tmp_path / "run.pvd", "x") as store:
        store.append(times, arrays)
        _, found = store.read()
    np.testing.assert_array_equal(found["alive"], arrays["alive"])
    np.testing.assert_array_equal(found["generation"], arrays["generation"])
    gone = np.isnan(found["positions"][..., 0])
    assert np.argwhere(gone).tolist() == [[0, 2], [1, 0], [1, 3]]
    np.testing.assert_array_equal(
        found["velocities"][~gone], arrays["velocities"][~gone]
    )
    steps = listed_steps(tmp_path / "run.pvd")
    assert [time for time, _ in steps] == times.tolist()
    second = trace_vtk.load(tmp_path / steps[1][1])
    np.testing.assert_array_equal(
        trace_vtk.points(second), arrays["positions"][1][~gone[1]]
    )
    data = trace_vtk.arrays(second.GetPointData())
    np.testing.assert_array_equal(data["ParticleID"], [1, 2, 4])
    assert trace_vtk.arrays(second.GetFieldData())["TimeValue"] == times[1]


@pytest.mark.parametrize("step", ["extend_collection", "write_vtu"])
def test_an_append_that_dies_adds_nothing(tmp_path, monkeypatch, step):
    path = tmp_path / "run.pvd"
    store = open_store(path, "x")
    store.append(*frames(3))

    def die(*_, **__):
        raise Killed

    monkeypatch.setattr(vtk_store, step, die)
    with pytest.raises(Killed):
        store.append(*frames(2, start=3))
    monkeypatch.undo()
    with open_store(path, "a") as store:
        assert_frames(store, 3)
        store.append(*frames(4, start=3))
        assert_frames(store, 7)


def test_cut_frames_are_removed(tmp_path):
    with open_store(tmp_path / "run.pvd", "x") as store:
        store.append(*frames(5))
        store.truncate(2)
    assert len(list((tmp_path / "run_frames").glob("*.vtu"))) == 2


def test_a_series_needs_positions_and_a_beginning(tmp_path):
    with (
        open_store(tmp_path / "run.pvd", "x") as store,
        pytest.raises(ValueError, match="needs 'positions'"),
    ):
        store.append([0.0], {"mass": np.zeros((1, 3))})
    write_collection(tmp_path / "other.pvd", [(0.0, "a.vtu")])
    with pytest.raises(ValueError, match="was not begun as a store"):
        open_store(tmp_path / "other.pvd", "a")
