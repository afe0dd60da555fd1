"""Oracle: the published sizes of the data sets, and one task counted by hand."""

import json

import pytest
from typer.testing import CliRunner

from jaxarc.cli.app import app
from jaxarc.data import splits


def run(*words):
    return CliRunner().invoke(app, ["list", *words])


def rows(*words):
    return json.loads(run(*words, "--json").output)


def write_task(path, side=3):
    grid = [[7] * side for _ in range(2)]
    pair = {"input": grid, "output": [[1]]}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"train": [pair, pair], "test": [{"input": grid}]}))


def test_all_data_sets_with_their_sizes():
    found = {row["name"]: row for row in rows()}
    assert (found["AGI1"]["train"], found["AGI1"]["evaluation"]) == (400, 400)
    assert (found["AGI2"]["train"], found["AGI2"]["evaluation"]) == (1000, 120)
    assert found["Mini"]["where"] == "jaxrig arc download miniarc"
    assert "ARC-AGI-2" in run().output


def test_parts_of_a_data_set(monkeypatch):
    monkeypatch.setitem(splits._subsets, "AGI1", {})
    splits.register_subset("AGI1", "two", ["00d62c1b", "6d0aefbc"])
    assert rows("AGI1") == [
        {"selector": "train", "kind": "split", "tasks": 400},
        {"selector": "evaluation", "kind": "split", "tasks": 400},
        {"selector": "all", "kind": "split", "tasks": 800},
        {"selector": "two", "kind": "subset", "tasks": 2},
    ]


def test_concepts_are_parts(tmp_path):
    write_task(tmp_path / "corpus" / "Above" / "a.json")
    write_task(tmp_path / "corpus" / "Below" / "b.json")
    found = rows("Concept", "--path", str(tmp_path))
    assert [(r["selector"], r["tasks"]) for r in found] == [
        ("all", 2),
        ("Above", 1),
        ("Below", 1),
    ]


def test_tasks_with_their_sizes():
    assert rows("AGI1", "-s", "00d62c1b") == [
        {
            "task": "00d62c1b",
            "demonstrations": 5,
            "tests": 1,
            "inputs": "6-20 x 6-20",
            "outputs": "6-20 x 6-20",
            "colors": 5,
        }
    ]
    assert "400 tasks" in run("AGI1", "-s", "train").output


def test_long_ids_hide_no_column(tmp_path):
    name = "long_name_" * 14
    write_task(tmp_path / f"{name}.json")
    text = run("Mini", "-s", "all", "--path", str(tmp_path)).output
    assert "2 x 3" in text
    assert all(word in text for word in ("demonstrations", "outputs", "colors"))
    letters = [line.split()[0] for line in text.splitlines() if "_" in line]
    assert "".join(letters) == name


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("AGI1", "-s", "nothing"), "has no selector 'nothing'"),
        (("nothing",), "data set 'nothing' is not known"),
        (("Mini",), "jaxrig arc download miniarc"),
    ],
)
def test_wrong_words_are_explained(words, message):
    assert message in str(run(*words).exception)


def test_a_selector_needs_a_data_set():
    done = run("-s", "train")
    assert done.exit_code == 2
    assert "name the data set" in done.output
