"""The command runs the ARC benchmarks of the front door and no others."""

import pytest
from typer.testing import CliRunner

from jaxarc.cli.app import app
from jaxrig import cli
from jaxrig.bench import Benchmark
from jaxrig.systems import System


@pytest.fixture
def run(monkeypatch):
    names = ("arc.scan", "arc.step", "core.dispatch")
    found = [Benchmark(name, f"about {name}", lambda: []) for name in names]
    systems = [System("all", "All", benchmarks=tuple(found))]
    monkeypatch.setattr(cli, "find_systems", lambda: (systems, {}))
    return lambda *words: CliRunner().invoke(app, ["bench", *words])


def test_without_names_all_of_arc(run):
    output = run("--list").output
    assert output == "arc.scan: about arc.scan\narc.step: about arc.step\n"


@pytest.mark.parametrize("name", ["step", "arc.step"])
def test_names_with_and_without_the_system(run, name):
    assert run(name, "--list").output == "arc.step: about arc.step\n"


def test_an_unknown_name_is_refused(run):
    done = run("nothing")
    assert done.exit_code == 2
    assert "no benchmark 'arc.nothing'" in done.output
