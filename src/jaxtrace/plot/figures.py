"""Matplotlib figures outside pyplot's global state: made, saved, shown on demand."""

import importlib
from pathlib import Path
from typing import Any

from jaxrig.atomic import atomic_write
from jaxrig.machine import install_command


def load_package(module: str, purpose: str) -> Any:
    """Import a module that a kind of picture needs.

    RuntimeError names it where it is missing, with the command that installs it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise RuntimeError(
            f"{purpose} need {module.partition('.')[0]}, which is not installed: "
            f"{install_command('viz')}"
        ) from error


DPI = 150  # of saved pictures
# Those that only write files; every other backend has somewhere to show a figure.
FILE_BACKENDS = frozenset({"agg", "cairo", "pdf", "pgf", "ps", "svg", "template"})


def open_axes(
    ax: Any,
    figsize: tuple[float, float] | None,
    show: bool,
    dimensions: int = 2,
    elev: float = 20,
    azim: float = 45,
) -> Any:
    """Return the axes given, or those of a new figure that can be shown if asked."""
    if ax is None:
        options = {"projection": "3d"} if dimensions == 3 else {}
        ax = new_figure(figsize, show).add_subplot(**options)
    if dimensions == 3:
        ax.view_init(elev=elev, azim=azim)
    return ax


def new_figure(figsize: tuple[float, float] | None, show: bool) -> Any:
    """Return a figure of its own; one of pyplot only where pyplot is to show it."""
    load_package("matplotlib", "Plots")
    if show and can_show():
        from matplotlib import pyplot

        return pyplot.figure(figsize=figsize, layout="constrained")
    from matplotlib.figure import Figure

    return Figure(figsize=figsize, layout="constrained")


def can_show() -> bool:
    """Return whether there is a window or notebook to show a figure in."""
    from matplotlib import pyplot

    return pyplot.get_backend().lower() not in FILE_BACKENDS


def finish(drawn: Any, save_path: Any, show: bool) -> None:
    """Save the figure of axes if asked, and show it where pyplot holds it."""
    figure = drawn.figure.canvas.figure
    if save_path is not None:
        save_figure(figure, save_path)
    if show and getattr(figure, "number", None) is not None:
        from matplotlib import pyplot

        pyplot.show()


def save_figure(figure: Any, path: Any, dpi: float = DPI) -> Path:
    """Write the figure, whole or not at all, in the format of the file's ending."""
    path = Path(path)
    known = figure.canvas.get_supported_filetypes()
    ending = path.suffix[1:].lower()
    if ending not in known:
        raise ValueError(
            f"{path.name!r} does not have a supported image suffix: use one of "
            f"{', '.join(known)}"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        figure.savefig(file, format=ending, dpi=dpi, facecolor=figure.get_facecolor())
    return path
