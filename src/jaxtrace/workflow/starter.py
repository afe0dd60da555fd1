"""A commented case to begin with: for a flow, or fitted to the data in files."""

import glob
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxtrace.bounds import AXES, PLANES, coarse_axes
from jaxtrace.fields.curved_grid import CurvilinearGrid
from jaxtrace.fields.interpolation import (
    TensorGrid,
    choose_scheme,
    make_elements,
)
from jaxtrace.io.convert import span_words
from jaxtrace.io.formats import open_slices
from jaxtrace.io.geometry import (
    Geometry,
    corners,
    grid_points,
    storage_order,
)
from jaxtrace.io.series import Slices
from jaxtrace.types import is_url
from jaxtrace.workflow import templates
from jaxtrace.workflow.case import as_toml
from jaxtrace.workflow.tables import ESTIMATES, PICTURES

PARTICLES = 5000  # about so many, spread evenly over the flow
WIDE = 60.0  # degrees of latitude
FRAMES = 101
CELL_SHARE = 0.5  # of a cell that a particle crosses in one step, at most
FAST = 0.95  # quantile over the cells that the step is chosen for
STILL = 1e-3  # of the top speed: a velocity across a face that counts as none
LOOKED_AT = 5  # slices, evenly spaced, that the speeds are taken from


@dataclass(frozen=True, eq=False)
class Survey:
    """What a case for data files has to fit: their extent, instants and speeds."""

    names: tuple[str, ...]
    slices: Slices
    geometry: Geometry
    on_grid: bool
    low: Float[np.ndarray, "3"]
    high: Float[np.ndarray, "3"]
    top_speed: float
    mean_speed: float
    crossings: float  # cells per unit of time, of nearly the fastest
    closed: tuple[bool, bool, bool]  # axes along which nothing passes either end
    allow_nan: bool = False
    time_scale: float | None = None
    stated: dict[str, str] = field(default_factory=dict)  # in place of the files

    @property
    def steady(self) -> bool:
        """Whether there is one instant only."""
        return len(self.slices) == 1

    @property
    def radius(self) -> float:
        """The radius of a sphere, 0 where the data are flat."""
        return getattr(self.geometry, "radius", None) or 0.0

    @property
    def round(self) -> bool:
        """Whether positions are longitude and latitude."""
        return self.radius > 0

    @property
    def size(self) -> Float[np.ndarray, "3"]:
        """The extent along each axis."""
        return self.high - self.low


def survey(
    spec: Any,
    velocity_name: Any = None,
    allow_nan: bool = False,
    time_scale: float | None = None,
    **stated: str | None,
) -> Survey:
    """Look at the files of a series: the mesh, the times, some of the slices.

    `stated` are `geometry` and `velocity_units`, where the files do not say them.
    """
    # Not every format has these.
    given: dict[str, Any] = {"allow_nan": True} if allow_nan else {}
    given |= {"time_scale": time_scale} if time_scale is not None else {}
    known = {key: value for key, value in stated.items() if value is not None}
    given |= known
    slices = open_slices(spec, velocity_field_name=velocity_name, **given)
    geometry, _ = slices.read_slice(0)
    low, high = corners(geometry)
    looked = np.unique(np.linspace(0, len(slices) - 1, LOOKED_AT).astype(int))
    top, total, crossings, closed = 0.0, 0.0, 0.0, np.ones(3, bool)
    for index in looked.tolist():
        there, values = slices.read_slice(index)
        values = np.nan_to_num(values[..., :3])
        speeds = np.linalg.norm(values.reshape(-1, 3), axis=1)
        if not speeds.any():  # such as the first instant of a flow that begins at rest
            continue
        top, total = max(top, float(speeds.max())), total + float(speeds.mean())
        crossings = max(crossings, _crossing_rate(there, values / _scale(there)))
        closed &= _closed_ends(there, values)
    if not top:
        raise ValueError(
            f"{slices.labels[0]}: the velocity ({slices.velocity_name}) is zero "
            "everywhere: name another array, or files of a later time"
        )
    names = (spec,) if isinstance(spec, str) else tuple(spec)
    return Survey(
        names,
        slices,
        geometry,
        _becomes_grid(geometry),
        low,
        high,
        top,
        total / len(looked),
        crossings,
        (bool(closed[0]), bool(closed[1]), bool(closed[2])),
        allow_nan,
        time_scale,
        known,
    )


