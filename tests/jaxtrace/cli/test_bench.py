"""The command runs the tracking benchmarks of the front door and no others."""

import pytest
from typer.testing import CliRunner

from jaxrig import cli
from jaxrig.bench import Benchmark
from jaxrig.systems import System
from jaxtrace.cli.app import app


@pytest.fixture
def run(monkeypatch):
    names = ("trace.grid", "trace.mesh", "core.dispatch")
    found = [Benchmark(name, f"about {name}", lambda: []) for name in names]
    systems = [System("all", "All", benchmarks=tuple(found))]
    monkeypatch.setattr(cli, "find_systems", lambda: (systems, {}))
    return lambda *words: CliRunner().invoke(app, ["bench", *words])


def test_without_names_all_of_them(run):
    output = run("--list").output
    assert output == "trace.grid: about trace.grid\ntrace.mesh: about trace.mesh\n"


@pytest.mark.parametrize("name", ["mesh", "trace.mesh"])
def test_names_with_and_without_the_system(run, name):
    assert run(name, "--list").output == "trace.mesh: about trace.mesh\n"


def test_an_unknown_name_is_refused(run):
    done = run("nothing")
    assert done.exit_code == 2
    assert "no benchmark 'trace.nothing'" in done.output
