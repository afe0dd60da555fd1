"""Listing, showing and downloading tasks."""

import json
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from jaxarc.cli import COMMANDS, app
from jaxarc.cli.tasks import check_picture
from jaxarc.tasks import splits
from jaxarc.tasks.download import DatasetDownloader, Remote


def test_every_command_explains_itself():
    for command in ([], *([name, "--help"] for name in COMMANDS)):
        output = CliRunner().invoke(app, command).output
        assert "Usage" in output
        assert command or all(name in output for name in COMMANDS)


def list_tasks(*words):
    return CliRunner().invoke(app, ["list", *words])


def rows(*words):
    return json.loads(list_tasks(*words, "--json").output)


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
    assert found["AGI2"]["title"] == "ARC-AGI-2"


def test_parts_of_a_data_set():
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
    assert "400 tasks" in list_tasks("AGI1", "-s", "train").output


def test_long_ids_hide_no_column(tmp_path):
    name = "long_name_" * 14
    write_task(tmp_path / f"{name}.json")
    text = list_tasks("Mini", "-s", "all", "--path", str(tmp_path)).output
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
    assert message in str(list_tasks(*words).exception)
    done = list_tasks("-s", "train")  # of no data set
    assert done.exit_code == 2
    assert "list AGI1" in done.output


def show(*words):
    return CliRunner().invoke(app, ["show", *words])


def test_answers_are_hidden_until_asked_for():
    hidden, shown = show("6d0aefbc").output, show("6d0aefbc", "--answer").output
    assert hidden.count("Output (3x6)") == 4
    assert "?" in hidden
    assert shown.count("Output (3x6)") == 5
    assert "Test 1" in hidden


def test_the_picture_keeps_the_secret_too(tmp_path):
    for name, words in (("h.svg", ()), ("a.svg", ("--answer",))):
        done = show("6d0aefbc", "--svg", str(tmp_path / name), *words)
        assert done.exit_code == 0
        assert f"wrote {tmp_path / name}" in done.output.replace("\n", "")
    assert (tmp_path / "h.svg").read_text().count(">3x6<") == 4
    assert (tmp_path / "a.svg").read_text().count(">3x6<") == 5


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("00d62c1x",), "did you mean '00d62c1b'"),
        (("00d62c1b", "--dataset", "nothing"), "data set 'nothing' is not known"),
        (("00d62c1b", "--path", "/none"), "is not a folder"),
    ],
)
def test_tasks_that_cannot_be_shown_are_explained(words, message):
    assert message in str(show(*words).exception)


@pytest.fixture
def fetch(monkeypatch, tmp_path):
    source = tmp_path / "source"
    (source / "data").mkdir(parents=True)
    (source / "data" / "a.json").write_text("{}")
    git = ["git", "-C", str(source), "-c", "user.name=x", "-c", "user.email=x"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "data"]):
        subprocess.run([*git, *words], check=True)
    url = source.as_uri()
    remotes = {name: Remote(url, name, "data") for name in ("miniarc", "conceptarc")}
    make = lambda folder, progress: DatasetDownloader(
        folder, remotes=remotes, progress=progress
    )
    monkeypatch.setattr("jaxarc.cli.tasks.DatasetDownloader", make)
    return lambda *words: CliRunner().invoke(app, ["download", *words])


def test_one_and_all(fetch, tmp_path):
    folder = tmp_path / "data"
    done = fetch("miniarc", "--output", str(folder))
    assert done.exit_code == 0
    assert "cloning" in done.output
    assert "use it with --path" in done.output
    assert (folder / "miniarc" / "data" / "a.json").exists()
    again = fetch("all", "--output", str(folder)).output
    assert "already in" in again
    assert (folder / "conceptarc").is_dir()
    assert again.count("cloning") == 1
    assert fetch("all", "-o", str(folder), "--force").output.count("cloning") == 2
    assert fetch("nothing").exit_code == 2


def test_the_name_of_a_picture_says_its_format(tmp_path):
    check_picture(None)
    check_picture(tmp_path / "a.SVG")
    with pytest.raises(typer.BadParameter, match=r"a\.txt does not end in \.svg"):
        check_picture(tmp_path / "a.txt")


def test_importing_is_quick_and_changes_no_settings():
    code = (
        "import gc, logging, sys\n"
        "before = gc.get_threshold(), logging.root.handlers[:]\n"
        "import jaxarc.cli.tasks\n"
        "assert 'jax' not in sys.modules\n"
        "import jaxarc.utils.visualization\n"
        "assert before == (gc.get_threshold(), logging.root.handlers)\n"
        "assert not {'drawsvg', 'loguru', 'cairosvg', 'IPython'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_task_beyond_the_solver_says_what_to_do():
    done = CliRunner().invoke(app, ["solve", "00d62c1b"])
    assert str(done.exception).startswith(
        "task 00d62c1b of AGI1 has a grid of more than 12 x 12 cells, which is all "
        "that this solver reads: train one for larger grids with `jaxrig arc "
        "train-solver AGI1 --side N`"
    )


def test_a_split_is_solved_by_its_name(tmp_path, monkeypatch):
    """Every task of the split that the solver can read, without asking its networks."""
    asked = []

    def predict(networks, tasks, votes, key, meter):
        asked.append(len(tasks.num_train_pairs))
        return [[()] * int(n) for n in tasks.num_test_pairs]

    monkeypatch.setattr("jaxarc.learning.solver.predict_all", predict)
    for split, count in (("AGI1-train", 220), ("AGI1-eval", 114), ("AGI2-eval", 5)):
        out = tmp_path / f"{split}.json"
        done = CliRunner().invoke(app, ["solve", split, "--out", str(out)])
        assert asked.pop() == count, done.exception
        unseen = "5 of 5 tasks are not in ARC-AGI-1" in " ".join(done.output.split())
        assert unseen == (split == "AGI2-eval")
