"""Every command is there."""

from typer.testing import CliRunner

from acbo.cli.app import app


def test_help_names_every_command():
    text = CliRunner().invoke(app, ["--help"]).output
    commands = ("suggest", "optimize", "problems", "graph", "train", "eval", "bench")
    assert all(f" {word} " in text for word in commands)


def test_benchmarks_are_listed_by_name():
    lines = CliRunner().invoke(app, ["bench", "--list"]).output.splitlines()
    assert [line.split(":")[0] for line in lines] == [
        *("causal.step", "causal.surrogate", "causal.posterior", "causal.grpo")
    ]