def _scale(geometry: Geometry) -> Any:
    """Return meters per unit of each coordinate: on a sphere, those of degrees."""
    if not isinstance(geometry, TensorGrid) or geometry.radius is None:
        return 1.0
    degree = np.radians(geometry.radius)
    narrow = np.maximum(np.cos(np.radians(geometry.axes[1])), 1e-3)
    scale = np.full((1, narrow.size, 1, 3), degree)
    scale[..., 0] *= narrow[None, :, None]
    scale[..., 2] = 1.0
    return scale


def _becomes_grid(geometry: Geometry) -> bool:
    """Return whether the loader keeps these nodes as a grid, which has no walls."""
    if isinstance(geometry, TensorGrid | CurvilinearGrid):
        return True
    cells = (geometry.connectivity, geometry.types, geometry.offsets)
    elements = make_elements(*cells) if geometry.has_elements else None
    return choose_scheme(geometry.points, elements, "auto", None).name == "trilinear"


def _crossing_rate(geometry: Geometry, values: np.ndarray) -> float:
    """Return how many cells nearly the fastest particle crosses per unit of time."""
    if isinstance(geometry, TensorGrid):
        parts = []
        for axis, nodes in enumerate(geometry.axes):
            if nodes.size > 1:
                shape = [1, 1, 1]
                shape[axis] = -1
                lengths = np.gradient(nodes).reshape(shape)
                parts.append(np.abs(values[..., axis]) / lengths)
        rates = np.max(parts, axis=0) if parts else np.zeros(1)
    elif isinstance(geometry, CurvilinearGrid):
        # Whatever its direction, a velocity crosses the shorter side at the most.
        across = np.linalg.norm(values[..., :2], axis=-1)
        rates = across / np.maximum(geometry.spacing().min(0), 1e-9)[..., None]
        if geometry.z.size > 1:
            rises = np.abs(values[..., 2]) / np.gradient(geometry.z)
            rates = np.maximum(rates, rises)
    elif geometry.n_cells:
        nodes, starts = geometry.connectivity, geometry.offsets[:-1]
        points, speeds = geometry.points[nodes], np.abs(values[nodes])
        lengths = np.maximum.reduceat(points, starts) - np.minimum.reduceat(
            points, starts
        )
        fastest = np.maximum.reduceat(speeds, starts)
        flat = lengths <= 1e-6 * lengths.max(axis=1, keepdims=True)
        rates = np.where(flat, 0.0, fastest / np.where(flat, 1, lengths)).max(axis=1)
    else:
        size = np.ptp(geometry.points, axis=0).max()
        spacing = size / max(geometry.n_points ** (1 / 3) - 1, 1)
        rates = np.linalg.norm(values, axis=1) / spacing
    moving = rates[rates > 0]
    return float(np.quantile(moving, FAST)) if moving.size else 0.0


def _closed_ends(geometry: Geometry, values: np.ndarray) -> np.ndarray:
    """Return the axes of a box along which the flow passes neither end."""
    if isinstance(geometry, CurvilinearGrid):
        return np.zeros(3, bool)
    if isinstance(geometry, TensorGrid):
        points, values = grid_points(geometry.axes), storage_order(values)
    else:
        points = geometry.points
    low, high = points.min(axis=0), points.max(axis=0)
    still = STILL * np.abs(values).max()
    at_end = (points == low) | (points == high)
    return ~np.any(at_end & (np.abs(values) > still), axis=0)


