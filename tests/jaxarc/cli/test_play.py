"""The player as a person uses it: every word, and a sentence for every mistake."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from jaxarc.cli import app
from jaxarc.cli.play import Act, Order, parse_command
from jaxarc.ops.operations import ARCLEOperationType as Op
from jaxarc.recording import load_recording, run_again


def run(*words, lines=""):
    return CliRunner().invoke(app, ["play", *words], input=lines)


@pytest.mark.slow  # compiles a program of its own
def test_mistakes_lose_nothing_and_the_episode_is_saved(tmp_path):
    path = tmp_path / "e.json"
    lines = "flood 4 2 2\nflod 4 3 3\nfill 4 9 9\nsave /dev/null/x\nflood 4 3 3\n"
    done = run("00d62c1b", lines=f"{lines}save {path}\nquit\n")
    assert done.exit_code == 0
    for words in (
        "did you mean 'flood'?",
        "row 9 is outside: rows go from 0 to 5",
        "/dev/null",
        "solved 1 of 5",
        "00d62c1b: 1 of 5 pairs solved, 2 steps",
    ):
        assert words in done.output
    recording = load_recording(path)
    assert run_again(recording, recording.load_task())[-1].similarity == 1.0


@pytest.mark.slow  # compiles a program of its own
def test_a_script_answers_the_test(tmp_path):
    script = tmp_path / "script.txt"
    script.write_text(
        "resize 3 6\ncopy 0 0 2 2\npaste 0 3\nflip h 0 3 2 5  # mirror\nsubmit\n"
    )
    path = tmp_path / "e.json"
    done = run("6d0aefbc", "--test", "--script", str(script), "--save", str(path))
    assert done.exit_code == 0
    assert "Target" not in done.output
    assert "the episode has ended: solved" in done.output
    assert "1 of 1 pair solved, 5 steps" in done.output
    assert load_recording(path).mode == 1


@pytest.mark.slow  # compiles a program of its own
def test_a_wrong_answer_can_be_taken_back():
    output = run("6d0aefbc", "--test", lines="submit\nfill 1\nundo\nundo\n").output
    assert "the episode has ended: not solved" in output
    assert "undo reverts the last step" in output
    assert "there is no step to undo" in output
    assert "0 of 1 pair solved, 0 steps" in output


@pytest.mark.slow  # compiles a program of its own
def test_looking_around_and_moving_between_pairs():
    lines = "help\ndemos\nshow\nrotate cw 0 0 1 2\nnext\nprev\nprev\n"
    output = run("00d62c1b", "--pair", "2", lines=lines).output
    assert "take the last step back" in output
    assert output.count("─ 5 ─") == 2
    assert "nothing changed" in output
    shown = [line[:20] for line in output.splitlines() if line.startswith("demonst")]
    assert shown == [f"demonstration {n} of 5"[:20] for n in (2, 2, 2, 3, 2, 1)]


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


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("fill 3 1 2", Act(Op.FILL_3, (1, 2, 1, 2))),
        ("fill 0 1 2 3 4", Act(Op.FILL_0, (1, 2, 3, 4))),
        ("FILL 9", Act(Op.FILL_9)),
        ("flood 4 5 6", Act(Op.FLOOD_FILL_4, (5, 6, 5, 6))),
        ("move up 0 0 2 2", Act(Op.MOVE_UP, (0, 0, 2, 2))),
        ("move right", Act(Op.MOVE_RIGHT)),
        ("rotate cw", Act(Op.ROTATE_C)),
        ("rotate ccw 0 0 1 1", Act(Op.ROTATE_CC, (0, 0, 1, 1))),
        ("flip h", Act(Op.FLIP_HORIZONTAL)),
        ("flip V 1 1", Act(Op.FLIP_VERTICAL, (1, 1, 1, 1))),
        ("copy 0 0 1 1", Act(Op.COPY, (0, 0, 1, 1))),
        ("cut", Act(Op.CUT)),
        ("clear 2 2", Act(Op.CLEAR, (2, 2, 2, 2))),
        ("paste 1 3", Act(Op.PASTE, (1, 3, 1, 3))),
        ("input", Act(Op.COPY_INPUT)),
        ("resize 3 4", Act(Op.RESIZE, (0, 0, 2, 3))),
        ("submit # at last", Act(Op.SUBMIT)),
        ("reset", Act(Op.RESET_CURRENT_PAIR)),
        ("next", Act(Op.SWITCH_TO_NEXT_DEMO_PAIR)),
        ("prev", Act(Op.SWITCH_TO_PREV_DEMO_PAIR)),
        ("unsolved", Act(Op.SWITCH_TO_FIRST_UNSOLVED_DEMO)),
        ("24 0 0 2 2", Act(Op.ROTATE_C, (0, 0, 2, 2))),
        ("op 34", Act(Op.SUBMIT)),
        ("save my file.json", Order("save", "my file.json")),
        ("undo", Order("undo")),
        ("?", Order("help")),
        ("q", Order("quit")),
        ("", None),
        ("  # nothing", None),
    ],
)
def test_lines_and_what_they_ask_for(line, command):
    assert parse_command(line) == command
    # In test mode pairs are tests.
    assert parse_command("next", True) == Act(Op.SWITCH_TO_NEXT_TEST_PAIR)
    assert parse_command("prev", True) == Act(Op.SWITCH_TO_PREV_TEST_PAIR)
    assert parse_command("unsolved", True) == Act(Op.SWITCH_TO_FIRST_UNSOLVED_TEST)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("fil 3", "'fil' is not a command: did you mean 'fill'?"),
        ("xyzzy", "'xyzzy' is not a command: no name is similar"),
        ("fill", "fill needs one of: 0, 1, 2"),
        ("fill 10 0 0", "fill needs one of: 0, 1, 2"),
        ("fill 3 0", "a row and a column, or two corners, not '0'"),
        ("fill 3 a b", "not 'a b'"),
        ("flood 3", "flood takes two numbers: a row and a column"),
        ("flood 3 0 0 1 1", "flood takes two numbers"),
        ("move", "move needs one of: up, down, left, right"),
        ("rotate left", "rotate needs one of: cw, ccw"),
        ("paste", "paste takes two numbers"),
        ("resize 3", "resize takes two numbers"),
        ("resize 0 3", "of at least 1"),
        ("resize 3 x", "resize takes two numbers"),
        ("42", "unknown operation 42: operations are 0 to 41"),
        ("²", "'²' is not a command"),
        ("op", "op needs a number"),
        ("submit now", "submit takes nothing after it"),
        ("next 2", "next takes nothing after it"),
        ("undo 2", "undo takes nothing after it"),
        ("save", "save needs a file"),
    ],
)
def test_mistakes_are_explained(line, message):
    with pytest.raises(ValueError, match=r"^[^\n]+$") as caught:
        parse_command(line)
    assert message in str(caught.value)


@given(st.text("fil opsavexunder 0123456789²-#", max_size=20))
def test_any_line_is_understood_or_explained(line):
    with contextlib.suppress(ValueError):
        command = parse_command(line)
        assert command is None or isinstance(command, Act | Order)
