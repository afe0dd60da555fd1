import numpy as np
import pytest

from jaxtrace.files.frame_store import Layout, check_frames, chunk_shape
from jaxtrace.files.stores import open_store
from trace_stores import SUFFIXES, frames


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
def test_frames_that_do_not_belong_together_are_refused(times, arrays, problem):
    with pytest.raises(ValueError, match=problem):
        check_frames(times, arrays, {})


def test_a_single_time_may_be_a_number():
    times, _ = check_frames(0.5, {"a": np.zeros((1, 2))}, {})
    assert times.tolist() == [0.5]


def test_chunks_stay_near_their_target():
    chunk = lambda shape: chunk_shape(Layout(shape, np.dtype("f4")), 2**24, 2**20)
    assert chunk((7500, 3)) == (11, 7500, 3)
    assert chunk((10**6, 3)) == (1, 10**6, 3)
    large = chunk((10**8, 3))
    assert 2**23 < np.prod(large) * 4 <= 2**24
    assert chunk((10, 3)) == (256, 10, 3)
    assert chunk((0, 3))[1:] == (1, 3)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_follows_must_be_like_the_first(tmp_path, suffix):
    path = tmp_path / f"run{suffix}"
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


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_facts_about_the_run_are_kept(tmp_path, suffix):
    path = tmp_path / f"run{suffix}"
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
