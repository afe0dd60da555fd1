"""`python -m jaxtrace` is `jaxrig trace`, run as a user would run it."""

import subprocess
import sys

import pytest

import jaxtrace.__main__ as module
from trace_cases import write_small


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["info", "x"], ["jaxrig", "trace", "info", "x"]),
        (["--version"], ["jaxrig", "--version"]),
        ([], ["jaxrig", "trace"]),
    ],
)
def test_arguments_go_to_the_front_door(monkeypatch, given, expected):
    seen = []
    monkeypatch.setattr(module, "front_door", lambda: seen.append(list(sys.argv)))
    monkeypatch.setattr(sys, "argv", ["python -m jaxtrace", *given])
    module.main()
    assert seen == [expected]


@pytest.mark.slow
def test_a_whole_run_in_a_process_of_its_own(tmp_path):
    def run(path):
        command = [sys.executable, "-m", "jaxtrace", "run", str(path)]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)

    done = run(write_small(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "particle-steps per second" in done.stdout
    assert (tmp_path / "result" / "report.html").exists()
    wrong = run(tmp_path / "missing.toml")
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("error: ")
    assert "Traceback" not in wrong.stderr