def filled_share(found: Survey) -> float:
    """Return about how much of the box around a mesh is inside it."""
    if isinstance(found.geometry, TensorGrid | CurvilinearGrid):
        return 1.0
    points, wide = found.geometry.points, found.size > 0
    count = max(1.0, len(points) / 8) ** (1 / max(wide.sum(), 1))
    bins = np.maximum(1, np.floor(count * np.ones(3))).astype(int)
    bins[~wide] = 1
    scaled = (points - found.low) / np.where(wide, found.size, 1)
    places = np.minimum((scaled * bins).astype(int), bins - 1)
    return len(np.unique(places, axis=0)) / bins.prod()


def lattice_counts(found: Survey) -> dict[str, int]:
    """Return particles per axis, about equally far apart, for `PARTICLES` inside."""
    wide = found.size > 0
    wide[2] &= not found.round  # a layer, near the surface
    sizes = found.size[wide]
    thin = np.zeros(sizes.shape, bool)
    while True:  # a thin axis has two: the others share what is left
        room = np.prod(sizes[~thin] / sizes.max()) * filled_share(found)
        left = PARTICLES / 2 ** int(thin.sum())
        spacing = sizes.max() * (room / left) ** (1 / int((~thin).sum()))
        more = thin | (sizes < 1.5 * spacing) & (sizes < sizes.max())
        if (more == thin).all():
            break
        thin = more
    counts = np.ones(3, int)
    counts[wide] = np.maximum(2, np.rint(sizes / spacing))
    return dict(zip(AXES, counts.tolist(), strict=True))


def seed_shares(found: Survey, counts: dict[str, int]) -> dict[str, list[float]]:
    """Return the part of the box to seed: on a sphere, only its highest level.

    The lattice has half a spacing left at each end.
    """
    shares = {
        axis: [round(0.5 / count, 4), round(1 - 0.5 / count, 4)]
        for axis, count in counts.items()
        if count > 1
    }
    return shares | ({"z": [0.999, 1.0]} if found.round and found.size[2] > 0 else {})


def two_digits(value: float) -> float:
    """Return a number rounded down to two digits.

    >>> two_digits(0.01278), two_digits(1999.0)
    (0.012, 1900.0)
    """
    unit = 10.0 ** (np.floor(np.log10(value)) - 1)
    return float(f"{np.floor(value / unit * (1 + 1e-9)) * unit:.2g}")


def time_lines(found: Survey) -> str:
    """Return the frames: the files' own span, or the time it takes to pass through."""
    first, last = float(found.slices.times[0]), float(found.slices.times[-1])
    if found.steady:
        length = found.size if not found.round else np.radians(found.size[:2])
        unit = found.radius if found.round else 1.0
        pass_through = float(length.max()) * unit / found.mean_speed
        last = first + two_digits(pass_through)
        why = "steady: the time to pass through at the mean speed"
    else:
        why = "that of the files; decreasing: backward"
        why += '; or dates: "2020-02-28"' if found.slices.time_units else ""
    frame = (last - first) / (FRAMES - 1)
    step = two_digits(min(CELL_SHARE / found.crossings, frame))
    steps = (FRAMES - 1) * int(np.ceil(frame / step - 0.01))
    return templates.TIME.format(
        span=as_toml([first, last]), why=why, frames=FRAMES, step=step, steps=steps
    )


def boundary_lines(found: Survey) -> str:
    """Return a boundary that fits: the mesh's own walls, or the faces of a grid."""
    if found.round:
        return templates.SPHERE
    if not found.on_grid:
        return templates.WALLS + templates.CHANNEL
    rules = {
        axis: "reflective" if closed else "absorbing"
        for axis, closed in zip(AXES, found.closed, strict=True)
    }
    if len(set(rules.values())) == 1:
        return templates.SAME_BOX.format(type=as_toml(rules["x"])) + templates.CHANNEL
    return templates.MIXED.format(rules=as_toml(rules)) + templates.CHANNEL


def plane_of(found: Survey) -> str:
    """Return the plane of the two longest axes."""
    if found.round:
        return "xy"
    longest = sorted(np.argsort(-found.size, kind="stable")[:2].tolist())
    return next(name for name, axes in PLANES.items() if list(axes) == longest)


