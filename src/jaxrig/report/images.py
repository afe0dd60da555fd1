"""PNG and SVG images: made, checked, and shown as elements of a page.

An SVG is refused when it could act or fetch, and rewritten to share a page with others.
"""

import base64
import re
import struct
import xml.etree.ElementTree as ElementTree
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias
from xml.etree.ElementTree import Element

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


def data_uri(content: bytes, media_type: str) -> str:
    """Return the content as an address that needs no file and no network."""
    return f"data:{media_type};base64,{base64.b64encode(content).decode('ascii')}"


def _chunk(kind: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(kind + content)
    return (
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)
    )


SVG = "http://www.w3.org/2000/svg"
XLINK_HREF = "{http://www.w3.org/1999/xlink}href"
XML_SPACE = "{http://www.w3.org/XML/1998/namespace}space"
MAX_DEPTH = 100
DEFAULT_SIZE = (300.0, 150.0)  # what browsers give a drawing without a size
UNITS = {None: 1.0, "px": 1.0, "pt": 4 / 3}  # in CSS pixels

WORDS = frozenset({"title", "desc"})
# Their reach is the whole page, so a drawing with one of them is never inlined.
FAR_REACHING = frozenset(
    {"animate", "animateMotion", "animateTransform", "mpath", "set", "style"}
)
ACTIVE = frozenset({"script", "foreignobject", "iframe", "object", "embed", "handler"})

_SHAPE = re.compile(
    "a|circle|clipPath|defs|ellipse|g|image|line|linearGradient|marker|mask|metadata|"
    "path|pattern|polygon|polyline|radialGradient|rect|stop|svg|switch|symbol|text|"
    "textPath|tspan|use|view|filter|fe[A-Z][A-Za-z]+"
)
_LOCAL_HREF = re.compile(r"#|data:image/(png|jpeg|gif|webp);base64,", re.IGNORECASE)
_URL = re.compile(r"url\(\s*(['\"]?)\s*([^'\")]*)\1\s*\)", re.IGNORECASE)
_FETCHES = re.compile(
    r"url\(\s*+['\"]?+\s*+(?!#|data:image/)|@import|\b(image-set|image|src)\(",
    re.IGNORECASE,
)
_INVISIBLE = re.compile(r"[\s\x00-\x1f]+")
_LENGTH = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*(px|pt)?\s*")
_THEME = (
    "<style>:root{color:#1b1f24}"
    "@media(prefers-color-scheme:dark){:root{color:#e4e7eb}}</style>"
)


@dataclass(frozen=True)
class Drawing:
    """A checked SVG: its tree without foreign parts, and how it may be shown."""

    root: Element
    themed: bool
    """Draws with `currentColor`, so it follows the light or dark page."""
    isolated: bool
    """Has style rules or animations, which would reach beyond an inline drawing."""

    def inline(self, scope: str) -> str:
        """Return markup for the body of a page; ids start with the scope."""
        return _serialize(self.root, scope)

    def uri(self) -> str:
        """Return the drawing as the address of an image, sealed off from the page."""
        themed = self.themed and "color" not in self.root.attrib
        text = _serialize(self.root, None, _THEME if themed else "")
        return data_uri(text.encode(), "image/svg+xml")

    def size(self) -> tuple[float, float]:
        """Return width and height in CSS pixels, from its lengths or its view box."""
        width, height = self.root.get("width", ""), self.root.get("height", "")
        x, y = _LENGTH.fullmatch(width), _LENGTH.fullmatch(height)
        if x and y:
            return float(x[1]) * UNITS[x[2]], float(y[1]) * UNITS[y[2]]
        box = re.split(r"[\s,]+", self.root.get("viewBox", "").strip())
        if len(box) == 4 and all(_LENGTH.fullmatch(side) for side in box[2:]):
            return float(box[2]), float(box[3])
        return DEFAULT_SIZE


def parse_drawing(svg: str, field: str = "svg") -> Drawing:
    """Check an SVG text; the ValueError names the field, the value and the rule."""
    if "<!ENTITY" in svg:
        raise ValueError(f"{field} declares an XML entity: write the content out")
    try:
        root = ElementTree.fromstring(svg)
    except (ElementTree.ParseError, UnicodeEncodeError) as error:
        raise ValueError(
            f"{field} is {svg[:40]!r}: it must be well-formed SVG; {error}"
        ) from error
    if root.tag not in ("svg", f"{{{SVG}}}svg"):
        raise ValueError(f"{field} has the root <{root.tag}>: it must be <svg>")
    names: set[str] = set()
    _check(root, field, names, 0)
    return Drawing(
        root,
        themed="currentcolor" in svg.lower(),
        isolated=bool(names & FAR_REACHING),
    )


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


def _is_svg(tag: str) -> bool:
    return not tag.startswith("{") or tag.startswith(f"{{{SVG}}}")


