"""Still pictures of particles and of their paths, in a plane or in space.

Every function takes positions or any recorded paths and returns the axes it drew on.
`show` opens a window or a notebook's output where there is one and the axes are new.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from jaxtrace.plot.figures import finish, load_package, open_axes
from jaxtrace.plot.inputs import (
    Limits,
    Paths,
    Stretch,
    axes_of,
    axis_limits,
    axis_names,
    choose,
    find_stretches,
    read_paths,
    read_points,
)

Size = tuple[float, float] | None
SPACE = (0, 1, 2)
COLOR_MAP = "viridis"
PATH_WIDTH, PATH_OPACITY = 0.9, 0.7  # the width in points


def plot_particles_2d(
    positions: Any,
    plane: str = "xy",
    bounds: Any = None,
    color: Any = None,
    s: float = 1.5,
    alpha: float = 0.9,
    every_kth: int = 1,
    max_points: int | None = None,
    title: str | None = None,
    equal: bool = True,
    ax: Any = None,
    show: bool = True,
    save_path: Any = None,
    figsize: Size = None,
) -> Any:
    """Plot particles as dots in a plane; of a record, those of the last frame.

    Arguments:
        bounds: ends of the axes, as a box in space or as a rectangle in the plane.
        color: one color, or an array with a value or a color for each particle;
            values get a color bar.
        s: area of a dot in square points.
        max_points: at most so many, spread evenly over the particles.
    """
    axes = axes_of(plane)
    points = read_points(positions)
    chosen = choose(len(points), every_kth, max_points)
    drawn = open_axes(ax, figsize, show)
    _scatter(drawn, points, chosen, axes, color, s, alpha)
    label_axes(drawn, axes, axis_limits(bounds, axes), title, equal)
    finish(drawn, save_path, show and ax is None)
    return drawn


def plot_particles_3d(
    positions: Any,
    bounds: Any = None,
    color: Any = None,
    s: float = 1.0,
    alpha: float = 0.9,
    every_kth: int = 1,
    max_points: int | None = None,
    title: str | None = None,
    equal: bool = True,
    ax: Any = None,
    show: bool = True,
    save_path: Any = None,
    figsize: Size = None,
    elev: float = 20,
    azim: float = 45,
) -> Any:
    """Plot particles as dots, seen from an elevation and azimuth in degrees.

    The other arguments are those of `plot_particles_2d`.
    """
    points = read_points(positions)
    chosen = choose(len(points), every_kth, max_points)
    drawn = _open_space(ax, figsize, show, elev, azim)
    _scatter(drawn, points, chosen, SPACE, color, s, alpha)
    label_axes(drawn, SPACE, axis_limits(bounds, SPACE), title, equal)
    finish(drawn, save_path, show and ax is None)
    return drawn


def plot_trajectory_2d(
    positions_over_time: Any,
    times: Any = None,
    frame_index: int = -1,
    plane: str = "xy",
    particle_indices: Any = None,
    show_paths: bool = True,
    show_arrows: bool = False,
    figsize: Size = None,
    ax: Any = None,
    show: bool = True,
    save_path: Any = None,
    **options: Any,
) -> Any:
    """Plot particles at a frame in a plane, and the paths that led there.

    A path ends where its particle is recycled, absorbed or wrapped around a periodic
    domain. `show_arrows` puts the direction on each; `options` are those of
    `plot_particles_2d`.
    """
    axes = axes_of(plane)
    scene = _Scene(positions_over_time, times, frame_index, particle_indices, options)
    drawn = open_axes(ax, figsize, show)
    if show_paths or show_arrows:
        stretches = scene.stretches()
        if show_paths:
            _draw_lines(drawn, stretches, scene.color_of, axes)
        if show_arrows:
            _draw_arrows(drawn, stretches, scene.color_of, axes)
    plot_particles_2d(scene.points, plane=plane, ax=drawn, **scene.options)
    finish(drawn, save_path, show and ax is None)
    return drawn


def plot_trajectory_3d(
    positions_over_time: Any,
    times: Any = None,
    frame_index: int = -1,
    particle_indices: Any = None,
    show_paths: bool = True,
    figsize: Size = None,
    ax: Any = None,
    show: bool = True,
    save_path: Any = None,
    elev: float = 20,
    azim: float = 45,
    **options: Any,
) -> Any:
    """Plot particles at a frame in space, and the paths that led there.

    `options` are those of `plot_particles_3d`.
    """
    scene = _Scene(positions_over_time, times, frame_index, particle_indices, options)
    drawn = _open_space(ax, figsize, show, elev, azim)
    if show_paths:
        _draw_lines(drawn, scene.stretches(), scene.color_of, SPACE)
    plot_particles_3d(scene.points, ax=drawn, elev=elev, azim=azim, **scene.options)
    finish(drawn, save_path, show and ax is None)
    return drawn


class _Scene:
    """The chosen particles of a frame, the paths to it, and one color for both."""

    def __init__(
        self,
        given: Any,
        times: Any,
        frame_index: int,
        particle_indices: Any,
        options: dict[str, Any],
    ):
        self.paths: Paths = read_paths(given, times)
        frames, particles = self.paths.alive.shape
        if not -frames <= frame_index < frames:
            raise IndexError(f"frame_index is {frame_index}: there are {frames} frames")
        self.frame = frame_index % frames
        self.chosen = choose(
            particles,
            options.pop("every_kth", 1),
            options.pop("max_points", None),
            particle_indices,
        )
        self.points = self.paths.at(self.frame, self.chosen)
        self.options = {"s": 12.0, "title": self.paths.clock(self.frame), **options}
        self.colors = self._choose_colors(self.options.pop("color", None), particles)
        self.options["color"] = self.colors
        rows = {particle: row for row, particle in enumerate(self.chosen.tolist())}
        self.color_of = lambda particle: self.colors[rows[particle]]

    def stretches(self) -> list[Stretch]:
        """Return lines up to the frame."""
        return find_stretches(self.paths, self.chosen, self.frame)

    def _choose_colors(
        self, color: Any, particles: int
    ) -> Float[np.ndarray, "chosen 4"]:
        load_package("matplotlib", "Plots")
        from matplotlib import colormaps
        from matplotlib.colors import Normalize, to_rgba, to_rgba_array

        count = len(self.chosen)
        if color is None:
            return colormaps[COLOR_MAP](np.linspace(0, 0.9, count))
        values = _per_particle(color, particles)
        if values is None:
            return np.tile(to_rgba(color), (count, 1))
        if values.ndim == 1 and values.dtype.kind in "fiub":
            scaled = Normalize()(values[self.chosen].astype(np.float64))
            return colormaps[COLOR_MAP](scaled)
        return to_rgba_array(values[self.chosen])


def label_axes(
    drawn: Any,
    axes: Sequence[int],
    limits: Sequence[Limits],
    title: str | None,
    equal: bool,
) -> None:
    """Name the axes, set their ends, and give them one scale if equal."""
    for letter, name, ends in zip("xyz", axis_names(axes), limits, strict=False):
        getattr(drawn, f"set_{letter}label")(name)
        if ends is not None:
            getattr(drawn, f"set_{letter}lim")(*ends)
    if title:
        drawn.set_title(title)
    if equal:
        drawn.set_aspect("equal")


def _open_space(ax: Any, figsize: Size, show: bool, elev: float, azim: float) -> Any:
    drawn = open_axes(ax, figsize, show, "3d")
    drawn.view_init(elev=elev, azim=azim)
    return drawn


def _scatter(
    drawn: Any,
    points: Float[np.ndarray, "particles 3"],
    chosen: Int[np.ndarray, " chosen"],
    axes: Sequence[int],
    color: Any,
    s: float,
    alpha: float,
) -> None:
    there = chosen[np.isfinite(points[chosen]).all(axis=-1)]
    columns = [points[there, axis] for axis in axes]
    style = {"s": s, "alpha": alpha, "linewidths": 0}
    values = _per_particle(color, len(points))
    if values is None:
        drawn.scatter(*columns, color=color or "tab:blue", **style)
        return
    drawn_points = drawn.scatter(*columns, c=values[there], **style)
    if values.ndim == 1 and values.dtype.kind in "fiu":
        drawn.figure.colorbar(drawn_points, ax=drawn, shrink=0.8)


def _per_particle(color: Any, count: int) -> np.ndarray | None:
    """Return the values or colors of all particles; None where one color serves all."""
    if color is None or isinstance(color, str | tuple):
        return None
    values = np.asarray(color)
    if len(values) != count:
        raise ValueError(
            f"color has {len(values)} entries: give one color, or one entry for each "
            f"of the {count} particles"
        )
    return values


def _draw_lines(
    drawn: Any,
    stretches: Sequence[Stretch],
    color_of: Callable[[int], Any],
    axes: Sequence[int],
) -> None:
    from matplotlib.collections import LineCollection
    from mpl_toolkits.mplot3d.art3d import Line3DCollection

    lines = [stretch.points[:, list(axes)] for stretch in stretches]
    if not lines:
        return
    collection = LineCollection if len(axes) == 2 else Line3DCollection
    drawn.add_collection(
        collection(
            lines,
            colors=[color_of(stretch.particle) for stretch in stretches],
            linewidths=PATH_WIDTH,
            alpha=PATH_OPACITY,
        )
    )
    if len(axes) == 2:
        drawn.autoscale_view()
    else:
        drawn.auto_scale_xyz(*np.concatenate(lines).T)


def _draw_arrows(
    drawn: Any,
    stretches: Sequence[Stretch],
    color_of: Callable[[int], Any],
    axes: Sequence[int],
) -> None:
    """Draw an arrow head in the middle of each stretch that moves in the plane."""
    moving = []
    for stretch in stretches:
        points = stretch.points[:, list(axes)]
        middle = (len(points) - 1) // 2
        step = points[middle + 1] - points[middle]
        if step.any():
            moving.append((points[middle], step, color_of(stretch.particle)))
    if not moving:
        return
    places, steps, colors = (np.array(part) for part in zip(*moving, strict=True))
    steps = steps / np.linalg.norm(steps, axis=1, keepdims=True)
    drawn.quiver(
        *places.T,
        *steps.T,
        color=colors,
        angles="xy",
        pivot="mid",
        units="dots",
        scale=0.08,
        width=3,
        headwidth=5,
        headlength=6,
        headaxislength=6,
    )
