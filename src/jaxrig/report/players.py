"""Players: frames or moving points on a stage, with controls to play and scrub."""

import base64
import json
import math
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jaxrig.report.images import Image, backdrop, image_element, image_size, shown_sizes
from jaxrig.report.text import (
    Number,
    escape,
    format_number,
    linear_ticks,
    tick_labels,
)

MAX_FRAMES_PER_SECOND = 60
STAGE_HEIGHT = 75  # at most, in percent of the window, to keep the controls in view
KEYS = "Space ArrowLeft ArrowRight Home End"  # what `player.js` listens for
ICONS = {
    "previous": "M11 2 4 8l7 6zM3 2h1.5v12H3z",
    "play": "M4 2l9 6-9 6z",
    "pause": "M4 2h3v12H4zM9 2h3v12H9z",
    "next": "M5 2l7 6-7 6zM11.5 2H13v12h-1.5z",
}


class _Playback:
    """What players share: captions, a rate, names, and the controls below a stage."""

    captions: Sequence[str]
    frames_per_second: Number
    title: str
    alt: str
    first: int
    loop: bool
    autoplay: bool

    def _check_playback(self, count: int) -> None:
        """Raise unless so many frames can be played with these words at this rate."""
        object.__setattr__(self, "captions", tuple(self.captions))
        if not -count <= self.first < count:
            raise ValueError(
                f"first is {self.first}: it must be one of the {count} frames, "
                f"{-count} to {count - 1}"
            )
        object.__setattr__(self, "first", self.first % count)
        if len(self.captions) not in (0, count):
            raise ValueError(
                f"captions has {len(self.captions)} entries: it must be empty or have "
                f"one for each of the {count} frames"
            )
        if not 0 < self.frames_per_second <= MAX_FRAMES_PER_SECOND:
            raise ValueError(
                f"frames_per_second is {self.frames_per_second}: it must be above 0 "
                f"and at most {MAX_FRAMES_PER_SECOND}"
            )

    def _box(self, stage: str, size: tuple[float, float], count: int, name: str) -> str:
        """Return a stage with a title above, controls and first caption below."""
        width, height = size
        room = f"--stage:min({width:.0f}px,{STAGE_HEIGHT * width / height:.2f}vh)"
        title = escape(self.title)
        heading = f'<p class="player-title">{title}</p>' if title else ""
        words = "".join(
            f'<figcaption class="player-caption">{escape(caption)}</figcaption>'
            for caption in self.captions[self.first : self.first + 1]
        )
        switches = " data-loop" * self.loop + " data-autoplay" * self.autoplay
        return (
            f'<figure class="player" role="group" aria-label="{escape(name)}" '
            f'tabindex="0" aria-keyshortcuts="{KEYS}" style="{room}" '
            f'data-frames-per-second="{float(self.frames_per_second):g}" '
            f'data-first="{self.first}"{switches}>'
            f"{heading}\n{stage}\n{_controls(count, self.first)}\n{words}</figure>"
        )


@dataclass(frozen=True)
class Player(_Playback):
    """Frames of one kind, SVG texts or PNG bytes, to play, step and scrub through.

    Arguments:
        first: the frame shown before anything is played; -1 for the last.
        loop: whether it begins again at its end, or rests there.
        autoplay: plays by itself while in view, where visitors allow motion.
    """

    frames: Sequence[Image]
    captions: Sequence[str] = ()
    frames_per_second: Number = 8
    title: str = ""
    alt: str = ""
    first: int = 0
    loop: bool = False
    autoplay: bool = False

    def __post_init__(self):
        object.__setattr__(self, "frames", tuple(self.frames))
        if not self.frames:
            raise ValueError("frames is empty: a player needs at least one frame")
        for index, frame in enumerate(self.frames):
            image_size(frame, f"frames[{index}]")
            if isinstance(frame, str) != isinstance(self.frames[0], str):
                raise TypeError(
                    f"frames[{index}] is of type {type(frame).__name__}, frames[0] of "
                    f"type {type(self.frames[0]).__name__}: all must be of one kind"
                )
        self._check_playback(len(self.frames))

    def html(self) -> str:
        """Return the markup; without JavaScript it shows one frame."""
        name = self.title or self.alt or "Player"
        sizes = shown_sizes(self.frames)
        width, height = (max(side) for side in zip(*sizes, strict=True))
        elements = []
        for index, (frame, size) in enumerate(zip(self.frames, sizes, strict=True)):
            attributes = f' style="width:{100 * size[0] / width:.2f}%"'
            if self.captions:
                attributes += f' data-caption="{escape(self.captions[index])}"'
            attributes += "" if index == self.first else " hidden"
            elements.append(image_element(frame, self.alt or name, size, attributes))
        inside = "\n".join(elements)
        shape = f"aspect-ratio:{width:.0f}/{height:.0f}"
        paper = backdrop(self.frames[0])
        stage = f'<div class="stage{paper}" style="{shape}">{inside}</div>'
        return self._box(stage, (width, height), len(self.frames), name)


