"""Matplotlib figures outside pyplot's global state: made, saved, shown on demand."""

import importlib
from collections.abc import Generator
from contextlib import contextmanager
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


@contextmanager
def picture(
    dimensions: int = 2,
    ax: Any = None,
    figsize: tuple[float, float] | None = None,
    show: bool = True,
    save_path: Any = None,
    elev: float = 20,
    azim: float = 45,
) -> Generator[Any]:
    """Give axes to draw on, those given or new ones; then save and show them if asked.

    `elev` and `azim` are the angles of a view in space, in degrees. `show` opens a
    window or a notebook's output where there is one and the axes are new.
    """
    drawn = new_axes(dimensions, figsize, show) if ax is None else ax
    if dimensions == 3:
        drawn.view_init(elev=elev, azim=azim)
    yield drawn
    figure = drawn.figure.canvas.figure
    if save_path is not None:
        save_figure(figure, save_path)
    # Only what pyplot holds has a number, and somewhere to be shown.
    if show and ax is None and getattr(figure, "number", None) is not None:
        from matplotlib import pyplot

        pyplot.show()


def new_axes(
    dimensions: int, figsize: tuple[float, float] | None, show: bool = False
) -> Any:
    """Return axes of a new figure; one of pyplot only where pyplot is to show it."""
    load_package("matplotlib", "Plots")
    from matplotlib.figure import Figure as make

    if show and can_show():
        from matplotlib.pyplot import figure as make
    options = {"projection": "3d"} if dimensions == 3 else {}
    return make(figsize=figsize, layout="constrained").add_subplot(**options)


def can_show() -> bool:
    """Return whether there is a window or notebook to show a figure in."""
    from matplotlib import pyplot

    return pyplot.get_backend().lower() not in FILE_BACKENDS


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
