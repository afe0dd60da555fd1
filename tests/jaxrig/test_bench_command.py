"""A system's own bench runs its benchmarks, by short names and by long ones."""

import json

import pytest
import typer
from typer.testing import CliRunner

from jaxarc.cli import app as arc
from jaxrig.bench import Benchmark, Measurement
from jaxrig.bench_command import bench_command
from jaxrig.timing import Timing
from jaxtrace.cli import app as trace

MEASURED = [Measurement("fast", Timing(0.1, (1.0,), (1.0,)), 10, "waves", {})]


@pytest.fixture
def run():
    known = [Benchmark(f"sea.{n}", f"about {n}", lambda: MEASURED) for n in "ab"]
    app = typer.Typer()
    app.command()(bench_command("sea", known))
    return lambda *words: CliRunner().invoke(app, list(words))


def test_without_names_all_of_them(run):
    assert run("--list").output == "sea.a: about a\nsea.b: about b\n"


@pytest.mark.parametrize("name", ["b", "sea.b"])
def test_names_with_and_without_the_system(run, name):
    assert run(name, "--list").output == "sea.b: about b\n"


def test_results_are_shown_and_written(run, tmp_path):
    path = tmp_path / "deep" / "b.json"
    done = run("a", "--json", str(path))
    assert "fast: waves" in done.output
    assert f"wrote {path}" in done.output
    (record,) = json.loads(path.read_text())["results"]
    assert (record["benchmark"], record["per_second"]) == ("sea.a", 10.0)


def test_an_unknown_name_is_refused(run):
    done = run("nothing")
    assert done.exit_code == 2
    assert "no benchmark 'sea.nothing'" in done.output


def test_help_says_the_names_and_the_long_way(run):
    text = run("--help").output
    assert "jaxrig bench sea" in text
    assert "Names: a, b" in text


@pytest.mark.parametrize(("app", "name"), [(arc, "arc"), (trace, "trace")])
def test_the_systems_have_it(app, name):
    lines = CliRunner().invoke(app, ["bench", "--list"]).output.splitlines()
    assert lines
    assert all(line.startswith(f"{name}.") for line in lines)