def _check(node: Element, field: str, names: set[str], depth: int) -> None:
    name = _local(node.tag)
    if name.lower() in ACTIVE:
        raise ValueError(
            f"{field} contains <{name}>, which is not allowed in a drawing"
        )
    for key, value in node.attrib.items():
        _check_attribute(_local(key).lower(), value, f"{field} <{name}>")
    if depth > MAX_DEPTH:
        raise ValueError(f"{field} nests deeper than {MAX_DEPTH} elements: flatten it")
    known = name in WORDS | FAR_REACHING or _SHAPE.fullmatch(name)
    if _is_svg(node.tag) and not known:
        raise ValueError(
            f"{field} contains <{name}>, which is not an SVG drawing element"
        )
    if name in WORDS and len(node):
        raise ValueError(f"{field} has elements in <{name}>: it may hold text only")
    if name == "style":
        _check_style(node.text or "", f"{field} <style>")
    names.add(name)
    for child in node:
        _check(child, field, names, depth + 1)


def _check_attribute(key: str, value: str, where: str) -> None:
    if key.startswith("on") or key == "base":
        raise ValueError(f"{where} has the attribute {key!r}, which is not allowed")
    if "javascript:" in _INVISIBLE.sub("", value).lower():
        raise ValueError(f"{where} has {key}={value[:60]!r}: scripts are not allowed")
    if key in ("href", "src") and not _LOCAL_HREF.match(value.strip()):
        raise ValueError(
            f"{where} has {key}={value[:60]!r}: it may point to '#id' or hold "
            "a base64 data:image, nothing outside the page"
        )
    target = value.strip().lower()
    if key == "attributename" and (target.startswith("on") or "href" in target):
        raise ValueError(f"{where} animates {value!r}: links must not be animated")
    if key == "style":
        _check_style(value, where)
    elif _FETCHES.search(value):
        raise ValueError(f"{where} has {key}={value[:60]!r}: url() takes '#id' only")


def _check_style(style: str, where: str) -> None:
    # A backslash can spell url( or @import in a way no pattern would see.
    if "\\" in style or _FETCHES.search(style):
        raise ValueError(
            f"{where} has the style {style[:60]!r}: no backslash, @import or url() "
            "to anything but '#id'"
        )


def _serialize(root: Element, scope: str | None, first: str = "") -> str:
    """Return markup valid as XML and HTML; a scope keeps ids apart on a page."""

    def open_tag(node: Element) -> str:
        pairs = [("xmlns", SVG)] if node is root else []
        # Inline drawings inherit the font of the page, images have to bring one.
        if node is root and scope is None and "font-family" not in node.attrib:
            pairs.append(("font-family", "system-ui, sans-serif"))
        pairs += _attributes(node, scope)
        return " ".join(
            [_local(node.tag), *(f'{key}="{escape(value)}"' for key, value in pairs)]
        )

    def write(node: Element, extra: str = "") -> str:
        inside = extra + escape(node.text or "")
        for child in node:
            if _is_svg(child.tag) and _local(child.tag) != "metadata":
                inside += write(child)
            inside += escape(child.tail or "")
        return f"<{open_tag(node)}>{inside}</{_local(node.tag)}>"

    return write(root, first)


def _attributes(node: Element, scope: str | None) -> list[tuple[str, str]]:
    found = {}
    for key, value in node.attrib.items():
        name = {XLINK_HREF: "href", XML_SPACE: "xml:space"}.get(key, key)
        if not name.startswith("{"):
            found.setdefault(name, value)
    if scope is None:
        return list(found.items())
    # Class names would pick up the rules of the page.
    found.pop("class", None)
    return [(key, _scoped(key, value, scope)) for key, value in found.items()]


def _scoped(key: str, value: str, scope: str) -> str:
    if key == "id":
        return scope + value
    if key == "href" and value.strip().startswith("#"):
        return f"#{scope}{value.strip()[1:]}"
    if key in ("aria-labelledby", "aria-describedby"):
        return " ".join(scope + name for name in value.split())
    return _URL.sub(
        lambda url: f"url(#{scope}{url[2][1:]})" if url[2][:1] == "#" else url[0], value
    )


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
        source = data_uri(image, "image/png")
    pixelated = ' class="pixelated"' if sharp else ""
    return (
        f'<img{pixelated} src="{source}" alt="{escape(alt)}" decoding="sync" '
        f'width="{size[0]:.0f}" height="{size[1]:.0f}"{attributes}>'
    )


def backdrop(image: Image) -> str:
    """Return the class of the box: white, unless the image follows the theme."""
    themed = isinstance(image, str) and parse_drawing(image).themed
    return "" if themed else " paper"


def picture(image: Image, name: str, scope: str) -> str:
    """Return the image in its box; drawings inline where that is safe."""
    if isinstance(image, str):
        drawing = parse_drawing(image)
        if not drawing.isolated:
            role = f' role="img" aria-label="{escape(name)}"' if name else ""
            least = LEAST_SHARE * drawing.size()[0]
            reach = ' tabindex="0"' if least > TELEPHONE else ""
            return (
                f'<div class="drawing{backdrop(image)}" style="--least:{least:.0f}px"'
                f"{role}{reach}>{drawing.inline(scope)}</div>"
            )
    element = image_element(image, name, shown_sizes([image])[0])
    return f'<div class="drawing{backdrop(image)}">{element}</div>'
