"""Players: frames or moving points on a stage, with controls to play and scrub."""

import base64
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jaxrig.report.images import Image, backdrop, image_element, image_size, shown_sizes
from jaxrig.report.text import Number, check_string, escape, format_number

MAX_FRAMES_PER_SECOND = 60
STAGE_HEIGHT = 75  # at most, in percent of the window, to keep the controls in view
KEYS = "Space ArrowLeft ArrowRight Home End"  # what `player.js` listens for
ICONS = {
    "previous": "M11 2 4 8l7 6zM3 2h1.5v12H3z",
    "play": "M4 2l9 6-9 6z",
    "pause": "M4 2h3v12H4zM9 2h3v12H9z",
    "next": "M5 2l7 6-7 6zM11.5 2H13v12h-1.5z",
}


def player_element(
    frames: Sequence[Image],
    captions: Sequence[str],
    frames_per_second: Number,
    title: str,
    alt: str,
) -> str:
    """Return the player; without JavaScript it shows the first frame."""
    name = title or alt or "Player"
    sizes = shown_sizes(frames)
    stage = _stage(frames, sizes, captions, alt or name)
    size = _largest(sizes)
    return player_box(
        stage, size, len(frames), captions, frames_per_second, name, title
    )


def player_box(
    stage: str,
    size: tuple[float, float],
    count: int,
    captions: Sequence[str],
    frames_per_second: Number,
    name: str,
    title: str = "",
) -> str:
    """Return a stage with a title above, controls and first caption below."""
    width, height = size
    room = f"--stage:min({width:.0f}px,{STAGE_HEIGHT * width / height:.2f}vh)"
    heading = f'<p class="player-title">{escape(title)}</p>' if title else ""
    words = "".join(
        f'<figcaption class="player-caption">{escape(caption)}</figcaption>'
        for caption in captions[:1]
    )
    return (
        f'<figure class="player" role="group" aria-label="{escape(name)}" tabindex="0" '
        f'aria-keyshortcuts="{KEYS}" style="{room}" '
        f'data-frames-per-second="{float(frames_per_second):g}">'
        f"{heading}\n{stage}\n{_controls(count)}\n{words}</figure>"
    )


def check_playback(
    count: int,
    captions: Sequence[str],
    frames_per_second: Number,
    title: str,
    alt: str,
) -> None:
    """Raise unless so many frames can be played with these words at this rate."""
    if len(captions) not in (0, count):
        raise ValueError(
            f"captions has {len(captions)} entries: it must be empty or have "
            f"one for each of the {count} frames"
        )
    for index, caption in enumerate(captions):
        check_string(caption, f"captions[{index}]")
    if not 0 < frames_per_second <= MAX_FRAMES_PER_SECOND:
        raise ValueError(
            f"frames_per_second is {frames_per_second}: it must be above 0 "
            f"and at most {MAX_FRAMES_PER_SECOND}"
        )
    check_string(title, "title")
    check_string(alt, "alt")


def _stage(
    frames: Sequence[Image],
    sizes: Sequence[tuple[float, float]],
    captions: Sequence[str],
    alt: str,
) -> str:
    width, height = _largest(sizes)
    elements = []
    for index, frame in enumerate(frames):
        share = f' style="width:{100 * sizes[index][0] / width:.2f}%"'
        words = f' data-caption="{escape(captions[index])}"' if captions else ""
        hidden = " hidden" if index else ""
        attributes = f"{share}{words}{hidden}"
        elements.append(image_element(frame, alt, sizes[index], attributes))
    inside = "\n".join(elements)
    shape = f"aspect-ratio:{width:.0f}/{height:.0f}"
    return f'<div class="stage{backdrop(frames[0])}" style="{shape}">{inside}</div>'


