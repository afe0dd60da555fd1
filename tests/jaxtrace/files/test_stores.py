import numpy as np
import pytest

from jaxtrace.files.stores import open_store
from trace_stores import SUFFIXES, assert_frames, frames, kill_while_writing

stores = pytest.mark.parametrize("suffix", SUFFIXES)


@stores
def test_frames_come_back_exactly(tmp_path, suffix):
    path = tmp_path / "made" / f"run{suffix}"
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


@stores
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("particles", [0, 1, 5])
def test_any_precision_and_number_of_particles(tmp_path, suffix, dtype, particles):
    options = {"dtype": dtype, "particles": particles}
    with open_store(tmp_path / f"run{suffix}", "x") as store:
        store.append(*frames(2, **options))
        assert_frames(store, 2, **options)


@stores
def test_a_restart_cuts_and_goes_on(tmp_path, suffix):
    path = tmp_path / f"run{suffix}"
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


@stores
def test_modes(tmp_path, suffix):
    path = tmp_path / f"run{suffix}"
    with pytest.raises(FileNotFoundError, match="does not exist"):
        open_store(path, "r")
    with open_store(path, "a") as store:
        store.append(*frames(3))
    with pytest.raises(FileExistsError, match="mode 'w' to replace"):
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
    assert left == {path.name} | ({"run_frames"} if suffix == ".pvd" else set())


def test_unknown_names_and_modes_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"ends in \.zarr, \.h5, \.hdf5, \.pvd"):
        open_store(tmp_path / "run.nc", "w")
    with pytest.raises(ValueError, match="one of r, a, w, x"):
        open_store(tmp_path / "run.zarr", "append")


@stores
def test_replacing_spares_what_is_no_store(tmp_path, suffix):
    path = tmp_path / f"run{suffix}"
    folder = path if suffix == ".zarr" else tmp_path / "run_frames"
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")
    if suffix == ".zarr":
        with pytest.raises(ValueError, match="is no Zarr folder"):
            open_store(path, "w")
    else:
        open_store(path, "w").close()
    assert (folder / "thesis.txt").exists()


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".zarr", ".h5", ".pvd"])
@pytest.mark.parametrize("operations", [0, 1, 2, 4, 8, 16])
def test_a_killed_writer_leaves_whole_frames(tmp_path, suffix, operations):
    path = tmp_path / f"run{suffix}"
    killed = kill_while_writing(path, operations)
    with open_store(path, "a") as store:
        assert store.frames in ((3, 6, 9) if killed else (9,))
        count = store.frames
        assert_frames(store, count)
        store.append(*frames(2, start=count))
        assert_frames(store, count + 2)
