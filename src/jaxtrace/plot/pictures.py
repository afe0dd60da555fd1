"""Still pictures: particles and their paths in a plane or in space, and maps of values.

Every function returns the axes it drew on, and takes the options of `inputs.picture`:
`ax`, `figsize`, `show`, `save_path`, `elev` and `azim`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from jaxtrace.plot import inputs
from jaxtrace.plot.inputs import load_package, picture

COLOR_MAP = "viridis"
LEAST_WIDTH = 0.2  # of a degree of longitude on a map, of one of latitude
PATH_WIDTH, PATH_OPACITY = 0.9, 0.7  # the width in points
FIGURE = {"ax", "figsize", "show", "save_path", "elev", "azim"}  # of `picture`


def plot_particles(
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
    axis_labels: Sequence[str] | None = None,
    field: Any = None,
    color_label: str | None = None,
    **figure: Any,
) -> Any:
    """Plot particles as dots; of a record, those of the last frame.

    Arguments:
        plane: "xy", "xz", "yz", or "xyz" for a view from `elev` and `azim`, in degrees.
        bounds: ends of the axes, as a box in space or as a rectangle in the plane.
        color: one color, an array with a value or a color for each particle, or of a
            record the name of a variable, such as "age", or "speed"; values get a
            color bar, named by `color_label`.
        field: what the particles moved through; its land is drawn in the xy plane.
        s: area of a dot in square points.
        max_points: at most so many, spread evenly over the particles.
    """
    axes = inputs.view_axes(plane)
    points = inputs.read_points(positions)
    chosen = inputs.choose(len(points), every_kth, max_points)
    names = axis_labels or inputs.axis_names(axes, positions)
    with picture(len(axes), **figure) as drawn:
        color, name = inputs.color_values(positions, color, -1)
        draw_land(drawn, field, axes)
        _scatter(drawn, points, chosen, axes, color, s, alpha, color_label or name)
        label_axes(drawn, names, inputs.axis_limits(bounds, axes), title, equal)
    return drawn


def plot_trajectory(
    positions_over_time: Any,
    times: Any = None,
    frame_index: int = -1,
    plane: str = "xy",
    particle_indices: Any = None,
    show_paths: bool = True,
    color: Any = None,
    every_kth: int = 1,
    max_points: int | None = None,
    **options: Any,
) -> Any:
    """Plot particles at a frame, and the paths that led there.

    A path ends where its particle is recycled, absorbed or wrapped around a periodic
    domain. The other arguments and `options` are those of `plot_particles`.
    """
    axes = inputs.view_axes(plane)
    paths = inputs.read_paths(positions_over_time, times)
    frames, particles = paths.alive.shape
    if not -frames <= frame_index < frames:
        raise IndexError(f"frame_index is {frame_index}: there are {frames} frames")
    frame = frame_index % frames
    chosen = inputs.choose(particles, every_kth, max_points, particle_indices)
    names = inputs.axis_names(axes, paths)
    options = {"s": 12.0, "title": paths.clock(frame), "axis_labels": names, **options}
    figure = {name: options.pop(name) for name in FIGURE & options.keys()}
    with picture(len(axes), **figure) as drawn:
        color, name = inputs.color_values(positions_over_time, color, frame)
        colors = _path_colors(color, chosen, particles)
        if name is not None:
            _add_bar(drawn, color[chosen], name)
        if show_paths:
            color_of = dict(zip(chosen.tolist(), colors, strict=True))
            stretches = inputs.find_stretches(paths, chosen, frame)
            lines = [stretch.points[:, list(axes)] for stretch in stretches]
            _draw_lines(drawn, lines, [color_of[s.particle] for s in stretches])
        there = paths.at(frame, chosen)
        view = {name: figure[name] for name in ("elev", "azim") if name in figure}
        plot_particles(there, plane, color=colors, ax=drawn, **view, **options)
    return drawn


def plot_density_2d(
    X: Any,
    Y: Any,
    D: Any,
    plane: str = "xy",
    levels: int | None = None,
    cutoff: tuple[float, float] = (0.0, 100.0),
    cmap: str = COLOR_MAP,
    label: str = "density",
    title: str | None = None,
    equal: bool = True,
    axis_labels: Sequence[str] | None = None,
    **figure: Any,
) -> Any:
    """Plot a density over a plane as colors with a color bar.

    Arguments:
        X, Y, D: as `evaluate_2d` of an estimator returns them.
        levels: so many filled contours in place of continuous colors.
        cutoff: percentiles of the values at which the colors end.
    """
    across, up, values = (np.asarray(part, np.float64) for part in (X, Y, D))
    if not across.shape == up.shape == values.shape or values.ndim != 2:
        raise ValueError(
            f"X, Y and D have shapes {across.shape}, {up.shape} and {values.shape}: "
            "give three arrays of one 2-D shape"
        )
    if levels is not None and levels < 1:
        raise ValueError(f"levels is {levels}: give at least 1")
    names = axis_labels or inputs.axis_names(inputs.axes_of(plane))
    low, high = _color_range(values, cutoff)
    masked = np.ma.masked_invalid(values)
    with picture(**figure) as drawn:
        if levels is None:
            style: dict[str, Any] = {"vmin": low, "vmax": high, "shading": "nearest"}
            shown = drawn.pcolormesh(across, up, masked, cmap=cmap, **style)
        else:
            beyond = bool((values < low).any()), bool((values > high).any())
            ends = {(True, False): "min", (False, True): "max", (True, True): "both"}
            style = {"cmap": cmap, "extend": ends.get(beyond, "neither")}
            steps = np.linspace(low, high, levels + 1)
            shown = drawn.contourf(across, up, masked, steps, **style)
        bar = drawn.figure.colorbar(shown, ax=drawn, label=label, shrink=0.8)
        bar.locator = load_package("matplotlib.ticker", "Plots").MaxNLocator(6)
        bar.update_ticks()
        label_axes(drawn, names, (None, None), title, equal)
    return drawn


def plot_field_2d(
    values: Any, grid: Sequence[Any], plane: str = "xy", label: str = "", **options: Any
) -> Any:
    """Plot values on a grid, such as FTLE, as colors with a color bar.

    `grid` holds the coordinates along both axes of the plane and `values[i, j]` belongs
    to the i-th across and the j-th up; `options` are those of `plot_density_2d`.
    """
    if len(grid) != 2:
        raise ValueError(f"grid has {len(grid)} axes: give those of the plane, two")
    array = np.asarray(values)
    shape = tuple(np.size(axis) for axis in grid)
    if array.shape != shape:
        raise ValueError(f"values have shape {array.shape}: this grid needs {shape}")
    across, up = np.meshgrid(*(np.ravel(axis) for axis in grid))
    return plot_density_2d(across, up, array.T, plane, label=label, **options)


def label_axes(
    drawn: Any,
    names: Sequence[str],
    limits: Sequence[inputs.Limits],
    title: str | None,
    equal: bool,
) -> None:
    """Name the axes, set their ends, and give them one scale if equal."""
    for letter, name, ends in zip("xyz", names, limits, strict=False):
        getattr(drawn, f"set_{letter}label")(name)
        if ends is not None:
            getattr(drawn, f"set_{letter}lim")(*ends)
    if title:
        drawn.set_title(title)
    if equal and tuple(names[:2]) == inputs.MAP_AXES:
        # A map is true to shape in its middle; of a polar region it stays readable.
        middle = np.radians(np.mean(drawn.get_ylim()))
        drawn.set_aspect(1 / max(np.cos(middle), LEAST_WIDTH))
    elif equal:
        drawn.set_aspect("equal")


def _scatter(
    drawn: Any,
    points: Float[np.ndarray, "particles 3"],
    chosen: Int[np.ndarray, " chosen"],
    axes: Sequence[int],
    color: Any,
    s: float,
    alpha: float,
    label: str | None,
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
        drawn.figure.colorbar(drawn_points, ax=drawn, shrink=0.8, label=label or "")


def _add_bar(drawn: Any, values: Float[np.ndarray, " chosen"], label: str) -> None:
    """Add the color bar of values that are drawn as colors already."""
    from matplotlib.cm import ScalarMappable

    shown = ScalarMappable(_scale(values), COLOR_MAP)
    drawn.figure.colorbar(shown, ax=drawn, shrink=0.8, label=label)


def _scale(values: np.ndarray) -> Any:
    """Return what maps values to shares of a color map; where there is none, any."""
    from matplotlib.colors import Normalize

    known = values[np.isfinite(values)]
    return Normalize(known.min(), known.max()) if known.size else Normalize(0, 1)


def draw_land(drawn: Any, field: Any, axes: Sequence[int]) -> None:
    """Draw the land of a field on a map, with its coastline."""
    found = None if tuple(axes) != (0, 1) else inputs.land_of(field)
    if found is None:
        return
    x, y, land = found
    drawn.pcolormesh(
        x,
        y,
        np.ma.masked_equal(land.T.astype(float), 0),
        cmap="Greys",
        vmin=0,
        vmax=4,
        zorder=0,
    )
    edges = [[(x[i], y[j]), (x[i], y[j + 1])] for i, j in _changes(land, 0)]
    edges += [[(x[i], y[j]), (x[i + 1], y[j])] for i, j in _changes(land, 1)]
    lines = load_package("matplotlib.collections", "plotting").LineCollection
    drawn.add_collection(lines(edges, colors="dimgray", linewidths=0.8, zorder=1))


def _changes(land: np.ndarray, axis: int) -> list[tuple[int, int]]:
    """Return the cells that differ from the one before along an axis."""
    found = np.stack(np.nonzero(np.diff(land, axis=axis)), 1)
    return [(i + (axis == 0), j + axis) for i, j in found.tolist()]


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


def _path_colors(
    color: Any, chosen: Int[np.ndarray, " chosen"], particles: int
) -> Float[np.ndarray, "chosen 4"]:
    """Return one color for each particle, which its path and its dot share."""
    from matplotlib import colormaps
    from matplotlib.colors import to_rgba, to_rgba_array

    if color is None:
        return colormaps[COLOR_MAP](np.linspace(0, 0.9, len(chosen)))
    values = _per_particle(color, particles)
    if values is None:
        return np.tile(to_rgba(color), (len(chosen), 1))
    if values.ndim == 1 and values.dtype.kind in "fiub":
        picked = values[chosen].astype(np.float64)
        return colormaps[COLOR_MAP](_scale(picked)(picked))
    return to_rgba_array(values[chosen])


def _draw_lines(drawn: Any, lines: list[np.ndarray], colors: list[Any]) -> None:
    from matplotlib.collections import LineCollection
    from mpl_toolkits.mplot3d.art3d import Line3DCollection

    if not lines:
        return
    flat = lines[0].shape[1] == 2
    style: dict[str, Any] = {"linewidths": PATH_WIDTH, "alpha": PATH_OPACITY}
    style["colors"] = colors
    drawn.add_collection((LineCollection if flat else Line3DCollection)(lines, **style))
    if flat:
        drawn.autoscale_view()
    else:
        drawn.auto_scale_xyz(*np.concatenate(lines).T)


def _color_range(
    values: Float[np.ndarray, "rows columns"], cutoff: tuple[float, float]
) -> tuple[float, float]:
    if not 0 <= cutoff[0] < cutoff[1] <= 100:
        raise ValueError(f"cutoff is {cutoff}: give two rising percentiles, 0 to 100")
    finite = values[np.isfinite(values)]
    if not finite.size:
        raise ValueError("no value is finite: there is nothing to draw")
    low, high = (float(end) for end in np.percentile(finite, cutoff))
    if low < high:
        return low, high
    # One value everywhere: any range around it gives one color.
    room = abs(low) or 1.0
    return low - room, low + room
