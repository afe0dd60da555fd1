"""Pieces of SVG with a size, set beside and above one another, and saved as files."""

import importlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxrig.atomic import atomic_write
from jaxrig.report.axes import document, label, pixel, text_width

UNIT = 40.0  # pixels per unit of the documented sizes
TEXT_SIZE = 15
LINE_HEIGHT = 22
INK = "#1b1f24"


@dataclass(frozen=True)
class Drawing:
    """A picture in pixels. Text takes the color of the page it is shown on."""

    width: float
    height: float
    body: str
    title: str = "Drawing"

    def as_svg(self, background: str = "") -> str:
        """A whole SVG document; on a background of its own, with dark text."""
        if not background:
            return document(self.width, self.height, self.title, "", [self.body])
        sheet = f'<rect width="100%" height="100%" fill="{background}"/>'
        body = [sheet, self.body]
        text = document(self.width, self.height, self.title, "", body)
        return text.replace('"currentColor"', f'"{INK}"')

    def as_group(self, x: float = 0.0, y: float = 0.0) -> str:
        """The picture as an SVG group, to be part of a larger one."""
        return f'<g transform="translate({pixel(x)} {pixel(y)})">{self.body}</g>'

    def _repr_svg_(self) -> str:
        return self.as_svg()

    def _repr_html_(self) -> str:
        return self.as_svg()


def beside(parts: Sequence[Drawing], gap: float = 0.0, title: str = "") -> Drawing:
    """Pictures in a row, centered on one line."""
    height = max(part.height for part in parts)
    x, body = 0.0, []
    for part in parts:
        body.append(part.as_group(x, (height - part.height) / 2))
        x += part.width + gap
    return Drawing(x - gap, height, "\n".join(body), title or parts[0].title)


def stacked(parts: Sequence[Drawing], gap: float = 0.0, title: str = "") -> Drawing:
    """Pictures in a column, centered on one line."""
    width = max(part.width for part in parts)
    y, body = 0.0, []
    for part in parts:
        body.append(part.as_group((width - part.width) / 2, y))
        y += part.height + gap
    return Drawing(width, y - gap, "\n".join(body), title or parts[0].title)


def padded(part: Drawing, margin: float, below: float = 0.0) -> Drawing:
    """A picture with room around it, and some more below."""
    width, height = part.width + 2 * margin, part.height + 2 * margin + below
    return Drawing(width, height, part.as_group(margin, margin), part.title)


def centered(part: Drawing, width: float, height: float) -> Drawing:
    """A picture in the middle of an area at least as large as itself."""
    width, height = max(width, part.width), max(height, part.height)
    at = (width - part.width) / 2, (height - part.height) / 2
    return Drawing(width, height, part.as_group(*at), part.title)


def words(text: str, bold: bool = False) -> Drawing:
    """A line of text."""
    width = text_width(text, TEXT_SIZE)
    weight = ' font-weight="600"' if bold else ""
    extra = f' font-size="{TEXT_SIZE}"{weight}'
    body = label(width / 2, LINE_HEIGHT / 2, text, "middle", extra)
    return Drawing(width, LINE_HEIGHT, body, text)


def arrow(turn: int = 0) -> Drawing:
    """An arrow to the right, turned clockwise by so many degrees."""
    body = (
        f'<path transform="rotate({turn} 14 14)" d="M2 14h22m-8-8l8 8-8 8" fill="none" '
        'stroke="currentColor" stroke-width="2.5" stroke-opacity="0.7"/>'
    )
    return Drawing(28.0, 28.0, body, "arrow")


def save_svg_drawing(drawing: Drawing, filename: str | os.PathLike[str]) -> Path:
    """Write a picture on white, as svg, png or pdf by the suffix of the name.

    Missing folders are created; png and pdf need the package `cairosvg`.
    """
    path = Path(filename)
    kind = path.suffix.lower()
    if kind not in (".svg", ".png", ".pdf"):
        raise ValueError(f"{path.name!r} ends in {kind!r}: use .svg, .png or .pdf")
    content = drawing.as_svg("#ffffff").encode()
    if kind != ".svg":
        content = _convert(content, kind.removeprefix("."))
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(content)
    return path


def _convert(svg: bytes, kind: str) -> bytes:
    try:
        cairosvg = importlib.import_module("cairosvg")
    except ImportError as error:
        raise ImportError(
            f"{kind} files need cairosvg: pip install cairosvg, or save as .svg"
        ) from error
    return getattr(cairosvg, f"svg2{kind}")(bytestring=svg)
