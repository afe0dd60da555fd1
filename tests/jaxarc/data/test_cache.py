"""The cache gives back what was parsed, notices change, and is never needed."""

import json
import logging

import numpy as np
import pytest

from arc_samples import random_raw_task, write_tasks
from jaxarc.tasks import sources
from jaxarc.tasks.sources import load_source, mini_folder_source, parse_source

ARRAYS = ("counts", "planes", "sizes", "colors")


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    tasks = [random_raw_task(rng, f"t{i}", 5, answers=i > 0) for i in range(4)]
    folder = write_tasks(tmp_path / "tasks", tasks)
    (folder / "bad.json").write_text(json.dumps({"train": [], "test": []}))
    return folder


def assert_equal(one, other):
    assert one.tasks.ids == other.tasks.ids
    assert one.problems == other.problems
    for name in ARRAYS:
        np.testing.assert_array_equal(
            getattr(one.tasks, name), getattr(other.tasks, name), strict=True
        )


@pytest.fixture
def count_parses(monkeypatch):
    calls = []
    parse = sources.parse_source
    monkeypatch.setattr(
        sources, "parse_source", lambda source: calls.append(1) or parse(source)
    )
    return calls


def test_the_second_time_nothing_is_parsed(folder, count_parses):
    first = load_source(mini_folder_source(folder))
    second = load_source(mini_folder_source(folder))
    assert len(count_parses) == 1
    assert_equal(first, second)
    assert first.tasks.ids == ("t0", "t1", "t2", "t3")
    (problem,) = second.problems
    assert "bad.json: 'train' is a list of 0" in problem


def test_a_changed_file_is_parsed_again(folder, own_cache, count_parses):
    load_source(mini_folder_source(folder))
    (folder / "bad.json").unlink()
    again = load_source(mini_folder_source(folder))
    assert again.problems == ()
    assert len(count_parses) == 2
    assert len(list((own_cache / "arc").iterdir())) == 1  # replaced, not added


@pytest.mark.parametrize("damage", ["truncate", "flip", "foreign", "wrong"])
def test_a_damaged_entry_is_made_again(folder, own_cache, count_parses, caplog, damage):
    source = mini_folder_source(folder)
    first = load_source(source)
    (path,) = (own_cache / "arc").iterdir()
    data = path.read_bytes()
    if damage == "truncate":
        path.write_bytes(data[: len(data) // 2])
    elif damage == "flip":
        path.write_bytes(data[:-20] + bytes([data[-20] ^ 1]) + data[-19:])
    elif damage == "foreign":
        path.write_bytes(b"no container")
    else:
        store = sources.BlobStore(own_cache / "arc")
        (name,) = store.names()
        store.save(store.load(name) | {"counts": np.zeros((1, 2), np.int32)}, name)
    with caplog.at_level(logging.WARNING):
        assert_equal(load_source(source), first)
    assert "is damaged, parsing again" in caplog.text
    assert_equal(load_source(source), first)
    assert len(count_parses) == 2


def test_a_cache_that_cannot_be_made_is_done_without(
    folder, tmp_path, monkeypatch, caplog
):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("JAXRIG_CACHE", str(blocked))
    with caplog.at_level(logging.INFO):
        parsed = load_source(mini_folder_source(folder))
    assert_equal(parsed, parse_source(mini_folder_source(folder)))
    assert "no cache for MiniARC" in caplog.text


def test_a_full_disk_only_costs_the_cache(folder, monkeypatch, caplog):
    def refuse(self, data, name):
        raise OSError("no space left on device")

    monkeypatch.setattr(sources.BlobStore, "save", refuse)
    with caplog.at_level(logging.INFO):
        parsed = load_source(mini_folder_source(folder))
    assert len(parsed.tasks.ids) == 4
    assert "was not kept in the cache: no space left" in caplog.text
