"""The self-test says which trial is wrong, and ends with an error if one is."""

import pytest
from typer.testing import CliRunner

from jaxtrace.cli import selftest
from jaxtrace.cli.app import app
from jaxtrace.workflow.trial import Trial


@pytest.mark.parametrize(("error", "code", "word"), [(0.5, 0, "ok"), (2.0, 1, "WRONG")])
def test_trials_are_judged(monkeypatch, error, code, word):
    monkeypatch.setattr(selftest, "TRIALS", (Trial("one", 1.0, lambda: error),))
    done = CliRunner().invoke(app, ["test"])
    assert done.exit_code == code
    assert done.output.startswith(word)
