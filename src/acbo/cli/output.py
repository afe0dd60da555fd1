"""What the commands share in what they show: tables, JSON, and files."""

import json as json_text
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from acbo.pictures.files import save_svg
from jaxrig.console import say


def make_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    left: int = 1,
    title: str = "",
) -> Table:
    """Cells as they are under named columns; all but the first `left` to the right."""
    table = Table(box=box.SIMPLE, title=title or None, title_justify="left")
    for place, column in enumerate(columns):
        side = "left" if place < left else "right"
        table.add_column(column, justify=side, overflow="fold")
    for row in rows:
        table.add_row(*map(_plain, row))
    return table


def _plain(text: str) -> str:
    """Names may hold brackets, which are no markup."""
    return text.replace("[", "\\[")


def show_json(console: Console, content: Any) -> None:
    """A value as JSON on the console, whole lines."""
    text = json_text.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    say(console, text)


def write_pictures(console: Console, folder: Path, pictures: dict[str, str]) -> None:
    """Drawings by name into a folder, saying where each is."""
    for name, svg in pictures.items():
        say(console, f"wrote {save_svg(folder / f'{name}.svg', svg)}")


def signed(value: float) -> str:
    """A number for people, in few digits."""
    return f"{value:.4g}"


def percent(value: float) -> str:
    """A probability as a percentage."""
    return f"{value:.0%}"
