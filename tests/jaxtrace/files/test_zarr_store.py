import numpy as np
import pytest

from jaxtrace.files.stores import open_store
from trace_stores import Killed, assert_frames, frames

zarr = pytest.importorskip("zarr")


@pytest.mark.parametrize("writes", range(9))
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
        if self.basename == "times":
            raise Killed
        return real(self, *arguments)

    monkeypatch.setattr(zarr.Array, "__setitem__", die_at_times)
    with pytest.raises(Killed):
        store.append(*frames(4, start=2))
    monkeypatch.undo()
    with open_store(path, "r") as store:
        assert_frames(store, 2)


def test_others_can_read_it(tmp_path):
    xarray = pytest.importorskip("xarray")
    path = tmp_path / "run.zarr"
    with open_store(path, "x") as store:
        store.append(*frames(3))
        store.append(*frames(3, start=3))
    with xarray.open_zarr(path, consolidated=False) as found:
        assert found["positions"].dims[:2] == ("time", "particle")
        np.testing.assert_array_equal(
            found["positions"].values, frames(6)[1]["positions"]
        )
        np.testing.assert_array_equal(found["times"].values, frames(6)[0])
