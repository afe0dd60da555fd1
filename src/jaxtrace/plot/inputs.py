"""What plots share: positions or recorded paths in one form, lines that break, and
Matplotlib figures outside pyplot's global state: made, saved, shown on demand.

A line ends where its particle wraps around a period or its slot is used again.
"""

import importlib
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from jaxrig.atomic import atomic_write
from jaxrig.machine import install_command
from jaxtrace.analysis.density import plane_axes
from jaxtrace.bounds import AXES, box_bounds
from jaxtrace.fields.base import find_land
from jaxtrace.fields.curvilinear import CurvilinearField
from jaxtrace.fields.triangles import Triangles
from jaxtrace.io.convert import as_dates
from jaxtrace.paths import joined_steps, own_velocities
from jaxtrace.trajectory import Trajectory, as_paths
from jaxtrace.types import PathRecord

Limits = tuple[float, float] | None  # of one axis; None where the data decide
MAP_AXES = ("longitude", "latitude")
RASTER = 250  # cells each way of a map of land


class Paths(Trajectory):
    """Recorded paths to draw, without gaps in their numbers where particles are."""

    timed: bool = True
    """Whether the times are known; else they are frame numbers."""

    def at(
        self, frame: int, chosen: Int[np.ndarray, " chosen"]
    ) -> Float[np.ndarray, "chosen 3"]:
        """Return positions of chosen particles at a frame, NaN where there is none."""
        there = self.alive[frame, chosen, None]
        return np.where(there, self.positions[frame, chosen], np.nan)

    def clock(self, frame: int) -> str:
        """Return the instant of a frame in words."""
        return instant(self, frame) if self.timed else f"frame {self.times[frame]:.0f}"


def instant(record: PathRecord, frame: int) -> str:
    """Return the time of a frame in words: a date where the data have dates."""
    time = record.times[frame]
    dates = as_dates(np.array([time]), record.metadata)
    if dates is None:
        return f"t = {time:.4g}"
    return str(dates[0])[:16].replace("T", " ")


def color_values(given: Any, color: Any, frame: int) -> tuple[Any, str | None]:
    """Return what a name stands for at a frame, and the name: a variable or the speed.

    Anything else is a color, or a value for each particle, and stays as it is.
    """
    if not isinstance(color, str):
        return color, None
    variables = getattr(given, "variables", {})
    if color in variables:
        return _last_known(variables[color][: frame % len(given.times) + 1]), color
    if color == "speed" and isinstance(given, Trajectory) and given.T > 1:
        velocities = own_velocities(given)
        if velocities is not None:
            return np.linalg.norm(velocities[frame], axis=-1), color
        steps = given.compute_speeds()
        return steps[min(frame % given.T, len(steps) - 1)], color
    colors = load_package("matplotlib.colors", "plotting")
    if not colors.is_color_like(color):
        known = ", ".join(["speed", *variables])
        raise ValueError(
            f"color {color!r} is no color and no variable of these paths, which have "
            f"{known}: sample it, or keep it by a behavior, in the run"
        )
    return color, None


def _last_known(values: Float[np.ndarray, "frames n"]) -> Float[np.ndarray, " n"]:
    """Return the last value of each particle, which may be gone by now."""
    known = np.isfinite(values[::-1])
    last = len(values) - 1 - np.argmax(known, axis=0)
    return values[last, np.arange(values.shape[1])]


