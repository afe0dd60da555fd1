"""Oracle: the answer is shown only when asked for, in the terminal and the picture."""

import pytest
from typer.testing import CliRunner

from jaxarc.cli.app import app


def run(*words):
    return CliRunner().invoke(app, ["show", *words])


def test_answers_are_hidden_until_asked_for():
    hidden, shown = run("6d0aefbc").output, run("6d0aefbc", "--answer").output
    assert hidden.count("Output (3x6)") == 4
    assert "?" in hidden
    assert shown.count("Output (3x6)") == 5
    assert "Test 1" in hidden


def test_the_picture_keeps_the_secret_too(tmp_path):
    for name, words in (("h.svg", ()), ("a.svg", ("--answer",))):
        done = run("6d0aefbc", "--svg", str(tmp_path / name), *words)
        assert done.exit_code == 0
        assert f"wrote {tmp_path / name}" in done.output.replace("\n", "")
    assert (tmp_path / "h.svg").read_text().count(">3x6<") == 4
    assert (tmp_path / "a.svg").read_text().count(">3x6<") == 5


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("00d62c1x",), "did you mean 00d62c1b"),
        (("00d62c1b", "--dataset", "nothing"), "data set 'nothing' is not known"),
        (("00d62c1b", "--path", "/none"), "is not a folder"),
    ],
)
def test_wrong_words_are_explained(words, message):
    assert message in str(run(*words).exception)