def _largest(sizes: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return max(width for width, _ in sizes), max(height for _, height in sizes)


def _controls(count: int) -> str:
    return (
        '<div class="controls" hidden>'
        f"{_button('previous', 'Previous frame', 'left arrow', ['previous'])}"
        f"{_button('toggle', 'Play', 'space', ['play', 'pause'])}"
        f"{_button('next', 'Next frame', 'right arrow', ['next'])}"
        f'<input type="range" min="0" max="{count - 1}" step="1" value="0" '
        f'autocomplete="off" aria-label="Frame">'
        f'<span class="counter">1 / {count}</span>'
        '<button type="button" data-action="speed" aria-label="Speed 1" '
        'title="Speed">1\u00d7</button></div>'
    )


def _button(action: str, name: str, key: str, icons: Sequence[str]) -> str:
    drawn = "".join(
        f'<svg class="icon-{icon}" viewBox="0 0 16 16" aria-hidden="true">'
        f'<path d="{ICONS[icon]}"/></svg>'
        for icon in icons
    )
    return (
        f'<button type="button" data-action="{action}" aria-label="{name}" '
        f'title="{name} ({key})">{drawn}</button>'
    )


STAGE_WIDTH = 640
MOST_COLORS = 256  # a point's color is one byte
# Orange to blue over violet: about 3:1 against the light and the dark page, and in
# order for eyes without red or green cones.
SPECTRUM = ("#d55e00", "#d2506c", "#b55a98", "#8d5fd0", "#5a6fe8", "#0077bb")
# Two bytes a coordinate: fifteen bits of place and one bit of news.
PLACES, FLAG = 0x7FFF, 0x8000
_COLOR = re.compile("#[0-9a-fA-F]{6}")


@dataclass(frozen=True)
class Axis:
    """An axis of a stage: its name and the values at its two ends."""

    name: str
    low: Number
    high: Number

    def __post_init__(self):
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            raise ValueError(f"{self} is unbounded: both ends must be finite")
        if not self.low < self.high:
            raise ValueError(f"{self} has no extent: low must be less than high")


@dataclass(frozen=True, eq=False)
class Points:
    """Points that move over a picture, to play, step and scrub through.

    Arguments:
        positions: (frames, points, 2); NaN where a point is absent, and what lies
            outside the axes is not drawn.
        background: SVG or PNG stretched from corner to corner of the axes.
        shades: index into `colors` of each point, (points,) or (frames, points).
        starts: (frames, points), True where a point did not come from where it was in
            the frame before, so that no trail leads there.
        trail: how many frames back a trail reaches.
        height: of the stage per unit of its width.

    >>> turn = np.linspace(0, 6, 40)[:, None]
    >>> circle = np.stack([np.cos(turn), np.sin(turn)], axis=-1)
    >>> part = Points(circle, Axis("x", -1.5, 1.5), Axis("y", -1.5, 1.5), trail=10)
    """

    positions: np.ndarray
    x_axis: Axis
    y_axis: Axis
    background: Image | None = None
    shades: np.ndarray | None = None
    colors: Sequence[str] = SPECTRUM
    starts: np.ndarray | None = None
    trail: int = 0
    radius: Number = 2.5
    height: Number = 1.0
    captions: Sequence[str] = ()
    frames_per_second: Number = 20
    title: str = ""
    alt: str = ""

    def __post_init__(self):
        for name in ("positions", "shades", "starts"):
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, np.array(given))
        object.__setattr__(self, "colors", tuple(self.colors))
        object.__setattr__(self, "captions", tuple(self.captions))
        shape = self.positions.shape
        if len(shape) != 3 or shape[2] != 2 or 0 in shape:
            raise ValueError(
                f"positions has shape {shape}: it must be (frames, points, 2), with at "
                "least one frame and one point"
            )
        self._check_shades()
        if self.starts is not None and self.starts.shape != shape[:2]:
            raise ValueError(
                f"starts has shape {self.starts.shape}: it must be {shape[:2]}"
            )
        for name in ("radius", "height"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} is {getattr(self, name)}: it must be above 0")
        if self.trail < 0:
            raise ValueError(f"trail is {self.trail}: it must be 0 or more frames")
        if self.background is not None:
            image_size(self.background, "background")
        check_playback(
            shape[0], self.captions, self.frames_per_second, self.title, self.alt
        )

    def _check_shades(self) -> None:
        for color in self.colors:
            if not _COLOR.fullmatch(color):
                raise ValueError(f"colors has {color!r}: write colors as #rrggbb")
        if not 1 <= len(self.colors) <= MOST_COLORS:
            raise ValueError(
                f"colors has {len(self.colors)} entries: give 1 to {MOST_COLORS}"
            )
        shape = self.positions.shape[:2]
        if self.shades is None:
            return
        if self.shades.shape not in (shape, shape[1:]):
            raise ValueError(
                f"shades has shape {self.shades.shape}: it must be {shape[1:]} or "
                f"{shape}"
            )
        if self.shades.dtype.kind not in "iu" or (
            self.shades.size
            and not 0 <= self.shades.min() <= self.shades.max() < len(self.colors)
        ):
            raise ValueError(
                f"shades must be whole numbers from 0 to {len(self.colors) - 1}, one "
                "for each of the colors"
            )

    def html(self, scope: str) -> str:
        """Return the markup; the scope is a prefix for ids unique on the page."""
        name = self.title or self.alt or "Moving points"
        size = STAGE_WIDTH, STAGE_WIDTH * float(self.height)
        ends = [_ends(axis) for axis in (self.y_axis, self.x_axis)]
        stage = (
            f'<div class="plot"><div class="y-ends">{ends[0]}</div>'
            f'<div class="stage field" style="aspect-ratio:{size[0]}/{size[1]:.0f}">'
            f"{self._picture(size)}{self._canvas(self.alt or name)}</div>"
            f'<div class="x-ends">{ends[1]}</div></div>'
            "<noscript><p>The points are drawn by JavaScript.</p></noscript>"
        )
        count = len(self.positions)
        return player_box(
            stage, size, count, self.captions, self.frames_per_second, name, self.title
        )

    def _picture(self, size: tuple[float, float]) -> str:
        if self.background is None:
            return ""
        return image_element(self.background, "", size)

    def _canvas(self, name: str) -> str:
        frames, points, _ = self.positions.shape
        shades = np.zeros(points) if self.shades is None else self.shades
        facts = {
            "frames": frames,
            "points": points,
            "packed": _encode(self._packed()),
            "shades": _encode(shades.astype(np.uint8)),
            "colors": ",".join(self.colors),
            "trail": self.trail,
            "radius": f"{float(self.radius):g}",
            "captions": json.dumps(self.captions, ensure_ascii=False),
        }
        attributes = " ".join(
            f'data-{key}="{escape(str(value))}"' for key, value in facts.items()
        )
        return f'<canvas role="img" aria-label="{escape(name)}" {attributes}></canvas>'

    def _packed(self) -> np.ndarray:
        axes = self.x_axis, self.y_axis
        low = np.array([axis.low for axis in axes], np.float64)
        high = np.array([axis.high for axis in axes], np.float64)
        shares = (self.positions.astype(np.float64) - low) / (high - low)
        with np.errstate(invalid="ignore"):
            inside = (shares >= 0) & (shares <= 1)
        absent = ~(inside[..., 0] & inside[..., 1])
        places = np.round(np.where(absent[..., None], 0, shares) * PLACES)
        packed = places.astype("<u2")
        if self.starts is not None:
            packed[..., 0] |= np.where(self.starts, FLAG, 0).astype("<u2")
        packed[..., 1] |= np.where(absent, FLAG, 0).astype("<u2")
        return packed


def _encode(array: np.ndarray) -> str:
    return base64.b64encode(array.tobytes()).decode("ascii")


def _ends(axis: Axis) -> str:
    words = format_number(axis.low), axis.name, format_number(axis.high)
    return "".join(f"<span>{escape(word)}</span>" for word in words)
