"""One interface to both kinds of image: SVG text and PNG bytes as page elements."""

from collections.abc import Sequence
from typing import TypeAlias

from jaxrig.report.images import data_uri, png_size
from jaxrig.report.markup import escape
from jaxrig.report.vector import parse_drawing

Image: TypeAlias = str | bytes

# A drawing shrinks to this share at most, so that its words stay legible; where there
# is less room it scrolls in its own box.
LEAST_SHARE = 0.6
TELEPHONE = 358  # pixels that a narrow window leaves for a drawing
# Images of few pixels, such as grids of cells, are enlarged to about this size.
ENLARGED_PIXELS = 320


def image_size(image: Image, field: str) -> tuple[float, float]:
    """Width and height in pixels; raises where the image cannot be put on a page."""
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
    """Sizes on the page: small PNGs are enlarged, all by the same whole factor."""
    sizes = [image_size(image, "image") for image in images]
    if isinstance(images[0], str):
        return sizes
    factor = max(1, ENLARGED_PIXELS // int(max(max(size) for size in sizes)))
    return [(width * factor, height * factor) for width, height in sizes]


def image_element(
    image: Image, alt: str, size: tuple[float, float], attributes: str = ""
) -> str:
    """An `<img>` that carries its own data."""
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
    """Class of the box: white paper, unless the drawing follows the theme."""
    themed = isinstance(image, str) and parse_drawing(image).themed
    return "" if themed else " paper"


def picture(image: Image, name: str, scope: str) -> str:
    """The image in its box: drawings inline, with ids under the scope, where safe."""
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
