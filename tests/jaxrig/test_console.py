"""Lines come out as they are, and warnings as lines."""

import warnings

from rich.console import Console

from jaxrig.console import make_console, say, warnings_as_lines


def test_names_with_brackets_are_not_markup():
    console = Console(record=True, width=40)
    say(console, "wrote [red]a/b[0].vtu")
    assert console.export_text() == "wrote [red]a/b[0].vtu\n"


def test_warnings_are_lines_for_a_while():
    console = Console(record=True)
    with warnings_as_lines(console):
        warnings.warn("too short", stacklevel=1)
    assert console.export_text() == "warning: too short\n"


def test_nobody_watches_a_wide_console():
    assert make_console().width == 120
