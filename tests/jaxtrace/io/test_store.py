"""A store holds whole frames, exactly, whenever and however its writer ends."""

import numpy as np
import pytest

from jaxtrace.io.store import open_store
from trace_stores import Killed, assert_frames, frames, kill_while_writing

zarr = pytest.importorskip("zarr")


@pytest.mark.parametrize(
    ("times", "arrays", "problem"),
    [
        ([0.0, np.nan], {"positions": np.zeros((2, 3, 3))}, "must be finite"),
        ([0.0], {}, "one or more are needed"),
        ([0.0], {"times": np.zeros((1, 3))}, "are taken"),
        ([0.0, 1.0], {"positions": np.zeros((1, 3, 3))}, "2 times need"),
        ([0.0], {"mass": np.zeros(1)}, "need \\(k,N"),
        ([0.0], {"a": np.zeros((1, 3)), "b": np.zeros((1, 4))}, "different numbers"),
    ],
)
def test_frames_that_do_not_fit_each_other_are_refused(
    tmp_path, times, arrays, problem
):
    store = open_store(tmp_path / "run.zarr")
    with pytest.raises(ValueError, match=problem):
        store.append(times, arrays)
    assert store.frames == 0


def test_a_single_time_may_be_a_number(tmp_path):
    store = open_store(tmp_path / "run.zarr")
    store.append(0.5, {"a": np.zeros((1, 2))})
    assert store.read()[0].tolist() == [0.5]


def test_what_follows_must_be_like_the_first(tmp_path):
    path = tmp_path / "run.zarr"
    with open_store(path, "x") as store:
        store.append(*frames(2))
    with open_store(path, "a") as store:
        with pytest.raises(ValueError, match=r"'\w+' as \w+ \(5"):
            store.append(*frames(1, particles=6, start=2))
        times, arrays = frames(1, start=2)
        with pytest.raises(ValueError, match="the store holds"):
            store.append(times, {"positions": arrays["positions"]})
        with pytest.raises(ValueError, match="'generation' as int32"):
            store.append(times, {**arrays, "generation": np.zeros((1, 5))})
        assert store.frames == 2


def test_facts_about_the_run_are_kept(tmp_path):
    path = tmp_path / "run.zarr"
    facts = {"dt": np.float32(0.5), "period": np.array([1.0, np.inf]), "by": "rk4"}
    with open_store(path, "x", metadata=facts) as store:
        assert store.metadata == {"dt": 0.5, "period": [1.0, np.inf], "by": "rk4"}
        with pytest.raises(TypeError, match="metadata holds a object"):
            store.describe({"field": object()})
    with open_store(path, "r") as store:
        assert store.metadata["by"] == "rk4"
        with pytest.raises(ValueError, match="open it with mode 'a'"):
            store.describe({})
    with open_store(path, "a", metadata={"by": "euler"}) as store:
        assert store.metadata == {"by": "euler"}


def test_frames_come_back_exactly(tmp_path):
    path = tmp_path / "made" / "run.zarr"
    with open_store(path, "x") as store:
        assert store.frames == 0
        assert store.read()[0].shape == (0,)
        store.append(*frames(3))
        store.append(*frames(0, start=3))
        store.append(*frames(1, start=3))
        store.append(*frames(4, start=4))
        assert_frames(store, 8)
    with open_store(path, "r") as store:
        assert_frames(store, 8)
        times, arrays = store.read(2, 5)
        np.testing.assert_array_equal(times, [0.5, 0.75, 1.0])
        np.testing.assert_array_equal(
            arrays["positions"], frames(8)[1]["positions"][2:5]
        )
        assert store.read(-2)[0].tolist() == [1.5, 1.75]
        assert store.read(5, 2)[1]["alive"].shape == (0, 5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("particles", [0, 1, 5])
def test_any_precision_and_number_of_particles(tmp_path, dtype, particles):
    options = {"dtype": dtype, "particles": particles}
    with open_store(tmp_path / "run.zarr", "x") as store:
        store.append(*frames(2, **options))
        assert_frames(store, 2, **options)


def test_a_restart_cuts_and_goes_on(tmp_path):
    path = tmp_path / "run.zarr"
    with open_store(path, "x") as store:
        store.append(*frames(7))
    with open_store(path, "a") as store:
        store.truncate(4)
        assert_frames(store, 4)
    with open_store(path, "a") as store:
        assert_frames(store, 4)
        store.append(*frames(5, start=4))
        assert_frames(store, 9)
        with pytest.raises(ValueError, match="has 9 frames, not 10"):
            store.truncate(10)
        store.truncate(0)
        assert store.frames == 0
        store.append(*frames(2))
        assert_frames(store, 2)


def test_modes(tmp_path):
    path = tmp_path / "run.zarr"
    with pytest.raises(FileNotFoundError, match="does not exist"):
        open_store(path, "r")
    with open_store(path, "a") as store:
        store.append(*frames(3))
    with pytest.raises(FileExistsError, match="resume=True"):
        open_store(path, "x")
    with open_store(path, "r") as store:
        assert_frames(store, 3)
        with pytest.raises(ValueError, match="open it with mode 'a'"):
            store.append(*frames(1, start=3))
        with pytest.raises(ValueError, match="open it with mode 'a'"):
            store.truncate(1)
    with open_store(path, "w") as store:
        assert store.frames == 0
        store.append(*frames(1, particles=9))
    with pytest.raises(ValueError, match="closed"):
        store.append(*frames(1, start=1, particles=9))
    with open_store(path, "a") as store:
        assert_frames(store, 1, particles=9)
    left = {entry.name for entry in tmp_path.iterdir()}
    assert left == {path.name}


def test_unknown_names_and_modes_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"ends in \.zarr.*exported afterwards"):
        open_store(tmp_path / "run.h5", "w")
    with pytest.raises(ValueError, match="one of r, a, w, x"):
        open_store(tmp_path / "run.zarr", "append")


