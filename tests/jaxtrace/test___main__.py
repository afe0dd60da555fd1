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
    path = write_small(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "jaxtrace", "run", str(path)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "particle-steps per second" in done.stdout
    assert (tmp_path / "result" / "report.html").exists()
    wrong = subprocess.run(
        [sys.executable, "-m", "jaxtrace", "run", str(path)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert wrong.returncode == 1
    assert wrong.stderr.startswith("error: ")
    assert "Traceback" not in wrong.stderr
