"""What commands write to: a console, lines as they are, and warnings as lines."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

WIDE = 120  # columns when the output is a file or a pipe: nothing is cut off


def make_console() -> Console:
    """The console to show things on, wide when nobody watches."""
    return Console(width=None if sys.stdout.isatty() else WIDE)


def say(console: Console, line: str) -> None:
    """One line as it is: names of files hold brackets and colons."""
    console.print(line, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def warnings_as_lines(console: Console) -> Iterator[None]:
    """Show warnings of a block as lines, without the place in the code."""

    def show(message: Warning | str, *details: object, **more: object) -> None:
        say(console, f"warning: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = show
        yield
