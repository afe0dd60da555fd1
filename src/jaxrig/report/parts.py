"""What a section holds: text, code, tables, pictures and players, checked when made."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from jaxrig.report.images import Image, image_size, picture
from jaxrig.report.players import ColorBar, Player, Points
from jaxrig.report.text import (
    Number,
    escape,
    format_number,
    inline,
    paragraphs,
)

LONG_TABLE = 8  # rows; a longer table opens on demand

Cell: TypeAlias = str | bool | Number | np.bool_ | None


@dataclass(frozen=True)
class _Words:
    text: str

    def __post_init__(self):
        if not self.text.strip():
            raise ValueError(f"text is {self.text!r}: it must not be empty")


class Text(_Words):
    """Paragraphs, split at blank lines; words in `backticks` are set as code."""

    def html(self) -> str:
        """Return the markup."""
        return paragraphs(self.text)


class Heading(_Words):
    """A line that names what follows, below the title of the section."""

    def html(self) -> str:
        """Return the markup."""
        return f"<h3>{escape(self.text)}</h3>"


class Code(_Words):
    """Lines set as they are: a message, a command, a program."""

    def html(self) -> str:
        """Return the markup."""
        return f'<pre tabindex="0"><code>{escape(self.text)}</code></pre>'


@dataclass(frozen=True)
class Table:
    """Rows under named columns; numbers are rounded for reading and right-aligned."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""

    def __post_init__(self):
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "rows", tuple(tuple(row) for row in self.rows))
        if not self.columns:
            raise ValueError("columns is empty: a table needs at least one column")
        for index, row in enumerate(self.rows):
            self._check_row(index, row)

    def html(self) -> str:
        """Return the markup."""
        heads = "".join(
            f'<th scope="col"{_align(self._is_numeric(index))}>{escape(column)}</th>'
            for index, column in enumerate(self.columns)
        )
        rows = "\n".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in self.rows)
        caption = f"<caption>{inline(self.caption)}</caption>" if self.caption else ""
        name = escape(self.caption or "Table")
        table = (
            f'<div class="table-box" role="region" aria-label="{name}" tabindex="0">'
            f"<table>{caption}\n<thead><tr>{heads}</tr></thead>\n"
            f"<tbody>\n{rows}\n</tbody></table></div>"
        )
        if len(self.rows) <= LONG_TABLE:
            return table
        return _details(f"{self.caption or 'Table'} ({len(self.rows):,} rows)", table)

    def _check_row(self, index: int, row: Sequence[Cell]) -> None:
        if len(row) != len(self.columns):
            raise ValueError(
                f"rows[{index}] has {len(row)} cells: it must have one for each of "
                f"the {len(self.columns)} columns"
            )
        for column, value in zip(self.columns, row, strict=True):
            if not isinstance(value, Cell):
                raise TypeError(
                    f"rows[{index}] has {value!r} under {column!r}: a cell is a "
                    "string, number, bool or None; convert with float() or str()"
                )

    def _is_numeric(self, index: int) -> bool:
        values = [row[index] for row in self.rows if row[index] is not None]
        return bool(values) and all(map(_is_number, values))


@dataclass(frozen=True)
class Figure:
    """One SVG text or the bytes of one PNG, with a caption below.

    `currentColor` of a drawing follows the light or dark theme of the page.
    """

    image: Image
    caption: str = ""
    alt: str = ""

    def __post_init__(self):
        image_size(self.image, "image")

    def html(self) -> str:
        """Return the markup."""
        caption = self.caption and f"<figcaption>{inline(self.caption)}</figcaption>"
        shown = picture(self.image, self.alt or self.caption)
        return f"<figure>{shown}{caption}</figure>"


class _Group:
    """Parts that stand together."""

    parts: tuple["Part", ...]

    def _inside(self) -> str:
        return "\n".join(part.html() for part in self.parts)


class Fold(_Group):
    """Parts behind a line that opens them."""

    def __init__(self, title: str, *parts: "Part"):
        self.title, self.parts = title, check_parts(parts)

    def html(self) -> str:
        """Return the markup."""
        return _details(self.title, self._inside())


class Beside(_Group):
    """A picture, and on wide screens beside it, else below it, what belongs to it."""

    def __init__(self, picture: "Part", *parts: "Part"):
        self.picture, self.parts = check_parts([picture])[0], check_parts(parts)

    def html(self) -> str:
        """Return the markup."""
        shown = self.picture.html()
        words = self._inside()
        return f'<div class="beside"><div>{shown}</div><div>{words}</div></div>'


Part: TypeAlias = (
    Text | Heading | Code | Table | Figure | Player | Points | ColorBar | Fold | Beside
)


def check_parts(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Return the parts, or raise for the first that is none."""
    for index, part in enumerate(parts):
        if not isinstance(part, Part):
            raise TypeError(
                f"parts[{index}] is of type {type(part).__name__}: it must be Text, "
                "Heading, Code, Table, Figure, Player, Points, ColorBar, Fold or Beside"
            )
    return tuple(parts)


def _details(title: str, inside: str) -> str:
    return f"<details><summary>{inline(title)}</summary>\n{inside}\n</details>"


def _is_number(value: Cell) -> bool:
    return isinstance(value, Number) and not isinstance(value, bool)


def _align(numeric: bool) -> str:
    return ' class="number"' if numeric else ""


def _cell(value: Cell) -> str:
    if value is None or isinstance(value, str):
        words = escape(value or "")
    elif isinstance(value, bool | np.bool_):
        words = "yes" if value else "no"
    else:
        words = format_number(value)
    return f"<td{_align(_is_number(value))}>{words}</td>"
