"""Selectors mean what the documents say, in the documented order."""

import pytest

from arc_samples import raw_tasks, write_tasks
from jaxarc.config.groups import DatasetConfig
from jaxarc.tasks.splits import (
    Selection,
    available_named_subsets,
    load_subset,
    register_subset,
    resolve_selector,
)


@pytest.fixture
def arc(tmp_path):
    write_tasks(tmp_path / "data" / "training", raw_tasks("a", "b"))
    write_tasks(tmp_path / "data" / "evaluation", raw_tasks("c"))
    return DatasetConfig(dataset_path=str(tmp_path))


@pytest.fixture
def concept(tmp_path):
    write_tasks(tmp_path / "corpus" / "Copy", raw_tasks("Copy1", "Copy2"))
    write_tasks(tmp_path / "corpus" / "Order", raw_tasks("Order1"))
    return DatasetConfig(dataset_path=str(tmp_path))


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("all", Selection("all", ("a", "b", "c"), 0)),
        ("train", Selection("train", ("a", "b"), 0)),
        ("Training", Selection("training", ("a", "b"), 0)),
        ("eval", Selection("eval", ("c",), 1)),
        ("evaluation", Selection("evaluation", ("c",), 1)),
        ("test", Selection("test", ("c",), 1)),
        ("a", Selection("train", ("a",), 0)),
        ("c", Selection("evaluation", ("c",), 0)),
    ],
)
def test_splits_and_ids_of_arc(arc, selector, expected):
    assert resolve_selector("AGI1", selector, arc) == expected
    assert resolve_selector("arc-agi-1", selector, arc) == expected


def test_concepts(concept):
    assert resolve_selector("Concept", "Copy", concept) == Selection(
        "corpus", ("Copy/Copy1", "Copy/Copy2"), 0
    )
    assert resolve_selector("Concept", "corpus", concept).default_episode_mode == 1
    assert resolve_selector("Concept", "Order/Order1", concept).ids == ("Order/Order1",)
    assert resolve_selector("Concept", "all", concept).ids == (
        "Copy/Copy1",
        "Copy/Copy2",
        "Order/Order1",
    )
    names = available_named_subsets("Concept", config=concept)
    assert names == ("Copy", "Order", "all", "corpus")
    with pytest.raises(
        ValueError, match="no selector 'copy': it is one of Copy, Order"
    ):
        resolve_selector("Concept", "copy", concept)


def test_a_registered_subset_comes_first(arc):
    register_subset("arc-agi-1", "Easy", ["b", "a", "b"])
    register_subset("AGI1", "train", ["a"])
    register_subset("AGI1", "mixed", ["a", "c"])
    assert resolve_selector("AGI1", "EASY", arc) == Selection("train", ("b", "a"), 0)
    assert resolve_selector("AGI1", "train", arc).ids == ("a",)
    assert resolve_selector("AGI1", "mixed", arc).split == "all"
    assert available_named_subsets("AGI1", include_builtin=False) == (
        "easy",
        "mixed",
        "train",
    )
    assert "evaluation" in available_named_subsets("AGI1")
    assert available_named_subsets("Mini") == ("all",)


def test_what_cannot_be_registered():
    with pytest.raises(ValueError, match="name of a subset is empty"):
        register_subset("AGI1", " ", ["a"])
    for ids in ([], "abc"):
        with pytest.raises(ValueError, match="a list of at least one id"):
            register_subset("AGI1", "x", ids)
    with pytest.raises(ValueError, match="is not known"):
        register_subset("AGI9", "x", ["a"])


def test_a_subset_of_unknown_ids_is_named(arc):
    register_subset("AGI1", "typo", ["a", "zz"])
    with pytest.raises(ValueError, match="AGI1 has no task zz: correct the subset"):
        resolve_selector("AGI1", "typo", arc)


def test_unknown_selectors_list_the_options(arc):
    register_subset("AGI1", "easy", ["a"])
    with pytest.raises(
        ValueError, match=r"'harder': .*easy.*train.* one of its 3 task"
    ):
        resolve_selector("AGI1", "harder", arc)


def test_subsets_in_files(tmp_path):
    folder = tmp_path / "AGI2"
    folder.mkdir()
    (folder / "Hard.yaml").write_text("task_ids: [a, 'b']\n")
    assert load_subset(folder / "Hard.yaml") == ("a", "b")
    assert load_subset(folder / "Hard.yaml", "Mini", "mine") == ("a", "b")
    assert available_named_subsets("Mini", include_builtin=False) == ("mine",)
    assert available_named_subsets("AGI2", include_builtin=False) == ("hard",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "x.yaml: this is not valid YAML"),
        ("- a", "it must be a mapping"),
        ("a: 1", "'task_ids' is None"),
        ("task_ids: a", "'task_ids' is a"),
        ("task_ids: [12345678]", "quote those that YAML reads as numbers"),
        ("task_ids: []", "a list of at least one id"),
    ],
)
def test_files_that_hold_no_subset(tmp_path, text, message):
    path = tmp_path / "x.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        load_subset(path, "AGI1")
