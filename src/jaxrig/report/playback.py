"""Markup of a player: its stage, of which the first frame shows, and its controls."""

from collections.abc import Sequence

from jaxrig.report.markup import check_string, escape
from jaxrig.report.numerals import Number
from jaxrig.report.pictures import Image, backdrop, image_element, shown_sizes

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
    """The whole player; without JavaScript it is a picture of the first frame."""
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
    """Any stage with a title above, and below it the controls and the first caption."""
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
