"""Where a run's files lie, and which of them give way."""

from typing import Any

import pytest

from arc_logs import clock
from jaxarc.config import StorageConfig
from jaxarc.utils.logging.folder import GIGABYTE, RunFolder


def folder(path, **values):
    named: Any = {"base_output_dir": str(path), "run_name": "run"} | values
    return RunFolder(StorageConfig(**named), clock)


def fill(run, number, size=10):
    run.episode_file(number).write_bytes(b"x" * size)
    place = run.episode_pictures(number)
    place.mkdir(parents=True)
    (place / "step_001.svg").write_bytes(b"x" * size)


def test_a_run_without_a_name_has_the_time(tmp_path):
    first = folder(tmp_path, run_name=None)
    second = folder(tmp_path, run_name=None)
    assert first.path == tmp_path / "20250102_030405"
    assert second.path == tmp_path / "20250102_030405-2"
    other = folder(tmp_path, run_name=None, timestamp_format="%Y")
    assert other.path.name == "2025"


@pytest.mark.parametrize("name", ["../x", "a/b", ".."])
def test_a_name_is_no_path(tmp_path, name):
    with pytest.raises(ValueError, match="plain name"):
        folder(tmp_path, run_name=name)


@pytest.mark.parametrize("part", ["episodes_dir", "visualization_dir", "logs_dir"])
def test_parts_lie_inside(tmp_path, part):
    for name in ("..", "/tmp", "a/../../b", "."):
        with pytest.raises(ValueError, match="inside the run's folder"):
            folder(tmp_path, **{part: name})


def test_only_its_own_folders_are_cleared(tmp_path):
    fill(folder(tmp_path), 1)
    (tmp_path / "run" / "mine.txt").write_text("kept")
    assert folder(tmp_path).numbers() == [1]
    assert folder(tmp_path, clear_output_on_start=True).numbers() == []
    assert (tmp_path / "run" / "mine.txt").exists()


def test_the_oldest_give_way(tmp_path):
    run = folder(
        tmp_path,
        cleanup_policy="oldest_first",
        max_episodes_per_run=3,
        keep_recent_episodes=1,
    )
    for number in range(5):
        assert run.begin_episode() == ""
        fill(run, number)
    assert run.numbers() == [2, 3, 4]


def test_the_largest_give_way(tmp_path):
    limit = 100 / GIGABYTE
    run = folder(
        tmp_path,
        cleanup_policy="size_based",
        max_storage_gb=limit,
        keep_recent_episodes=1,
    )
    for number, size in enumerate((5, 30, 20)):
        fill(run, number, size)
    assert run.size() == 110
    assert run.size(1) == 60
    assert run.begin_episode() == ""
    assert run.numbers() == [0, 2]


@pytest.mark.parametrize(("policy", "left"), [("none", 4), ("manual", 2)])
def test_nothing_goes_unasked(tmp_path, policy, left):
    run = folder(
        tmp_path,
        cleanup_policy=policy,
        max_episodes_per_run=3,
        keep_recent_episodes=0,
    )
    for number in range(4):
        fill(run, number)
    problem = run.begin_episode()
    assert "is full (4 episodes" in problem
    assert not run.accepts
    assert len(run.clean_up()) == 4 - left
    assert len(run.numbers()) == left


def test_the_recent_stay_even_where_there_is_no_room(tmp_path):
    run = folder(tmp_path, cleanup_policy="oldest_first", max_episodes_per_run=2)
    for number in range(4):
        fill(run, number)
    assert run.begin_episode()
    assert run.numbers() == [0, 1, 2, 3]


def test_a_full_folder_may_be_an_error(tmp_path):
    run = folder(
        tmp_path,
        cleanup_policy="none",
        max_episodes_per_run=1,
        fail_on_storage_full=True,
    )
    run.begin_episode()
    fill(run, 0)
    with pytest.raises(OSError, match=r"raise storage\.max_episodes_per_run"):
        run.begin_episode()
