import numpy as np
import pytest

from jaxtrace.files import journal
from jaxtrace.files.hdf5_store import append_h5_trajectories, write_h5_trajectories
from jaxtrace.files.stores import open_store
from trace_stores import Killed, assert_frames, frames

h5py = pytest.importorskip("h5py")


def test_the_documented_layout(tmp_path):
    positions = np.random.default_rng(0).normal(size=(6, 4, 3))
    path = write_h5_trajectories(
        str(tmp_path / "a.h5"), positions, ids=[3, 1, 4, 5], times=np.linspace(0, 1, 6)
    )
    with h5py.File(path, "r") as file:
        group = file["trajectories"]
        assert group["positions"].dtype == np.float32
        assert group["positions"].maxshape == (None, 4, 3)
        assert group["positions"].compression == "gzip"
        np.testing.assert_array_equal(group["positions"], positions.astype("f4"))
        assert group["ids"].dtype == np.int64
        assert group["ids"][:].tolist() == [3, 1, 4, 5]
        assert group["times"].dtype == np.float64
        np.testing.assert_array_equal(group["times"], np.linspace(0, 1, 6))
        assert group.attrs["num_particles"] == 4
        assert group.attrs["num_timesteps"] == 6
        assert group.attrs["format_version"] == "1.0"


def test_appending_goes_on_in_time(tmp_path):
    path = tmp_path / "a.h5"
    every = np.random.default_rng(0).normal(size=(7, 4, 3)).astype("f4")
    write_h5_trajectories(path, list(every[:3]), times=[0.0, 0.5, 1.0], group="run")
    append_h5_trajectories(path, every[3:5], "run")
    append_h5_trajectories(path, every[5:], group="run", times=[9.0, 10.0])
    with h5py.File(path, "r") as file:
        np.testing.assert_array_equal(file["run/positions"], every)
        assert file["run/times"][:].tolist() == [0.0, 0.5, 1.0, 1.5, 2.0, 9.0, 10.0]
        assert file["run"].attrs["num_timesteps"] == 7
    with pytest.raises(ValueError, match="'positions' as float32"):
        append_h5_trajectories(path, np.zeros((1, 5, 3)), "run")
    with pytest.raises(ValueError, match="no trajectories in a group 'other'"):
        append_h5_trajectories(path, every[:1], "other")


def test_writing_replaces_one_group_only(tmp_path):
    path = tmp_path / "a.h5"
    write_h5_trajectories(
        path,
        np.zeros((2, 3, 2)),
        group="first",
        compression=None,
        compression_opts=None,
        chunks=(1, 3, 3),
    )
    write_h5_trajectories(path, np.ones((2, 3, 3)), group="second")
    write_h5_trajectories(path, np.full((1, 5, 3), 2.0), group="second")
    with h5py.File(path, "r") as file:
        assert file["first/positions"].shape == (2, 3, 3)
        assert file["first/positions"].chunks == (1, 3, 3)
        assert file["second/positions"].shape == (1, 5, 3)
    with pytest.raises(ValueError, match=r"times has shape \(3,\)"):
        write_h5_trajectories(path, np.zeros((2, 3, 3)), times=np.arange(3))
    with pytest.raises(ValueError, match=r"they need \(T,N,3\)"):
        write_h5_trajectories(path, np.zeros((2, 3)))


def test_an_append_that_fails_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "run.h5"
    store = open_store(path, "x")
    store.append(*frames(3))
    before = path.read_bytes()
    real, count = h5py.Dataset.__setitem__, 0

    def die_at_third(self, *arguments):
        nonlocal count
        count += 1
        if count == 3:
            raise Killed
        return real(self, *arguments)

    monkeypatch.setattr(h5py.Dataset, "__setitem__", die_at_third)
    with pytest.raises(Killed):
        store.append(*frames(2, start=3))
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert store.frames == 3
    store.append(*frames(2, start=3))
    assert_frames(store, 5)


def test_a_kill_within_the_commit_is_made_good(tmp_path, monkeypatch):
    path = tmp_path / "run.h5"
    store = open_store(path, "x")
    store.append(*frames(3))

    monkeypatch.setattr(journal, "finish_journal", lambda path: None)
    store.append(*frames(2, start=3))
    monkeypatch.undo()
    with pytest.raises(ValueError, match="its writer was killed"):
        open_store(path, "r")
    with open_store(path, "a") as store:
        assert_frames(store, 5)


def test_bytes_left_behind_the_end_do_not_matter(tmp_path):
    path = tmp_path / "run.h5"
    with open_store(path, "x") as store:
        store.append(*frames(3))
    with open(path, "ab") as file:
        file.write(bytes(100_000))
    with open_store(path, "a") as store:
        assert_frames(store, 3)
        store.append(*frames(2, start=3))
        assert_frames(store, 5)


def test_others_read_between_two_appends(tmp_path):
    path = tmp_path / "run.h5"
    with open_store(path, "x") as store:
        for start in range(3):
            store.append(*frames(1, start=start))
            with h5py.File(path, "r") as file:
                assert file["trajectories/times"].shape == (start + 1,)
