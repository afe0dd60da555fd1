"""Frames come back as they went in, however little memory there is."""

import numpy as np
import pytest

from arc_logs import start_log, step_logs
from jaxarc.config import DebugConfig, MemoryConfig, VisualizationConfig
from jaxarc.utils.logging.frames import FrameStore, frame_of_log
from jaxarc.utils.visualization.episodes import EpisodeFrame

MANY = 40


def frames():
    for number in range(MANY):
        yield EpisodeFrame(np.full((30, 30), number % 10), None, number, 0.5, 0.25)


def filled(**memory):
    debug = DebugConfig(memory_management=MemoryConfig(**memory)) if memory else None
    limit = 0.01 if memory else 500
    store = FrameStore(VisualizationConfig(max_memory_mb=limit, debug=debug))
    for frame in frames():
        store.add(frame)
    return store


@pytest.mark.parametrize("compression", [True, False])
def test_what_does_not_fit_is_loaded_again(compression):
    store = filled(compression=compression)
    assert store.manager.cache.get_stats()["storage_items"] > 0
    found, problem = store.frames()
    assert problem == ""
    assert [frame.operation for frame in found] == list(range(MANY))
    for frame, wanted in zip(found, frames(), strict=True):
        np.testing.assert_array_equal(frame.grid, wanted.grid)
        assert (frame.reward, frame.similarity) == (0.5, 0.25)
    store.close()


def test_compressed_files_are_smaller():
    sizes = []
    for compression in (True, False):
        store = filled(compression=compression)
        storage = store.manager.cache.storage
        assert storage is not None
        names = storage.list_files()
        sizes.append(sum(storage.get_size_mb(name) for name in names) / len(names))
        store.close()
    assert sizes[0] < sizes[1]


def test_without_files_the_oldest_are_forgotten_and_it_is_said():
    store = filled(lazy_loading=False)
    found, problem = store.frames()
    assert 0 < len(found) < MANY
    assert found[-1].operation == MANY - 1
    assert f"{MANY - len(found)} of {MANY} frames" in problem
    store.close()


def test_an_episode_begins_empty_and_memory_is_watched():
    store = filled()
    assert store.begin() == ""
    assert store.frames() == ([], "")
    store.close()
    watched = filled(max_total_mb=1.0, max_cache_mb=0.5)
    assert "above visualization.debug.memory_management.max_total_mb" in watched.begin()
    watched.close()
    roomy = filled(max_total_mb=1e6)
    assert roomy.begin() == ""
    roomy.close()


def test_a_log_becomes_a_frame():
    first = frame_of_log(start_log())
    assert first.grid.shape == (4, 5)
    assert first.operation is first.selection is None
    last = step_logs()[-1]
    frame = frame_of_log(last)
    assert (frame.operation, frame.similarity) == (1, 1.0)
    assert frame.selection is not None
    assert np.argwhere(frame.selection).tolist() == [[0, 0]]
    np.testing.assert_array_equal(frame.grid, frame.target)
    assert frame_of_log(last, named=False).operation is None
    assert frame_of_log(last | {"target": np.full((6, 6), -1)}).target is None
