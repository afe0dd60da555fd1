"""The page: titled sections, a list of links to them, styles and script, one file; and
what a section holds, checked when made.
"""

import os
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import chain, count
from pathlib import Path
from typing import TypeAlias

import numpy as np

from jaxrig.atomic import write_file
from jaxrig.machine import describe_machine, package_versions
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


def machine_table() -> Table:
    """Tabulate the machine and the versions of this run."""
    facts = describe_machine()
    facts["memory"] = f"{facts.pop('memory_bytes') / 2**30:.1f} GiB"
    facts |= package_versions()
    rows = [
        (name, ", ".join(value) if isinstance(value, list) else str(value))
        for name, value in facts.items()
    ]
    return Table(("what", "value"), rows, caption="Machine and versions")


def _details(title: str, inside: str) -> str:
    return f"<details><summary>{inline(title)}</summary>\n{inside}\n</details>"


# A figure in words: a percentage, an estimate with its deviation.
_FIGURE = re.compile(r"[-\u2212]?\d[\d.,]*(e[+-]?\d+)?( ?%| ± [\d.,e+-]+)?")


def _is_number(value: Cell) -> bool:
    if isinstance(value, str):
        return _FIGURE.fullmatch(value) is not None
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


# Even if markup slipped through, the page could not load or send anything.
POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
)
_ID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="icon" href="{icon}">
<style>
{style}</style>
</head>
<body{kind}>
{header}
{links}<main>
{sections}
</main>
<script>
{script}</script>
</body>
</html>
"""

# Three particles and their trails.
_ICON = (
    "data:image/svg+xml,"
    "%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E"
    "%3Cg fill='none' stroke-width='2' stroke-linecap='round'%3E"
    "%3Cpath d='M2 5q5-4 10 0' stroke='%23d55e00'/%3E"
    "%3Cpath d='M3 9q4-3 9 0' stroke='%238d5fd0'/%3E"
    "%3Cpath d='M4 13q3-2 8 0' stroke='%230077bb'/%3E%3C/g%3E%3C/svg%3E"
)


class Section:
    """A titled run of parts; the id, made from the title if absent, is its anchor.

    A `hero` is a part that may open the whole page.
    """

    def __init__(
        self, title: str, *parts: Part, id: str | None = None, hero: Part | None = None
    ):
        if not isinstance(title, str) or not title.strip():
            raise ValueError(f"title is {title!r}: a section needs a title")
        if id is not None and not _ID.fullmatch(id):
            raise ValueError(
                f"id is {id!r}: it must be lower-case words joined by single hyphens"
            )
        self.title = title
        self.parts = check_parts(parts)
        self.id = id
        self.hero = hero


class Report:
    """One HTML page that needs no network and no other file.

    The first hero of its sections opens it, over the whole width. A `compact` one
    shows no header: it stands in a frame that has a title.

    >>> from jaxrig.report import Report, Section, Text
    >>> report = Report("Measured rates")
    >>> report.add(Section("Method", Text("Median of five runs of `step`.")))
    >>> "<code>step</code>" in report.html()
    True
    """

    def __init__(self, title: str, subtitle: str = "", compact: bool = False):
        if not isinstance(title, str) or not title.strip():
            raise ValueError(f"title is {title!r}: a report needs a title")
        self.title = title
        self.subtitle = subtitle
        self.compact = compact
        self._sections: list[Section] = []

    def add(self, section: Section) -> None:
        """Append a section."""
        if not isinstance(section, Section):
            raise TypeError(f"section is {section!r}: it must be a Section")
        taken = [other.id for other in self._sections if other.id]
        if section.id in taken:
            raise ValueError(f"id is {section.id!r}: another section has it already")
        self._sections.append(section)

    def html(self) -> str:
        """Return the page as text; the same sections give the same text."""
        ids = _anchors(self._sections)
        pairs = zip(self._sections, ids, strict=True)
        return _PAGE.format(
            policy=POLICY,
            title=escape(self.title),
            icon=_ICON,
            kind=' class="compact"' * self.compact,
            header=self._header(),
            style=_resource("style.css"),
            script=_resource("points.js") + "\n" + _resource("player.js"),
            links=_links(self._sections, ids),
            sections="\n".join(_section(section, anchor) for section, anchor in pairs),
        )

    def _header(self) -> str:
        words = f"<h1>{escape(self.title)}</h1>\n"
        if self.subtitle:
            words += f"<p>{inline(self.subtitle)}</p>\n"
        heroes = [section.hero for section in self._sections if section.hero]
        if not heroes:
            return f"<header>\n{words}</header>"
        shown = heroes[0].html()
        return f'<header class="hero">\n<div>\n{words}</div>\n{shown}\n</header>'

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the page, whole or not at all; missing folders are created."""
        return write_file(path, self.html())


def _resource(name: str) -> str:
    return (files("jaxrig.report") / name).read_text(encoding="utf-8")


def _section(section: Section, anchor: str) -> str:
    parts = "\n".join(part.html() for part in section.parts)
    title = escape(section.title)
    return f'<section id="{anchor}">\n<h2>{title}</h2>\n{parts}\n</section>'


def _links(sections: list[Section], ids: list[str]) -> str:
    if len(sections) < 2:
        return ""
    items = "\n".join(
        f'<li><a href="#{anchor}">{escape(section.title)}</a></li>'
        for section, anchor in zip(sections, ids, strict=True)
    )
    return f'<nav aria-label="Sections">\n<ul>\n{items}\n</ul>\n</nav>\n'


def _anchors(sections: list[Section]) -> list[str]:
    taken = {section.id for section in sections if section.id}
    anchors = []
    for section in sections:
        slug = _slug(section.title)
        numbered = chain([slug], (f"{slug}-{number}" for number in count(2)))
        anchor = section.id or next(name for name in numbered if name not in taken)
        taken.add(anchor)
        anchors.append(anchor)
    return anchors


def _slug(title: str) -> str:
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    words = re.findall(r"[a-z0-9]+", plain.lower())
    slug = "-".join(words)
    return slug if _ID.fullmatch(slug) else f"section-{slug}".rstrip("-")
