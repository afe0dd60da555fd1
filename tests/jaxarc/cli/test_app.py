"""Every command explains itself."""

import pytest
from typer.testing import CliRunner

from jaxarc.cli import app

COMMANDS = (
    *("list", "show", "play", "rollout", "train", "eval"),
    *("replay", "download", "bench"),
)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command(command):
    done = CliRunner().invoke(app, [command, "--help"])
    assert done.exit_code == 0
    assert "Usage" in done.output


def test_without_words_there_is_help():
    output = CliRunner().invoke(app, []).output
    assert all(command in output for command in COMMANDS)
