"""The help names every command."""

from typer.testing import CliRunner

from jaxtrace.cli.app import app


def test_the_help_names_every_command():
    text = CliRunner().invoke(app, ["--help"]).output
    for word in ("run", "resume", "new", "info", "convert", "ftle", "bench", "test"):
        assert f" {word} " in text
