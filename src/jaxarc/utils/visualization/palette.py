"""What color each cell value has on a screen, in three schemes."""

import numpy as np
from jaxtyping import Int, UInt8

PADDING = 10  # the entry of a scheme for cells outside the grid
UNKNOWN_COLOR = "#808080"

# Colors 0 to 9, then padding.
COLOR_SCHEMES: dict[str, tuple[str, ...]] = {
    "default": (
        *("#252525", "#0074D9", "#FF4136", "#37D449", "#FFDC00"),
        *("#E6E6E6", "#F012BE", "#FF871E", "#54D2EB", "#8D1D2C"),
        "#FFFFFF",
    ),
    "high_contrast": (
        *("#000000", "#0000FF", "#FF0000", "#00B000", "#FFFF00"),
        *("#A8A8A8", "#FF00FF", "#FF8000", "#00FFFF", "#700000"),
        "#FFFFFF",
    ),
    # Apart for eyes without red or green cones as well.
    "colorblind": (
        *("#000000", "#0057A8", "#C9460B", "#05A96E", "#F0FA44"),
        *("#D8D8D8", "#CC79A7", "#FE8200", "#79B6F8", "#5A1E00"),
        "#FFFFFF",
    ),
}
ARC_COLOR_PALETTE: dict[int, str] = dict(enumerate(COLOR_SCHEMES["default"]))


def get_color_scheme(name: str) -> tuple[str, ...]:
    """The colors of a scheme as `#RRGGBB`: 0 to 9, then padding."""
    if name not in COLOR_SCHEMES:
        raise ValueError(
            f"color scheme {name!r} is not one of: {', '.join(COLOR_SCHEMES)}"
        )
    return COLOR_SCHEMES[name]


def cell_color(value: int, scheme: str = "default") -> str:
    """The color of one cell value: -1 is padding, unknown values are gray."""
    colors = get_color_scheme(scheme)
    return colors[value] if -1 <= value <= PADDING else UNKNOWN_COLOR


def cell_pixels(
    values: Int[np.ndarray, "*shape"], scheme: str = "default"
) -> UInt8[np.ndarray, "*shape 3"]:
    """Red, green and blue of every cell value."""
    table = np.array([_rgb(c) for c in (*get_color_scheme(scheme), UNKNOWN_COLOR)])
    known = (values >= -1) & (values <= PADDING)
    index = np.where(known, np.where(values == -1, PADDING, values), PADDING + 1)
    return table.astype(np.uint8)[index]


def ink_on(color: str) -> str:
    """Black or white, whichever reads better on the color."""
    # Above this relative luminance black has the higher contrast (WCAG 2).
    return "#000000" if _luminance(color) > 0.179 else "#FFFFFF"


def _rgb(color: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(color[1:]))


def _luminance(color: str) -> float:
    share = np.array(_rgb(color)) / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return float(linear @ np.array([0.2126, 0.7152, 0.0722]))
