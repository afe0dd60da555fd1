"""A case from the command line: run, refuse, stop, go on."""

import pytest
from typer.testing import CliRunner

from jaxtrace.cli import run as command
from jaxtrace.cli.app import app
from trace_cases import SMALL, write_small

BARE = (
    SMALL
    + """
formats = []
reports = false
page = false

[density]
methods = []

[pictures]
which = []
"""
)


@pytest.fixture
def call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_small(tmp_path, BARE)
    return lambda *words: CliRunner().invoke(app, list(words))


def test_run_and_resume(call):
    done = call("run", "case.toml")
    assert done.exit_code == 0, done.output
    assert "12 particles, 41 frames" in done.output
    assert "particle-steps per second" in done.output
    again = call("resume", "result")
    assert "all frames were there already" in again.output
    assert call("run", "case.toml", "--resume").exit_code == 0
    assert call("run", "case.toml", "--overwrite").exit_code == 0


def test_a_second_run_is_refused(call):
    call("run", "case.toml")
    refused = call("run", "case.toml")
    assert refused.exit_code == 1
    assert isinstance(refused.exception, FileExistsError)
    assert "--resume" in str(refused.exception)


def test_an_interrupt_says_how_to_go_on(call, monkeypatch, tmp_path):
    def interrupted(*given, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "run_case", interrupted)
    early = call("run", "case.toml")
    assert early.exit_code == 130
    assert early.output == "stopped\n"
    monkeypatch.undo()
    call("run", str(tmp_path / "case.toml"))
    monkeypatch.setattr(command, "run_case", interrupted)
    stopped = call("run", str(tmp_path / "case.toml"), "--overwrite")
    assert "go on with: jaxrig trace resume" in stopped.output


def test_a_wrong_case_is_an_error_that_names_it(call, tmp_path):
    write_small(tmp_path, BARE.replace("which", "wich"))
    wrong = call("run", "case.toml")
    assert wrong.exit_code == 1
    assert "did you mean 'which'" in str(wrong.exception)