def test_replacing_spares_what_is_not_a_store(tmp_path):
    folder = tmp_path / "run.zarr"
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")
    with pytest.raises(ValueError, match="is not a Zarr folder"):
        open_store(folder, "w")
    assert (folder / "thesis.txt").exists()


@pytest.mark.parametrize("operations", [0, 3, 16])
@pytest.mark.slow  # compiles a program of its own
def test_a_killed_writer_leaves_whole_frames(tmp_path, operations):
    path = tmp_path / "run.zarr"
    killed = kill_while_writing(path, operations)
    with open_store(path, "a") as store:
        assert store.frames in ((3, 6, 9) if killed else (9,))
        count = store.frames
        assert_frames(store, count)
        store.append(*frames(2, start=count))
        assert_frames(store, count + 2)


@pytest.mark.parametrize("writes", range(0, 20, 3))
def test_an_append_that_dies_at_any_write_adds_nothing(tmp_path, monkeypatch, writes):
    path = tmp_path / "run.zarr"
    with open_store(path, "x") as store:
        store.append(*frames(3))
    real, count = zarr.Array.__setitem__, 0
    real_resize = zarr.Array.resize

    def step():
        nonlocal count
        if count == writes:
            raise Killed
        count += 1

    def set_item(self, *arguments):
        step()
        return real(self, *arguments)

    def resize(self, *arguments):
        step()
        return real_resize(self, *arguments)

    store = open_store(path, "a")
    monkeypatch.setattr(zarr.Array, "__setitem__", set_item)
    monkeypatch.setattr(zarr.Array, "resize", resize)
    with pytest.raises(Killed):
        store.append(*frames(2, start=3))
    monkeypatch.undo()
    with open_store(path, "a") as store:
        assert_frames(store, 3)
        store.append(*frames(4, start=3))
        assert_frames(store, 7)


def test_a_cut_that_dies_leaves_no_stale_times(tmp_path, monkeypatch):
    path = tmp_path / "run.zarr"
    store = open_store(path, "x")
    store.append(*frames(6))
    store.truncate(2)
    real = zarr.Array.__setitem__

    def die_at_times(self, *arguments):
        if self.basename == "frame_time":
            raise Killed
        return real(self, *arguments)

    monkeypatch.setattr(zarr.Array, "__setitem__", die_at_times)
    with pytest.raises(Killed):
        store.append(*frames(4, start=2))
    monkeypatch.undo()
    with open_store(path, "r") as store:
        assert_frames(store, 2)


@pytest.mark.parametrize("system", ["cartesian", "spherical"])
def test_others_open_it_as_trajectories_without_a_warning(tmp_path, system):
    xarray = pytest.importorskip("xarray")
    path, facts = tmp_path / "run.zarr", {"coordinate_system": system}
    if system == "spherical":
        facts |= {"time_units": "seconds since 2020-02-28", "calendar": "standard"}
    times, arrays = frames(6)
    arrays["positions"][4:, 2] = np.nan
    with open_store(path, "x", metadata=facts) as store:
        store.append(times[:3], {n: a[:3] for n, a in arrays.items()})
        store.append(times[3:], {n: a[3:] for n, a in arrays.items()})
        store.finish({"status": np.array([0, 0, 1, 0, 0], np.int8)})
    with xarray.open_zarr(path) as found:
        names = ("x", "y", "z") if system == "cartesian" else ("lon", "lat", "z")
        for axis, name in enumerate(names):
            assert found[name].dims == ("trajectory", "obs")
            np.testing.assert_array_equal(
                found[name].values, arrays["positions"][..., axis].T
            )
        exact = np.tile(times, (5, 1))
        if system == "spherical":
            seconds = (exact * 1000).astype("timedelta64[ms]")
            exact = np.datetime64("2020-02-28", "ns") + seconds
        exact[2, 4:] = np.datetime64("NaT") if system == "spherical" else np.nan
        np.testing.assert_array_equal(found["time"].values, exact)
        assert found.attrs["featureType"] == "trajectory"
        assert found["trajectory"].attrs["cf_role"] == "trajectory_id"
        assert found["status"].attrs["flag_meanings"].split()[1] == "absorbed"
    with open_store(path, "r") as store:
        assert store.read_particles()["status"].tolist() == [0, 0, 1, 0, 0]
