"""Particles that move over a map, as a part of a report; and what notebooks show."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8
from scipy.ndimage import binary_erosion, zoom

from jaxrig.report import (
    Axis,
    ColorBar,
    Figure,
    Part,
    Points,
    Section,
    Table,
    png_from_array,
)
from jaxrig.report.players import SPECTRUM
from jaxtrace.fields.base import Field
from jaxtrace.paths import joined_steps, life_starts, summarize
from jaxtrace.plot import inputs
from jaxtrace.trajectory import Trajectory
from jaxtrace.types import check_choice

MAX_PARTICLES, MAX_FRAMES = 4_000, 60  # about 700 kB of page
FLATTEST, TALLEST = 0.25, 1.25  # heights of a stage per unit of its width
FEW = 500  # particles that can be told apart at full size
COLORS = ("position", "age")
# Gray over the dark stage, the value is its opacity; land as in the studio.
MAP_GRAY, MAP_OPACITY = 128, 0.45
LAND, SHORE, LAND_ACROSS = (52, 60, 70), (150, 160, 172), 900  # colors, pixels
# Colors between those of the spectrum.
BLENDS = 4

Slots = Int[np.ndarray, " particles"]
Shown = Int[np.ndarray, " frames"]


def particle_canvas(
    positions_over_time: Any,
    times: Any = None,
    plane: str = "xy",
    bounds: Any = None,
    background: Any = None,
    field: Any = None,
    color: str = "position",
    max_particles: int = MAX_PARTICLES,
    max_frames: int = MAX_FRAMES,
    trail: int = 4,
    radius: float | None = None,
    frames_per_second: float = 20.0,
    title: str = "",
    alt: str = "",
    first: int = 0,
    autoplay: bool = False,
) -> Points:
    """Make a report part that plays particles in a plane.

    Arguments:
        bounds: ends of the axes; without them what holds every particle.
        background: values (across, up) spread evenly over the axes, such as a speed,
            a density or FTLE; or a PNG or SVG.
        field: what the particles moved through; its land is drawn in the xy plane.
        color: "position" for where across the particle began, or "age".
        max_particles: at most so many, chosen at random.
        max_frames: at most so many, spread evenly; the page interpolates between them.
        trail: how many of the frames shown a trail reaches back.
        radius: of the points; by default smaller the more there are.
        first, autoplay: as of `jaxrig.report.Points`.
    """
    axes, paths = inputs.axes_of(plane), inputs.read_paths(positions_over_time, times)
    if not paths.N:
        raise ValueError("the paths have no particle: a canvas needs at least one")
    across, up = _axes(paths, axes, bounds)
    particles = inputs.choose(paths.N, max_points=max_particles)
    frames = _spread(paths.T, max_frames)
    values, scale = _color_values(paths, particles, frames, axes[0], across, color)
    places = [paths.at(frame, particles)[:, list(axes)] for frame in frames.tolist()]
    land = land_over(field, across, up) if tuple(axes) == (0, 1) else None
    return Points(
        np.stack(places),
        across,
        up,
        _background(background, land),
        _shades(values, scale),
        blend_colors(SPECTRUM, BLENDS),
        _starts(paths, particles, frames),
        trail,
        radius or (2.5 if len(particles) <= FEW else 1.5),
        float(np.clip(_shape(across, up), FLATTEST, TALLEST)),
        [paths.clock(frame) for frame in frames.tolist()],
        frames_per_second,
        title,
        alt or f"Particles in the {plane} plane",
        first,
        autoplay=autoplay,
        scale=scale,
    )


def shade_map(
    values: Float[np.ndarray, "across up"],
    land: Bool[np.ndarray, "columns rows"] | None = None,
) -> bytes:
    """Return values as a PNG that lightens the stage, around land if there is some."""
    finite = np.isfinite(values)
    if not finite.any():
        raise ValueError("no value of the background is finite: leave it out")
    low, high = values[finite].min(), values[finite].max()
    shares = np.where(finite, values - low, 0) / ((high - low) or 1)
    if land is not None:
        factors = np.divide(land.shape, shares.shape).tolist()
        larger = zoom(shares, factors, order=1, grid_mode=True, mode="nearest")
        shares = np.asarray(larger, np.float64)
    pixels: UInt8[np.ndarray, "up across 4"] = np.full(
        (*shares.T.shape, 4), MAP_GRAY, np.uint8
    )
    pixels[..., 3] = np.round(255 * MAP_OPACITY * shares.T[::-1]).astype(np.uint8)
    if land is not None:
        seen = land.T[::-1]
        pixels[seen] = (*LAND, 255)
        pixels[seen & ~binary_erosion(seen, border_value=1)] = (*SHORE, 255)
    return png_from_array(pixels)


def land_over(
    field: Any, across: Axis, up: Axis
) -> Bool[np.ndarray, "columns rows"] | None:
    """Return where between the ends of two axes a field has land, if anywhere."""
    found = inputs.land_of(field)
    if found is None or not found[2].any():
        return None
    x, y, land = found
    shape = LAND_ACROSS, round(LAND_ACROSS * float(np.clip(_shape(across, up), 0.1, 2)))
    inside, cells = [], []
    for edges, axis, count in zip((x, y), (across, up), shape, strict=True):
        width = (axis.high - axis.low) / count
        middles = axis.low + (np.arange(count) + 0.5) * width
        cell = np.searchsorted(edges, middles, side="right") - 1
        inside.append((cell >= 0) & (cell < len(edges) - 1))
        cells.append(np.clip(cell, 0, len(edges) - 2))
    return land[np.ix_(*cells)] & np.logical_and.outer(*inside)


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


# Dark blue over green to yellow: even in lightness, also without colors.
MAP_COLORS = blend_colors(("#440154", "#3b528b", "#21918c", "#5ec962", "#fde725"), 16)


def color_map(
    values: Float[np.ndarray, "across up"], high: float, pixels: int
) -> bytes:
    """Return values from 0 to `high` as a PNG, so many pixels a node, y upwards."""
    palette = np.array([list(bytes.fromhex(color[1:])) for color in MAP_COLORS])
    shares = np.nan_to_num(values / high).clip(0, 1)
    levels = np.round(shares * (len(palette) - 1)).astype(int)
    picture = palette[levels].astype(np.uint8).transpose(1, 0, 2)[::-1]
    return png_from_array(picture.repeat(pixels, axis=0).repeat(pixels, axis=1))


def _axes(paths: inputs.Paths, axes: tuple[int, int], bounds: Any) -> list[Axis]:
    names = inputs.axis_names(axes, paths)
    asked = inputs.axis_limits(bounds, axes), inputs.path_limits(paths, axes)
    return [
        Axis(name, *(given or _round_out(*found)))
        for name, given, found in zip(names, *asked, strict=True)
    ]


def _spread(count: int, most: int) -> Shown:
    """Return at most so many frames from the first to the last."""
    if most < 1:
        raise ValueError(f"max_frames is {most}: give at least 1")
    return np.linspace(0, count - 1, min(count, most)).round().astype(int)


def _shape(across: Axis, up: Axis) -> float:
    """Return height over width where both axes have one scale."""
    return float((up.high - up.low) / (across.high - across.low))


def _round_out(low: float, high: float) -> tuple[float, float]:
    """Return ends a little further out that take few digits to write."""
    step = 10.0 ** np.floor(np.log10(high - low)) / 20
    return float(np.floor(low / step) * step), float(np.ceil(high / step) * step)


def _starts(
    paths: inputs.Paths, particles: Slots, frames: Shown
) -> Bool[np.ndarray, "frames particles"]:
    """Return True where a line from the frame shown before would lead over a jump."""
    joined = joined_steps(paths, particles)
    jumps = np.zeros((len(joined) + 1, len(particles)), int)
    np.cumsum(~joined, axis=0, out=jumps[1:])
    shown = jumps[frames]
    return np.diff(shown, axis=0, prepend=shown[:1]) > 0


def _color_values(
    paths: inputs.Paths,
    particles: Slots,
    frames: Shown,
    axis: int,
    across: Axis,
    color: str,
) -> tuple[Float[np.ndarray, "frames particles"], Axis]:
    """Return what the color of each particle at each frame shows, and its range."""
    check_choice("color", color, COLORS)
    begun = life_starts(paths, particles)
    every = np.arange(len(begun))[:, None]
    first = np.maximum.accumulate(np.where(begun, every, 0), axis=0)[frames]
    if color == "age":
        ages = np.abs(paths.times[frames, None] - paths.times[first])
        return ages, Axis("age", 0, float(ages.max()) or 1.0)
    began = paths.positions[first, particles, axis]
    return began, Axis(f"{across.name} at the start", across.low, across.high)


def _shades(
    values: Float[np.ndarray, "frames particles"], scale: Axis
) -> Int[np.ndarray, " particles"] | Int[np.ndarray, "frames particles"]:
    most = (len(SPECTRUM) - 1) * BLENDS
    shares = np.nan_to_num((values - scale.low) / (scale.high - scale.low))
    shades = np.round(most * np.clip(shares, 0, 1)).astype(int)
    return shades[0] if (shades == shades[0]).all() else shades


def _background(background: Any, land: Any) -> Any:
    if isinstance(background, str | bytes):
        return background
    if background is None:
        return None if land is None else shade_map(np.zeros((2, 2)), land)
    values = np.asarray(background, np.float64)
    if values.ndim != 2:
        raise ValueError(
            f"background has shape {values.shape}: give values (across, up), a PNG or "
            "an SVG"
        )
    return shade_map(values, land)


def describe(part: Points, paths: Trajectory, plane: str, color: str) -> str:
    """Say what of the paths a canvas shows, and what its colors mean."""
    frames, particles = paths.alive.shape
    shown, count, _ = part.positions.shape
    some = lambda few, all: f"{few:,}" if few == all else f"{few:,} of {all:,}"
    across, up = part.x_axis, part.y_axis
    said = {
        "position": f"its {across.name} at the start",
        "age": "its age",
    }[color]
    words = (
        f"{some(count, particles)} particles at {some(shown, frames)} instants in the "
        f"{plane} plane. The color of a particle shows {said}."
    )
    if not FLATTEST <= _shape(across, up) <= TALLEST:
        words += " The two axes are not to one scale."
    return words


MOST = 2_000  # particles
ACROSS = 120  # nodes of a thumbnail


def show_trajectory(trajectory: Trajectory) -> Section:
    """Play the particles, and say how many there are and how far they went."""
    lengths = summarize(trajectory.compute_path_length())
    rows = [
        ("particles", trajectory.N),
        ("frames", trajectory.T),
        ("duration", float(trajectory.duration)),
        ("mean path length", lengths["mean"]),
        ("longest path", lengths["max"]),
        ("in the domain at the end", int(trajectory.alive[-1:].sum())),
    ]
    if not trajectory.alive.size:  # of no particles there is nothing to play
        return Section("Trajectory", Table(("what", "value"), rows))
    canvas = particle_canvas(trajectory, max_particles=MOST, first=-1)
    return Section("Trajectory", canvas, Table(("what", "value"), rows))


def show_field(field: Field) -> Section:
    """Say where and when the field is known, and draw its speed across the middle."""
    low, high = field.get_spatial_bounds()
    begin, end = field.get_time_bounds()
    sphere = field.frozen.sphere
    rows = [
        ("kind", type(field).__name__),
        ("geometry", "flat" if sphere is None else "sphere, degrees"),
        *((axis, _ends(a, b)) for axis, a, b in zip("xyz", low, high, strict=True)),
        ("times", "steady" if begin == end else _ends(begin, end)),
    ]
    table = Table(("what", "value"), rows)
    corners = np.array([low, high], np.float64)
    if not np.isfinite(corners[:, :2]).all() or (corners[0] >= corners[1])[:2].any():
        return Section(type(field).__name__, table)
    when = begin if np.isfinite(begin) else 0.0
    return Section(type(field).__name__, *_thumbnail(field, corners, when), table)


def _ends(low: float, high: float) -> str:
    return f"{low:.6g} to {high:.6g}" if np.isfinite([low, high]).any() else "all"


def _thumbnail(field: Field, corners: np.ndarray, when: float) -> list[Part]:
    size = corners[1] - corners[0]
    up = max(2, min(ACROSS, round(ACROSS * float(size[1] / size[0]))))
    (left, bottom, _), (right, top, _) = corners.tolist()
    x, y = np.linspace(left, right, ACROSS), np.linspace(bottom, top, up)
    middle = corners[:, 2].mean() if np.isfinite(corners[:, 2]).all() else 0.0
    places = np.stack(np.meshgrid(x, y, [middle], indexing="ij"), -1).reshape(-1, 3)
    speed = np.linalg.norm(np.asarray(field(places, when), np.float64), axis=1)
    speed = speed.reshape(ACROSS, up)
    most = float(np.nanmax(speed, initial=0.0)) or 1.0
    named = Axis(f"speed at z = {middle:.4g}, t = {when:.4g}", 0, most)
    picture = color_map(speed, most, pixels=4)
    alt = "Speed across the middle of the field"
    return [Figure(picture, alt=alt), ColorBar(named, MAP_COLORS)]
