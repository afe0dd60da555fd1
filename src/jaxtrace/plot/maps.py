"""Maps of values over a plane: densities, slices and fields on grids."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxtrace.plot.figures import finish, load_package, open_axes
from jaxtrace.plot.inputs import axes_of
from jaxtrace.plot.static import Size, label_axes


def plot_density_2d(
    X: Any,
    Y: Any,
    D: Any,
    plane: str = "xy",
    levels: int | None = None,
    cutoff: tuple[float, float] = (0.0, 100.0),
    cmap: str = "viridis",
    label: str = "density",
    title: str | None = None,
    equal: bool = True,
    ax: Any = None,
    show: bool = True,
    save_path: Any = None,
    figsize: Size = None,
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
    axes = axes_of(plane)
    low, high = _color_range(values, cutoff)
    drawn = open_axes(ax, figsize, show)
    shown = _draw_map(drawn, across, up, values, levels, low, high, cmap)
    bar = drawn.figure.colorbar(shown, ax=drawn, label=label, shrink=0.8)
    bar.locator = load_package("matplotlib.ticker", "Plots").MaxNLocator(6)
    bar.update_ticks()
    label_axes(drawn, axes, (None, None), title, equal)
    finish(drawn, save_path, show and ax is None)
    return drawn


def plot_field_2d(
    values: Any,
    grid: Sequence[Any],
    plane: str = "xy",
    label: str = "",
    **options: Any,
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


def plot_slice_yz(
    Y: Any,
    Z: Any,
    D: Any,
    x0: float | None = None,
    levels: int = 20,
    cutoff_min: float = 0.0,
    cutoff_max: float = 95.0,
    **options: Any,
) -> Any:
    """Plot a density across the flow at `x0` as filled contours.

    `options` are those of `plot_density_2d`.
    """
    title = "" if x0 is None else f"x = {x0:.4g}"
    options = {"title": title, **options}
    cutoff = (cutoff_min, cutoff_max)
    return plot_density_2d(Y, Z, D, "yz", levels=levels, cutoff=cutoff, **options)


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


def _draw_map(
    drawn: Any,
    across: Float[np.ndarray, "rows columns"],
    up: Float[np.ndarray, "rows columns"],
    values: Float[np.ndarray, "rows columns"],
    levels: int | None,
    low: float,
    high: float,
    cmap: str,
) -> Any:
    masked = np.ma.masked_invalid(values)
    if levels is None:
        return drawn.pcolormesh(
            across, up, masked, vmin=low, vmax=high, cmap=cmap, shading="nearest"
        )
    if levels < 1:
        raise ValueError(f"levels is {levels}: give at least 1")
    steps = np.linspace(low, high, levels + 1)
    beyond = int((values < low).any()), int((values > high).any())
    extend = {(0, 0): "neither", (1, 0): "min", (0, 1): "max", (1, 1): "both"}[beyond]
    return drawn.contourf(across, up, masked, steps, cmap=cmap, extend=extend)
