"""PNG and SVG images: made, checked, and shown as elements of a page."""

import base64
import re
import struct
import xml.etree.ElementTree as ElementTree
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import quote

import numpy as np

from jaxrig.report.text import escape

SIGNATURE = b"\x89PNG\r\n\x1a\n"
COLOR_TYPE = {1: 0, 3: 2, 4: 6}  # channels -> PNG color type: gray, RGB, RGBA


def png_from_array(pixels: np.ndarray) -> bytes:
    """Encode uint8 pixels as PNG: (height, width), or with 3 or 4 channels last.

    The fourth channel is opacity: what is not opaque shows the page behind it.
    """
    if pixels.dtype != np.uint8:
        raise TypeError(
            f"pixels has dtype {pixels.dtype}: it must be uint8; "
            "scale to 0..255 and use .astype(np.uint8)"
        )
    channels = 1 if pixels.ndim == 2 else pixels.shape[-1]
    if pixels.ndim not in (2, 3) or (pixels.ndim == 3 and channels not in (3, 4)):
        raise ValueError(
            f"pixels has shape {pixels.shape}: it must be (height, width) "
            "or (height, width, 3 or 4)"
        )
    if pixels.size == 0:
        raise ValueError(f"pixels has shape {pixels.shape}: it must not be empty")
    height, width = pixels.shape[:2]
    rows = np.ascontiguousarray(pixels).reshape(height, -1)
    unfiltered = np.pad(rows, ((0, 0), (1, 0)))  # each row starts with filter type 0
    header = struct.pack(">IIBBBBB", width, height, 8, COLOR_TYPE[channels], 0, 0, 0)
    return SIGNATURE + b"".join(
        (
            _chunk(b"IHDR", header),
            _chunk(b"IDAT", zlib.compress(unfiltered.tobytes(), 9)),
            _chunk(b"IEND", b""),
        )
    )


def png_size(png: bytes, field: str = "png") -> tuple[int, int]:
    """Return width and height of a PNG; ValueError where it is not a whole one."""
    if not png.startswith(SIGNATURE):
        raise ValueError(
            f"{field} starts with {png[:8]!r}: bytes must be a PNG image; "
            "png_from_array encodes an array"
        )
    if png[12:16] != b"IHDR" or not png.endswith(_chunk(b"IEND", b"")):
        raise ValueError(
            f"{field} is {len(png)} bytes: a whole PNG runs from IHDR to IEND"
        )
    width, height = struct.unpack(">II", png[16:24])
    if width == 0 or height == 0:
        raise ValueError(f"{field} is {width} x {height} pixels: both must be positive")
    return width, height


def _chunk(kind: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(kind + content)
    return (
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)
    )


SVG = "http://www.w3.org/2000/svg"
DEFAULT_SIZE = (300.0, 150.0)  # what browsers give a drawing without a size
UNITS = {None: 1.0, "px": 1.0, "pt": 4 / 3}  # in CSS pixels

_OPENING = re.compile(r"""<svg\b(?:[^>"']|"[^"]*"|'[^']*')*>""")
_LENGTH = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*(px|pt)?\s*")
# Words follow the light or dark page; colors are lifted on a dark one to be seen.
_THEME = (
    "<style>:root{color:#1b1f24}@media(prefers-color-scheme:dark)"
    "{:root{color:#e4e7eb}[data-series],[data-band],[data-bar],[data-edge]"
    "{filter:brightness(1.35)}}</style>"
)


@dataclass(frozen=True)
class Drawing:
    """A well-formed SVG: its text from `<svg` on, and the attributes of its root."""

    text: str
    attributes: Mapping[str, str]

    @property
    def themed(self) -> bool:
        """Whether it draws with `currentColor`, to follow the light or dark page."""
        return "currentcolor" in self.text.lower()

    def uri(self) -> str:
        """Return the drawing as the address of an image.

        Browsers run no script and fetch nothing inside of an image, and its ids and
        style rules do not reach the page.
        """
        opening = _OPENING.match(self.text)
        end = opening.end() if opening else 0
        theme = self.themed and "color" not in self.attributes
        style = _THEME if theme and self.text[end - 2] != "/" else ""
        added = "" if "xmlns=" in self.text[:end] else f' xmlns="{SVG}"'
        if "font-family" not in self.attributes:  # an image inherits no font
            added += ' font-family="system-ui, sans-serif"'
        whole = f"<svg{added}{self.text[4:end]}{style}{self.text[end:]}"
        return f"data:image/svg+xml,{quote(whole, safe=_PLAIN)}"

    def size(self) -> tuple[float, float]:
        """Return width and height in CSS pixels, from its lengths or its view box."""
        width, height = (self.attributes.get(side, "") for side in ("width", "height"))
        x, y = _LENGTH.fullmatch(width), _LENGTH.fullmatch(height)
        if x and y:
            return float(x[1]) * UNITS[x[2]], float(y[1]) * UNITS[y[2]]
        box = re.split(r"[\s,]+", self.attributes.get("viewBox", "").strip())
        if len(box) == 4 and all(_LENGTH.fullmatch(side) for side in box[2:]):
            return float(box[2]), float(box[3])
        return DEFAULT_SIZE


