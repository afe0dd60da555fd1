"""The player as a person uses it: lines in, grids and sentences out."""

import pytest
from typer.testing import CliRunner

from jaxarc.cli.app import app
from jaxarc.recording import load_recording, run_again

pytestmark = pytest.mark.slow  # many programs to compile

SOLUTION = "flood 4 2 2\nflood 4 3 3\n"


def run(*words, lines=""):
    return CliRunner().invoke(app, ["play", *words], input=lines)


def test_a_demonstration_is_solved_and_saved(tmp_path):
    path = tmp_path / "e.json"
    done = run("00d62c1b", lines=f"{SOLUTION}save {path}\nquit\n")
    assert done.exit_code == 0
    assert "solved 1 of 5" in done.output
    assert "00d62c1b: 1 of 5 pairs solved, 2 steps" in done.output
    recording = load_recording(path)
    frames = run_again(recording, recording.load_task())
    assert frames[-1].similarity == 1.0


def test_mistakes_lose_nothing():
    lines = "flood 4 2 2\nflod 4 3 3\nfill 4 9 9\nsave /dev/null/x\nflood 4 3 3\n"
    output = run("00d62c1b", lines=lines).output
    assert "did you mean flood?" in output
    assert "row 9 is outside: rows go from 0 to 5" in output
    assert "/dev/null" in output
    assert "1 of 5 pairs solved, 2 steps" in output


def test_a_script_answers_the_test(tmp_path):
    script = tmp_path / "script.txt"
    script.write_text(
        "resize 3 6\ncopy 0 0 2 2\npaste 0 3\nflip h 0 3 2 5  # mirror\nsubmit\n"
    )
    path = tmp_path / "e.json"
    done = run("6d0aefbc", "--test", "--script", str(script), "--save", str(path))
    assert done.exit_code == 0
    assert "Target" not in done.output
    assert "the episode is over: solved" in done.output
    assert "1 of 1 pairs solved, 5 steps" in done.output
    assert load_recording(path).mode == 1


def test_a_wrong_answer_can_be_taken_back():
    output = run("6d0aefbc", "--test", lines="submit\nfill 1\nundo\nundo\n").output
    assert "the episode is over: not solved" in output
    assert "take a step back with undo" in output
    assert "there is no step to undo" in output
    assert "0 of 1 pairs solved, 0 steps" in output


def test_looking_around_takes_no_step():
    output = run("00d62c1b", lines="help\ndemos\nshow\nrotate cw 0 0 1 2\n").output
    assert "take the last step back" in output
    assert output.count("─ 5 ─") == 2
    assert "nothing changed" in output
    assert "1 step," in output


def test_moving_between_pairs():
    output = run("00d62c1b", "--pair", "2", lines="next\nprev\nprev\n").output
    where = [f"demonstration {n} of 5" for n in (2, 3, 2, 1)]
    shown = [line[:20] for line in output.splitlines() if line.startswith("demonst")]
    assert shown == [text[:20] for text in where]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("00d62c1b", "--pair", "6"), "00d62c1b has 5 demonstrations"),
        (("00d62c1b", "--script", "none.txt"), "does not exist"),
        (("00d62c1b", "--save", "/"), "/ is a folder, not a file"),
    ],
)
def test_wrong_options_are_explained(words, message):
    done = run(*words)
    assert done.exit_code == 2
    assert message in " ".join(done.output.replace("│", "").split())


def test_an_unknown_task_suggests_another():
    done = run("00d62c1x")
    assert isinstance(done.exception, ValueError)
    assert "did you mean 00d62c1b" in str(done.exception)
