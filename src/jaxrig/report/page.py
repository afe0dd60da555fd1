"""The page: titled sections, a list of links to them, styles and script, one file."""

import os
import re
import unicodedata
from importlib.resources import files
from itertools import chain, count
from pathlib import Path

from jaxrig.atomic import write_file
from jaxrig.report.parts import Part
from jaxrig.report.text import escape, inline

# Even if markup slipped through, the page could not load or send anything.
POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
)
# Single hyphens only: ids inside drawings hold a double one and cannot meet these.
_ID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<header>
<h1>{title}</h1>
{subtitle}</header>
{links}<main>
{sections}
</main>
<script>
{script}</script>
</body>
</html>
"""


class Section:
    """A titled run of parts; the id, made from the title if absent, is its anchor."""

    def __init__(self, title: str, *parts: Part, id: str | None = None):
        if not isinstance(title, str) or not title.strip():
            raise ValueError(f"title is {title!r}: a section needs a title")
        for index, part in enumerate(parts):
            if not isinstance(part, Part):
                raise TypeError(
                    f"parts[{index}] is of type {type(part).__name__}: "
                    "it must be Text, Heading, Code, Table, Figure, Player or Points"
                )
        if id is not None and not _ID.fullmatch(id):
            raise ValueError(
                f"id is {id!r}: it must be lower-case words joined by single hyphens"
            )
        self.title = title
        self.parts = parts
        self.id = id


class Report:
    """One HTML page that needs no network and no other file.

    >>> from jaxrig.report import Report, Section, Text
    >>> report = Report("Measured rates")
    >>> report.add(Section("Method", Text("Median of five runs of `step`.")))
    >>> "<code>step</code>" in report.html()
    True
    """

    def __init__(self, title: str, subtitle: str = ""):
        if not isinstance(title, str) or not title.strip():
            raise ValueError(f"title is {title!r}: a report needs a title")
        self.title = title
        self.subtitle = subtitle
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
        sections = [
            _section(number, section, ids[number])
            for number, section in enumerate(self._sections)
        ]
        return _PAGE.format(
            policy=POLICY,
            title=escape(self.title),
            subtitle=self.subtitle and f"<p>{inline(self.subtitle)}</p>\n",
            style=_resource("style.css"),
            script=_resource("points.js") + "\n" + _resource("player.js"),
            links=_links(self._sections, ids),
            sections="\n".join(sections),
        )

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the page, whole or not at all; missing folders are created."""
        return write_file(path, self.html())


def _resource(name: str) -> str:
    return (files("jaxrig.report") / name).read_text(encoding="utf-8")


def _section(number: int, section: Section, anchor: str) -> str:
    parts = "\n".join(
        part.html(f"part-{number}-{index}--")
        for index, part in enumerate(section.parts)
    )
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