_PLAIN = " !$'()*+,-./:;=?@[]^_`{|}~"  # stands for itself in an address and in HTML


def parse_drawing(svg: str, field: str = "svg") -> Drawing:
    """Check an SVG text; the ValueError names the field, the value and the rule."""
    if "<!ENTITY" in svg:  # a few of them can make gigabytes of text
        raise ValueError(f"{field} declares an XML entity: write the content out")
    try:
        root = ElementTree.fromstring(svg)
    except (ElementTree.ParseError, UnicodeEncodeError) as error:
        raise ValueError(
            f"{field} is {svg[:40]!r}: it must be well-formed SVG; {error}"
        ) from error
    opening = _OPENING.search(svg)
    if root.tag not in ("svg", f"{{{SVG}}}svg") or opening is None:
        raise ValueError(f"{field} has the root <{root.tag}>: it must be <svg>")
    return Drawing(svg[opening.start() :], root.attrib)


Image: TypeAlias = str | bytes

# A drawing shrinks to this share at most, so that its words stay legible; where there
# is less room it scrolls in its own box.
LEAST_SHARE = 0.6
TELEPHONE = 358  # pixels that a narrow window leaves for a drawing
# Images of few pixels, such as grids of cells, are enlarged to about this size.
ENLARGED_PIXELS = 320


def image_size(image: Image, field: str) -> tuple[float, float]:
    """Return width and height in pixels; ValueError for a bad image."""
    if isinstance(image, str):
        width, height = parse_drawing(image, field).size()
        return max(width, 1.0), max(height, 1.0)
    if isinstance(image, bytes):
        return png_size(image, field)
    raise TypeError(
        f"{field} is of type {type(image).__name__}: it must be an SVG string or PNG "
        "bytes; png_from_array encodes an array"
    )


def shown_sizes(images: Sequence[Image]) -> list[tuple[float, float]]:
    """Return sizes on the page; small PNGs are enlarged by one whole factor."""
    sizes = [image_size(image, "image") for image in images]
    if isinstance(images[0], str):
        return sizes
    factor = max(1, ENLARGED_PIXELS // int(max(max(size) for size in sizes)))
    return [(width * factor, height * factor) for width, height in sizes]


def image_element(
    image: Image, alt: str, size: tuple[float, float], attributes: str = ""
) -> str:
    """Return an `<img>` that carries its own data."""
    sharp = isinstance(image, bytes) and size != image_size(image, "image")
    if isinstance(image, str):
        source = parse_drawing(image).uri()
    else:
        source = f"data:image/png;base64,{base64.b64encode(image).decode('ascii')}"
    pixelated = ' class="pixelated"' if sharp else ""
    return (
        f'<img{pixelated} src="{source}" alt="{escape(alt)}" decoding="sync" '
        f'width="{size[0]:.0f}" height="{size[1]:.0f}"{attributes}>'
    )


def backdrop(image: Image) -> str:
    """Return the class of the box: white, unless the image follows the theme."""
    themed = isinstance(image, str) and parse_drawing(image).themed
    return "" if themed else " paper"


def picture(image: Image, name: str) -> str:
    """Return the image in its box."""
    size = shown_sizes([image])[0]
    least = LEAST_SHARE * size[0] if isinstance(image, str) else 0
    reach = ' tabindex="0"' if least > TELEPHONE else ""
    return (
        f'<div class="drawing{backdrop(image)}" style="--least:{least:.0f}px"{reach}>'
        f"{image_element(image, name, size)}</div>"
    )