def files_pattern(names: tuple[str, ...], folder: Path) -> str | list[str]:
    """Return what [data] says: one path or pattern, counted from a folder, or a list.

    Files that a pattern matches without any other are written as the pattern.
    """
    fixed = lambda name: os.path.isabs(name) or is_url(name)
    relative = lambda name: os.path.relpath(Path(name).expanduser(), folder)
    paths = [name if fixed(name) else relative(name) for name in names]
    if len(paths) == 1:
        return paths[0]
    pattern = re.sub(r"\d+(?=\D*$)", "*", paths[0])
    matched = glob.glob(str(folder / pattern))
    if {os.path.abspath(m) for m in matched} == {os.path.abspath(n) for n in names}:
        return pattern
    return paths


def starter(
    found: Survey | None = None, folder: Path = Path(), results: str = "out"
) -> str:
    """Return the text of a case in a folder for files, or for a flow without any."""
    if found is None:
        counts = {"x": 60, "y": 50, "z": 15}
        fraction, time = "# bounds_fraction = {x = [0.0, 0.2]}", templates.DEFAULT_TIME
        head, boundary, plane, pictures = templates.FLOW, templates.BOX, "xy", PICTURES
        methods, spread = ESTIMATES, "uniform"
    else:
        counts, plane = lattice_counts(found), plane_of(found)
        fraction = f"bounds_fraction = {as_toml(seed_shares(found, counts))}"
        time, boundary = time_lines(found), boundary_lines(found)
        # The slice is across x: a flat domain has none, and particles of one layer.
        deep = found.size.all() and not found.round
        pictures = [p for p in PICTURES if p != "slice" or deep]
        methods = ("kde",) if found.round else ESTIMATES
        # Rows of a lattice would crowd at the poles.
        spread = "random" if found.round and found.size[1] > WIDE else "uniform"
        named = tuple(found.slices.velocity_name.split(", "))
        head = templates.DATA.format(
            facts="\n# ".join(facts(found)),
            pattern=as_toml(files_pattern(found.names, folder)),
            velocity=as_toml(named[0] if len(named) == 1 else named),
            slices=len(found.slices),
            allow_nan=as_toml(found.allow_nan),
            scaled="# " if found.time_scale is None else "",
            time_scale=as_toml(found.time_scale or 0.01),
            guessed="" if "geometry" in found.stated else "# ",
            geometry=as_toml("sphere" if found.round else "flat"),
            assumed="" if "velocity_units" in found.stated else "# ",
            units=as_toml(found.stated.get("velocity_units", "m/s")),
        )
    return head + templates.REST.format(
        counts=as_toml(counts),
        fraction=fraction,
        time=time,
        boundary=boundary,
        plane=as_toml(plane),
        pictures=as_toml(pictures),
        methods=as_toml(methods),
        spread=as_toml(spread),
        results=as_toml(results),
        dtype=dtype_line(found),
    )


def dtype_line(found: Survey | None) -> str:
    """Return the precision of positions, and why."""
    if found is not None and not found.round:
        coarse = coarse_axes(np.stack([found.low, found.high]), np.float32)
        if coarse.size:
            unit = np.spacing(np.float32(np.abs(found.high[coarse[0]])))
            return f'"float64"              # float32 would round to {unit:.2g}'
    return '"float32"              # or float64'


def facts(found: Survey) -> list[str]:
    """Return what was found in the files, in words."""
    corner = lambda ends: ", ".join(f"{float(end):.6g}" for end in ends)
    slices = found.slices
    held, when = slices.held(), span_words(slices.times, vars(slices))
    return [
        f"{found.geometry.words} from ({corner(found.low)}) to ({corner(found.high)})",
        "one instant: a steady flow"
        if found.steady
        else f"{len(slices)} slices from t = {when}",
        f"speed {found.mean_speed:.3g} in the mean, {found.top_speed:.3g} at most",
        *slices.describe(),
        *([f"to sample along the paths: {', '.join(held)}"] if held else []),
    ]
