"""Every command that README and docs show is one that the programs accept."""

import importlib
import inspect
import json
import re
import shlex
import sys
from pathlib import Path

import pytest
from typer.core import TyperCommand

from jaxrig.cli import main

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
SHELL = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`((?:\.venv/bin/)?(?:jaxrig |python benchmarks/)[^`\n]*)`")
# Quick enough to run for real; the others are parsed, and run in tests of their own.
QUICK = {("arc", "list"), ("arc", "show"), ("trace", "new"), ("causal", "problems")}
PLUGIN = "waves"  # the system that docs/howto/system.md writes


def shown(page: Path) -> list[tuple[str, bool]]:
    """Return the commands of a page, and whether each stands in a block."""
    text = page.read_text()
    blocks = "".join(SHELL.findall(text)).replace("\\\n", " ")
    lines = [line.split(" && ") for line in blocks.splitlines()]
    commands = [(command, True) for line in lines for command in line]
    commands += [(command, False) for command in INLINE.findall(text)]
    words = [(" ".join(shlex.split(c, comments=True)), whole) for c, whole in commands]
    return list(dict.fromkeys(words))


COMMANDS = [
    pytest.param(command, whole, id=f"{page.stem}: {command}")
    for page in PAGES
    for command, whole in shown(page)
    if command
]


class Parsed(Exception):
    """Raised instead of running a command whose words were understood."""


def parse_only(command, context):
    raise Parsed


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Change to a folder with the files that the commands name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    for name in ("data.csv", "log.yaml", "episode.json", "case_1.vtu"):
        Path(name).touch()
    for name in ("MiniARC", "mytasks", "runs/mini", "runs/answer0", "run.zarr"):
        Path(name).mkdir(parents=True)
    pair = {"input": [[1, 0]], "output": [[2, 0]]}
    task = json.dumps({"train": [pair], "test": [pair]})
    for number in range(3):  # as on the page, which also registers a subset of them
        Path(f"mytasks/paint{number}.json").write_text(task)
    return tmp_path


@pytest.mark.parametrize(("command", "whole"), COMMANDS)
def test_shown_commands_are_accepted(command, whole, folder, monkeypatch, capsys):
    program, *words = shlex.split(command.removeprefix(".venv/bin/"))
    if program == "jaxrig":
        accept_jaxrig(words, whole, monkeypatch, capsys)
    elif program == "make":
        assert re.search(rf"^{words[0]}:", (ROOT / "Makefile").read_text(), re.M)
    elif program == "python" and words[0].startswith("benchmarks/"):
        source = (ROOT / words[0]).read_text()
        assert all(word in source for word in words if word.startswith("--"))
    elif program == "python" and words[:2] == ["-m", "pytest"]:
        assert all((ROOT / word).exists() for word in words[2:] if word[0] != "-")
    else:
        assert program in PROGRAMS, "say here how the test knows that it works"


PROGRAMS = {"python3", "pip", "uv", "ruff", "pyright", "sbatch", "srun", "python"}


def accept_jaxrig(words, whole, monkeypatch, capsys):
    """Run the command line up to the command itself; quick commands run too."""
    if any(re.fullmatch("[A-Z]+", word) for word in words):
        words = words[: [bool(re.fullmatch("[A-Z]+", w)) for w in words].index(True)]
        whole = False
    if PLUGIN in words:
        return
    monkeypatch.setattr(sys, "argv", ["jaxrig", "--no-cache", *words])
    needs_files = words[:2] == ["trace", "new"] and len(words) > 3
    if needs_files or tuple(words[:2]) not in QUICK:
        monkeypatch.setattr(TyperCommand, "invoke", parse_only)
    with pytest.raises((Parsed, SystemExit)) as end:
        main()
    said = " ".join(capsys.readouterr().err.replace("│", " ").split())
    missing = "Missing argument" in said or "Missing option" in said
    ran = end.type is Parsed or not getattr(end.value, "code", None)
    assert ran or (missing and not whole), said


@pytest.mark.parametrize("module", ["jaxarc.cli", "acbo.cli"])
def test_the_list_of_commands_says_what_each_command_says_of_itself(module):
    for place, summary in importlib.import_module(module).COMMANDS.values():
        where, _, name = place.partition(":")
        said = inspect.getdoc(getattr(importlib.import_module(where), name)) or ""
        assert " ".join(said.split("\n\n")[0].split()) == summary
