"""Particles that move over a map, as a part of a report."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from jaxrig.report import Axis, Part, Points, Section, Text, png_from_array
from jaxrig.report.players import SPECTRUM
from jaxtrace.paths import joined_steps, life_starts
from jaxtrace.plot.inputs import (
    Paths,
    axes_of,
    axis_limits,
    axis_names,
    choose,
    path_limits,
    read_paths,
)
from jaxtrace.types import check_choice

MAX_PARTICLES, MAX_FRAMES = 300, 150  # about 240 kB of page
FLATTEST, TALLEST = 0.25, 1.25  # heights of a stage per unit of its width
COLORS = ("position", "age")
# Gray over any page, light or dark; the value is its opacity.
MAP_GRAY, MAP_OPACITY = 128, 0.45
# Colors between those of the spectrum.
BLENDS = 4


class _View(NamedTuple):
    """What a stage shows: which particles and frames of which paths on which axes."""

    paths: Paths
    axes: tuple[int, int]
    limits: list[tuple[float, float]]
    particles: Int[np.ndarray, " particles"]
    frames: list[int]

    @property
    def shape(self) -> float:
        """Height over width where both axes have one scale."""
        (left, right), (bottom, top) = self.limits
        return (top - bottom) / (right - left)


def particle_canvas(
    positions_over_time: Any,
    times: Any = None,
    plane: str = "xy",
    bounds: Any = None,
    background: Any = None,
    color: str = "position",
    max_particles: int = MAX_PARTICLES,
    max_frames: int = MAX_FRAMES,
    trail: int = 8,
    radius: float = 2.5,
    frames_per_second: float = 20.0,
    title: str = "",
    alt: str = "",
) -> Points:
    """Make a report part that plays particles in a plane.

    Arguments:
        bounds: ends of the axes; without them what holds every particle.
        background: values (across, up) spread evenly over the axes, such as a speed,
            a density or FTLE; or a PNG or SVG.
        color: "position" for where across the particle began, or "age".
        max_particles, max_frames: at most so many, spread evenly.
        trail: how many of the frames shown a trail reaches back.
    """
    view = _look(positions_over_time, times, plane, bounds, max_particles, max_frames)
    names = axis_names(view.axes)
    return Points(
        _positions(view),
        Axis(names[0], *view.limits[0]),
        Axis(names[1], *view.limits[1]),
        _background(background),
        _shades(view, color),
        blend_colors(SPECTRUM, BLENDS),
        _starts(view),
        trail,
        radius,
        float(np.clip(view.shape, FLATTEST, TALLEST)),
        [view.paths.clock(frame) for frame in view.frames],
        frames_per_second,
        title,
        alt or f"Particles in the {plane} plane",
    )


def trajectory_section(
    title: str,
    positions_over_time: Any,
    text: str = "",
    plane: str = "xy",
    color: str = "position",
    **options: Any,
) -> Section:
    """Return a section that plays particles; a sentence says what of them it shows.

    `options` are those of `particle_canvas`.
    """
    part = particle_canvas(
        positions_over_time, plane=plane, color=color, alt=title, **options
    )
    paths = read_paths(positions_over_time, options.get("times"))
    parts: list[Part] = [Text(text)] if text else []
    parts += [Text(_describe(part, paths, plane, color)), part]
    return Section(title, *parts)


def shade_map(values: Float[np.ndarray, "across up"]) -> bytes:
    """Return values as a PNG that darkens a light page and lightens a dark one."""
    finite = np.isfinite(values)
    if not finite.any():
        raise ValueError("no value of the background is finite: leave it out")
    low, high = values[finite].min(), values[finite].max()
    shares = np.where(finite, values - low, 0) / ((high - low) or 1)
    pixels: UInt8[np.ndarray, "up across 4"] = np.full(
        (*values.T.shape, 4), MAP_GRAY, np.uint8
    )
    pixels[..., 3] = np.round(255 * MAP_OPACITY * shares.T[::-1]).astype(np.uint8)
    return png_from_array(pixels)


def blend_colors(stops: Sequence[str], between: int) -> list[str]:
    """Return the colors with `between` steps from each to the next.

    >>> blend_colors(["#000000", "#0000ff"], 2)
    ['#000000', '#000080', '#0000ff']
    """
    channels = [bytes.fromhex(stop[1:]) for stop in stops]
    places = np.linspace(0, len(stops) - 1, (len(stops) - 1) * between + 1)
    mixed = [
        np.interp(places, range(len(stops)), channel)
        for channel in zip(*channels, strict=True)
    ]
    rows = np.round(np.transpose(mixed)).astype(np.uint8)
    return [f"#{row.tobytes().hex()}" for row in rows]


def _look(
    given: Any,
    times: Any,
    plane: str,
    bounds: Any,
    max_particles: int,
    max_frames: int,
) -> _View:
    axes = axes_of(plane)
    paths = read_paths(given, times)
    frames, particles = paths.alive.shape
    if not particles:
        raise ValueError("the paths have no particle: a canvas needs at least one")
    asked = zip(axis_limits(bounds, axes), path_limits(paths, axes), strict=True)
    limits = [given or _round_out(*found) for given, found in asked]
    chosen = choose(particles, max_points=max_particles)
    return _View(
        paths, axes, limits, chosen, choose(frames, max_points=max_frames).tolist()
    )


def _round_out(low: float, high: float) -> tuple[float, float]:
    """Return ends a little further out that take few digits to write."""
    step = 10.0 ** np.floor(np.log10(high - low)) / 20
    return float(np.floor(low / step) * step), float(np.ceil(high / step) * step)


def _positions(view: _View) -> Float[np.ndarray, "frames particles 2"]:
    columns = list(view.axes)
    return np.stack(
        [view.paths.at(frame, view.particles)[:, columns] for frame in view.frames]
    )


def _starts(view: _View) -> Bool[np.ndarray, "frames particles"]:
    """Return True where a line from the frame shown before would lead over a jump."""
    joined = joined_steps(view.paths, view.particles)
    jumps = np.zeros((len(joined) + 1, len(view.particles)), int)
    np.cumsum(~joined, axis=0, out=jumps[1:])
    shown = jumps[view.frames]
    return np.diff(shown, axis=0, prepend=shown[:1]) > 0


def _shades(
    view: _View, color: str
) -> Int[np.ndarray, " particles"] | Int[np.ndarray, "frames particles"]:
    check_choice("color", color, COLORS)
    paths, most = view.paths, (len(SPECTRUM) - 1) * BLENDS
    begun = life_starts(paths, view.particles)
    frames = np.arange(len(begun))[:, None]
    first = np.maximum.accumulate(np.where(begun, frames, 0), axis=0)[view.frames]
    if color == "age":
        ages = np.abs(paths.times[view.frames, None] - paths.times[first])
        return np.round(most * ages / (ages.max() or 1)).astype(int)
    low, high = view.limits[0]
    began = paths.positions[first, view.particles, view.axes[0]]
    shares = np.nan_to_num((began - low) / (high - low))
    shades = np.round(most * np.clip(shares, 0, 1)).astype(int)
    return shades[0] if (shades == shades[0]).all() else shades


def _background(background: Any) -> Any:
    if background is None or isinstance(background, str | bytes):
        return background
    values = np.asarray(background, np.float64)
    if values.ndim != 2:
        raise ValueError(
            f"background has shape {values.shape}: give values (across, up), a PNG or "
            "an SVG"
        )
    return shade_map(values)


def _describe(part: Points, paths: Paths, plane: str, color: str) -> str:
    frames, particles = paths.alive.shape
    shown, count, _ = part.positions.shape
    some = lambda few, all: f"{few:,}" if few == all else f"{few:,} of {all:,}"
    across, up = part.x_axis, part.y_axis
    said = {
        "position": f"where along {across.name} it began, from orange to blue",
        "age": "how long it has been there, from orange to blue",
    }[color]
    words = (
        f"{some(count, particles)} particles at {some(shown, frames)} instants in the "
        f"{plane} plane; the color of each is {said}."
    )
    shape = (up.high - up.low) / (across.high - across.low)
    if not FLATTEST <= shape <= TALLEST:
        words += " The two axes are not to one scale."
    return words
