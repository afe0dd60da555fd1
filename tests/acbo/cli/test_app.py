"""Every command is there."""

import importlib
import inspect

from acbo.cli.app import COMMANDS


def test_the_list_of_commands_says_what_each_command_says_of_itself():
    for entry in COMMANDS.values():
        function = getattr(importlib.import_module(entry.module), entry.function)
        said = inspect.getdoc(function) or ""
        assert " ".join(said.split("\n\n")[0].split()) == entry.summary