def land_of(field: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return edges of cells along x and y, and where the top ones are land, if any."""
    frozen = getattr(field, "frozen", None)
    land, axes = getattr(frozen, "land", None), getattr(frozen, "axes", None)
    if isinstance(frozen, CurvilinearField):
        return _land_seen(frozen)
    if land is None or axes is None:
        return None
    x, y, z = (np.asarray(axis.nodes) for axis in axes)
    cells = np.asarray(land).reshape(len(x), len(y), len(z))
    top = cells[:-1, :-1, max(len(z) - 2, 0)]
    return x, y, top


def _land_seen(
    field: CurvilinearField,
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return the land of curved cells as a raster over their box.

    Where a mesh has no cells there is land, as far as it can tell.
    """
    low, high = field.bounds()
    across, up = (np.linspace(low[c], high[c], RASTER + 1) for c in (0, 1))
    x, y = (np.asarray((e[1:] + e[:-1]) / 2, np.float32) for e in (across, up))
    x, y = (a.ravel() for a in np.meshgrid(x, y, indexing="ij"))
    places = np.stack([x, y, np.full_like(x, high[2])], 1)
    if isinstance(field.quads, Triangles):
        land = ~np.asarray(field.contains(places))
    elif field.land is None:
        return None
    else:
        land = np.asarray(find_land(field, jnp.asarray(places)))
    return across, up, land.reshape(RASTER, RASTER)


def read_paths(given: Any, times: Any = None) -> Paths:
    """Return paths from a record, or from positions (T, N, 3) or (T, N, 2).

    A 2-D array is one particle over time. `times` replaces those of a record.
    """
    if isinstance(given, PathRecord):
        paths = Paths(
            given.positions,
            given.times if times is None else times,
            metadata=given.metadata,
            alive=given.alive & np.isfinite(given.positions).all(axis=-1),
            generation=given.generation,
        )
    else:
        positions = as_paths(given, "positions")
        paths = Paths(positions, np.arange(len(positions)) if times is None else times)
        paths.timed = times is not None
    if not paths.T:
        raise ValueError("the paths have no frame: a picture needs at least one")
    return paths


def read_points(given: Any) -> Float[np.ndarray, "particles 3"]:
    """Return points from (N, 3) or (N, 2); of paths those of the last frame."""
    if not isinstance(given, PathRecord) and np.ndim(given) < 3:
        return as_paths(given, "positions")[:, 0]
    paths = read_paths(given)
    return paths.at(paths.T - 1, np.arange(paths.N))


def choose(
    count: int, every_kth: int = 1, max_points: int | None = None, indices: Any = None
) -> Int[np.ndarray, " chosen"]:
    """Return every k-th particle; of more than `max_points`, so many at random."""
    for name, value in (("every_kth", every_kth), ("max_points", max_points)):
        if value is not None and value < 1:
            raise ValueError(f"{name} is {value}: give a whole number of at least 1")
    chosen = np.arange(count)
    if indices is not None:
        named = np.asarray(indices, dtype=int)
        if named.size and not -count <= named.min() <= named.max() < count:
            raise IndexError(
                f"particle_indices run from {named.min()} to {named.max()}: there are "
                f"{count} particles"
            )
        chosen = chosen[named]
    chosen = chosen[::every_kth]
    if max_points is not None and len(chosen) > max_points:
        # Every tenth of seeds on a lattice would be drawn as stairs.
        some = np.random.default_rng(0).permutation(len(chosen))[:max_points]
        chosen = chosen[np.sort(some)]
    return chosen


def choose_frames(count: int, stride: int) -> range:
    """Return every `stride`-th frame from the first."""
    if stride < 1:
        raise ValueError(f"frame_stride is {stride}: give a whole number of at least 1")
    return range(0, count, stride)


def axes_of(plane: str) -> tuple[int, int]:
    """Return the axes across and up of a plane "xy", "xz" or "yz"."""
    return plane_axes(plane.lower(), 3)


def view_axes(plane: str) -> tuple[int, ...]:
    """Return the axes to draw: the two of a plane, or all three for "xyz"."""
    return (0, 1, 2) if plane.lower() == "xyz" else axes_of(plane)


def axis_limits(bounds: Any, axes: Sequence[int]) -> list[Limits]:
    """Return ends of the axes from the bounds of a box, or of a plane in its own two
    axes.
    """
    if bounds is None:
        return [None] * len(axes)
    box = box_bounds(bounds)
    flat = np.shape(bounds) in ((4,), (2, 2)) and len(axes) == 2
    rows = (0, 1) if flat else axes
    return [
        (float(box.lo[row]), float(box.hi[row])) if box.active[row] else None
        for row in rows
    ]


def path_limits(paths: Paths, axes: Sequence[int]) -> list[tuple[float, float]]:
    """Return ends of the axes that hold every particle of every frame, with a little
    room.
    """
    where = paths.alive[..., None]
    shown = paths.positions[..., list(axes)]
    if not where.any():
        return [(0.0, 1.0)] * len(axes)
    low = shown.min(axis=(0, 1), where=where, initial=np.inf).astype(np.float64)
    high = shown.max(axis=(0, 1), where=where, initial=-np.inf).astype(np.float64)
    # A flat axis gets the extent of the widest one, or of its own value.
    widest = float((high - low).max()) or float(np.abs(high).max()) or 1.0
    room = np.where(high > low, 0.03 * (high - low), 0.25 * widest)
    return list(zip((low - room).tolist(), (high + room).tolist(), strict=True))


def axis_names(axes: Sequence[int], given: Any = None) -> list[str]:
    """Return the letters of the axes, or what they are on the sphere."""
    metadata = getattr(given, "metadata", {})
    spherical = metadata.get("coordinate_system") == "spherical"
    names = (*MAP_AXES, "z") if spherical else AXES
    return [names[axis] for axis in axes]


class Stretch(NamedTuple):
    """Positions on consecutive frames that one line may join."""

    particle: int
    points: Float[np.ndarray, "points 3"]


def find_stretches(
    record: PathRecord, chosen: Int[np.ndarray, " chosen"], last: int
) -> list[Stretch]:
    """Return the stretches of chosen particles up to a frame, in the order chosen."""
    joined = joined_steps(record, chosen)[:last]
    found = []
    for column, particle in enumerate(chosen.tolist()):
        (cuts,) = np.nonzero(~joined[:, column])
        path = record.positions[: last + 1, particle]
        pieces = np.split(path, cuts + 1)
        found += [Stretch(particle, piece) for piece in pieces if len(piece) > 1]
    return found


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