def _controls(count: int, first: int) -> str:
    return (
        '<div class="controls" hidden>'
        f"{_button('previous', 'Previous frame', 'left arrow', ['previous'])}"
        f"{_button('toggle', 'Play', 'space', ['play', 'pause'])}"
        f"{_button('next', 'Next frame', 'right arrow', ['next'])}"
        f'<input type="range" min="0" max="{count - 1}" step="1" value="{first}" '
        f'autocomplete="off" aria-label="Frame">'
        f'<span class="counter">{first + 1} / {count}</span>'
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
# Viridis without its darkest third: 2.6:1 and more against the dark stage, in order of
# lightness for every eye.
SPECTRUM = ("#38588c", "#25858e", "#2ab07f", "#86d549", "#fde725")
# Two bytes a coordinate: a place, a fifth of a pixel on a wide screen, and one bit of
# news. Finer places are noise to the eye that does not compress.
PLACES, FLAG = 0x1FFF, 0x8000
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


@dataclass(frozen=True)
class ColorBar:
    """The scale of a map's colors: what they show, and the values at both ends."""

    axis: Axis
    colors: Sequence[str]

    def html(self) -> str:
        """Return the markup."""
        low, high = float(self.axis.low), float(self.axis.high)
        ticks = linear_ticks(low, high, 4)
        shares = [(tick - low) / (high - low) for tick in ticks]
        marks = "".join(
            f'<span style="left:{100 * share:.2f}%">{label}</span>'
            for share, label in zip(shares, tick_labels(ticks), strict=True)
            if 0 <= share <= 1
        )
        gradient = f"linear-gradient(to right,{','.join(self.colors)})"
        return (
            f'<div class="color-bar"><p>{escape(self.axis.name)}</p>'
            f'<div class="colors" style="background:{gradient}"></div>'
            f'<div class="ticks">{marks}</div></div>'
        )


@dataclass(frozen=True, eq=False)
class Points(_Playback):
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
        scale: what the colors mean, and the values of the first and the last.

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
    first: int = 0
    loop: bool = True
    autoplay: bool = False
    scale: Axis | None = None

    def __post_init__(self):
        for name in ("positions", "shades", "starts"):
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, np.array(given))
        object.__setattr__(self, "colors", tuple(self.colors))
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
        self._check_playback(shape[0])

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

    def html(self) -> str:
        """Return the markup."""
        name = self.title or self.alt or "Moving points"
        size = STAGE_WIDTH, STAGE_WIDTH * float(self.height)
        picture = self.background and image_element(self.background, "", size)
        stage = (
            f'<div class="plot"><div class="y-ends">{_ends(self.y_axis)}</div>'
            f'<div class="stage field" style="aspect-ratio:{size[0]}/{size[1]:.0f}">'
            f"{picture or ''}{self._canvas(self.alt or name)}</div>"
            f'<div class="x-ends">{_ends(self.x_axis)}</div></div>'
            "<noscript><p>The points are drawn by JavaScript.</p></noscript>"
        )
        if self.scale is not None:
            stage += ColorBar(self.scale, self.colors).html()
        return self._box(stage, size, len(self.positions), name)

    def _canvas(self, name: str) -> str:
        frames, points, _ = self.positions.shape
        shades = np.zeros(points) if self.shades is None else self.shades
        facts = {
            "frames": frames,
            "points": points,
            "packed": _compress(self._packed()),
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


def _compress(packed: np.ndarray) -> str:
    """Return second differences along time, zipped: smooth paths have small ones."""
    # Unsigned numbers wrap around here, and back in the page's script.
    padded = np.concatenate([np.zeros_like(packed[:1])] * 2 + [packed])
    differences = np.diff(padded, n=2, axis=0)
    # All low bytes, then all high ones, which are mostly zeros.
    halves = differences.ravel().view(np.uint8).reshape(-1, 2).T
    return base64.b64encode(zlib.compress(halves.tobytes(), 9)).decode("ascii")


def _encode(array: np.ndarray) -> str:
    return base64.b64encode(array.tobytes()).decode("ascii")


def _ends(axis: Axis) -> str:
    words = format_number(axis.low), axis.name, format_number(axis.high)
    return "".join(f"<span>{escape(word)}</span>" for word in words)
