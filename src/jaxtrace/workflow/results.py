"""Results of a case: densities and Lyapunov exponents over planes, pictures, a page."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxrig.atomic import atomic_write
from jaxrig.report import Beside, Code, Figure, Fold, Part, Report, Section, Table, Text
from jaxtrace.analysis.density import PLANES
from jaxtrace.analysis.estimators import KDEEstimator, SPHDensityEstimator
from jaxtrace.analysis.flow_maps import ftle
from jaxtrace.bounds import Box, box_bounds
from jaxtrace.plot.canvas import describe, particle_canvas
from jaxtrace.plot.inputs import axis_names, instant
from jaxtrace.plot.pictures import (
    plot_density_2d,
    plot_field_2d,
    plot_particles,
    plot_trajectory,
)
from jaxtrace.trajectory import Trajectory
from jaxtrace.types import ParticleStatus
from jaxtrace.workflow.case import CASE_FILE, Case
from jaxtrace.workflow.prepare import find_domain, find_span, make_field, working
from jaxtrace.workflow.tables import Density, Pictures

SLICE_PLACE = 0.7  # of the domain along x, where the case says nothing
SLAB_SHARE = 0.1  # of the domain along its normal, how thick a slab is by default


@dataclass(frozen=True, eq=False)
class DensityMap:
    """A density over a plane, in the order of meshgrid "xy", and what it is made of."""

    method: str
    plane: str
    x: Float[np.ndarray, "up across"]
    y: Float[np.ndarray, "up across"]
    values: Float[np.ndarray, "up across"]
    particles: int
    length: float

    def facts(self) -> dict[str, Any]:
        """Return what a report says of it."""
        return {
            "plane": self.plane,
            "particles": self.particles,
            "length": self.length,
            "lowest": float(self.values.min()),
            "highest": float(self.values.max()),
        }


def estimate(
    table: Density,
    positions: Float[np.ndarray, "particles 3"],
    domain: Box,
    plane: str,
    slab: tuple[float, float] | None = None,
) -> tuple[list[DensityMap], list[str]]:
    """Return a map for each method, and the reason for each one missing.

    `slab` is a place and a thickness along the normal of the plane; without it all
    particles are seen in the plane.
    """
    axes = PLANES[plane]
    chosen = positions[np.isfinite(positions).all(axis=1)]
    if slab is not None:
        normal = chosen[:, 3 - sum(axes)]
        chosen = chosen[np.abs(normal - slab[0]) <= slab[1] / 2]
    points = chosen[:, list(axes)]
    ends = [(float(domain.lo[a]), float(domain.hi[a])) for a in axes]
    reason = _why_not(points, ends)
    if reason:
        where = "" if slab is None else f" at {slab[0]:.4g}"
        return [], [f"no density in the {plane} plane{where}: {reason}"]
    bounds = np.array(ends)
    methods, notes = list(table.methods), []
    few = table.sph_adaptive and len(points) <= table.sph_n_neighbors
    if "sph" in methods and few:
        methods.remove("sph")
        notes = [
            f"no sph density in the {plane} plane: {len(points)} particles have no "
            f"{table.sph_n_neighbors} neighbors each, lower sph_n_neighbors"
        ]
    return [_map(table, m, points, bounds, plane) for m in methods], notes


def _why_not(points: np.ndarray, ends: list[tuple[float, float]]) -> str:
    if any(low == high for low, high in ends):
        return "the domain is flat there"
    if len(points) < 2:
        return f"{len(points)} particles are left"
    if (np.ptp(points, axis=0) == 0).any():
        return "all particles lie on a line"
    return ""


def _map(
    table: Density, method: str, points: np.ndarray, bounds: np.ndarray, plane: str
) -> DensityMap:
    grid: dict[str, Any] = {"resolution": table.resolution, "bounds": bounds}
    if method == "kde":
        estimator: Any = KDEEstimator(
            points,
            table.kde_bandwidth,
            table.kde_bandwidth_rule,
            table.kde_normalize,
            **grid,
        )
    else:
        estimator = SPHDensityEstimator(
            points,
            smoothing_length=table.sph_smoothing_length,
            kernel_type=table.sph_kernel_type,
            adaptive=table.sph_adaptive,
            n_neighbors=table.sph_n_neighbors,
            normalize=table.sph_normalize,
            **grid,
        )
    x, y, found = estimator.evaluate_2d()
    length = float(np.median(estimator.h))
    return DensityMap(method, plane, x, y, found, len(points), length)


def plane_slab(table: Density, domain: Box) -> tuple[float, float] | None:
    """Return the slab of a table of densities: its place and its thickness."""
    if table.slab_position is None:
        return None
    normal = 3 - sum(PLANES[table.plane])
    share = SLAB_SHARE * float(domain.size[normal])
    return table.slab_position, table.slab_thickness or share


def flow_slab(
    table: Density, x0: float | None, domain: Box
) -> tuple[float, float] | None:
    """Return the slab across x; None where the domain has no length along x."""
    length = float(domain.size[0])
    if not length:
        return None
    place = float(domain.lo[0]) + SLICE_PLACE * length if x0 is None else x0
    return place, table.slab_thickness or SLAB_SHARE * length


def save_maps(maps: list[DensityMap], path: Path) -> Path:
    """Write maps as arrays `<method>_<plane>_x`, `_y` and `_density` of one .npz."""
    arrays = {}
    for one in maps:
        name = f"{one.method}_{one.plane}"
        parts = zip(("x", "y", "density"), (one.x, one.y, one.values), strict=True)
        arrays |= {f"{name}_{kind}": values for kind, values in parts}
    with atomic_write(path) as file:
        np.savez_compressed(file, **arrays)
    return path


DOTS = 10_000.0  # square points that all dots of a picture share


def draw(
    table: Pictures,
    folder: Path,
    trajectory: Trajectory,
    domain: Box,
    maps: list[DensityMap],
    cuts: list[DensityMap],
    place: float,
    field: Any = None,
) -> list[Path]:
    """Draw what the table asks for into a folder; return the files.

    `cuts` are densities in the yz plane at x = `place`; land of the field is drawn.
    """
    corners = [domain.lo.tolist(), domain.hi.tolist()]
    common = {"show": False}
    jobs: list[tuple[str, Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = []
    if "particles" in table.which:
        options: dict[str, Any] = {"plane": table.plane, "bounds": corners}
        options |= {"title": _when(trajectory), "field": field, "color": table.color}
        options["s"] = float(np.clip(DOTS / max(trajectory.N, 1), 1.0, 12.0))
        jobs.append(("final_particles", plot_particles, (trajectory,), options))
    if "trajectories" in table.which:
        options = {"plane": table.plane, "bounds": corners, "s": 3.0}
        options |= {"max_points": table.max_paths, "field": field}
        options |= {"color": table.color, "title": _when(trajectory, whole=True)}
        jobs.append(("trajectories", plot_trajectory, (trajectory,), options))
    if "density" in table.which:
        for one in maps:
            options = {
                "plane": one.plane,
                "title": f"{one.method}, {_when(trajectory)}",
                "axis_labels": axis_names(PLANES[one.plane], trajectory),
            }
            grid = (one.x, one.y, one.values)
            jobs.append((f"density_{one.method}", plot_density_2d, grid, options))
    if "slice" in table.which:
        for one in cuts:
            options = {
                "plane": "yz",
                "title": f"x = {place:.4g}",
                "levels": table.slice_levels,
                "cutoff": (table.slice_cutoff_min, table.slice_cutoff_max),
            }
            grid = (one.x, one.y, one.values)
            jobs.append((f"slice_yz_{one.method}", plot_density_2d, grid, options))
    files = []
    for name, plot, arguments, options in jobs:
        path = folder / f"{name}.png"
        plot(*arguments, **options, **common, save_path=path)
        files.append(path)
    return files


def _when(trajectory: Trajectory, whole: bool = False) -> str:
    """Return the last instant in words, or both ends of the run."""
    last = instant(trajectory, -1)
    return f"{instant(trajectory, 0)} to {last}" if whole else last


def write_page(
    path: Path,
    title: str,
    trajectory: Trajectory,
    domain: Box,
    plane: str,
    maps: Sequence[DensityMap],
    statistics: Mapping[str, Any],
    seconds: Mapping[str, float],
    notes: Sequence[str],
    pictures: Sequence[Path] = (),
) -> Path:
    """Write the page; it is one file and needs no network."""
    span = f"{instant(trajectory, 0)} to {instant(trajectory, -1)}"
    report = Report(title, f"{span}, {trajectory.T:,} recorded frames.")
    report.add(moving_section(trajectory, domain, plane, maps))
    drawn = [
        Figure(file.read_bytes(), caption=f"`{file.name}`", alt=file.stem)
        for file in pictures
    ]
    if drawn:
        pairs = [drawn[i : i + 2] for i in range(0, len(drawn), 2)]
        report.add(Section("Pictures", *(Beside(*pair) for pair in pairs)))
    report.add(Section("What became of them", *figure_parts(trajectory, statistics)))
    rate = rate_rows(trajectory, seconds)
    parts: list[Part] = [*(Text(note) for note in notes)]
    parts += [
        Code(f"jaxrig trace run {CASE_FILE}"),
        Fold("Sizes and times", Table(("what", "value"), rate)),
    ]
    report.add(Section("The run", *parts))
    return report.write(path)


def moving_section(
    trajectory: Trajectory, domain: Box, plane: str, maps: Sequence[DensityMap]
) -> Section:
    """Show particles over the density of the last frame in this plane."""
    behind = [one for one in maps if one.plane == plane]
    shade = behind[0].values.T if behind else None
    words = (
        f"Behind them: the density at the end ({behind[0].method})." if behind else ""
    )
    color = "age" if trajectory.generation.any() else "position"
    canvas = particle_canvas(
        trajectory,
        plane=plane,
        color=color,
        bounds=np.stack([domain.lo, domain.hi]),
        background=shade,
        first=-1,
        autoplay=True,
        alt="Particles",
    )
    shown = describe(canvas, trajectory, plane, color)
    return Section("Particles", Text(f"{shown} {words}"), hero=canvas)


def figure_parts(trajectory: Trajectory, statistics: Mapping[str, Any]) -> list[Part]:
    """Tabulate what became of the particles, and how far and fast they went."""
    columns = ("", "mean", "deviation", "smallest", "largest")
    rows = [
        (name.replace("_", " "), *(float(v) for v in statistics[name].values()))
        for name in ("displacement", "path_length", "speed")
    ]
    fate = [
        (status.name.lower(), int((trajectory.status == status).sum()))
        for status in ParticleStatus
    ]
    entered = int((trajectory.generation[-1:] - trajectory.generation[:1]).sum())
    fate = [row for row in fate if row[1]]
    fate += [("entered later", entered)] if entered else []
    return [Table(columns, rows), Table(("particles", "number"), fate)]


def rate_rows(
    trajectory: Trajectory, seconds: Mapping[str, float]
) -> list[tuple[str, Any]]:
    """Return sizes, seconds and the rate of the tracking."""
    rows: list[tuple[str, Any]] = [
        ("particles", trajectory.N),
        ("recorded frames", trajectory.T),
        ("integrator", str(trajectory.metadata.get("integrator", ""))),
        ("step", float(trajectory.metadata.get("dt", np.nan))),
    ]
    rows += [(f"seconds: {name}", float(value)) for name, value in seconds.items()]
    return rows


@dataclass(frozen=True, eq=False)
class FTLEMap:
    """Exponents (across, up) at the nodes of two axes, from t0 over T."""

    x: Float[np.ndarray, " across"]
    y: Float[np.ndarray, " up"]
    values: Float[np.ndarray, "across up"]
    t0: float
    T: float


def compute_ftle(case: Case) -> FTLEMap:
    """Return the exponents of a case over its plane."""
    table = case.ftle
    with working(case):
        field, _ = make_field(case)
        box = (
            find_domain(case, field)
            if table.bounds is None
            else box_bounds(table.bounds)
        )
        first, last = find_span(case, field)
        t0 = first if table.t0 is None else table.t0
        T = last - first if table.T is None else table.T
        if not T:
            raise ValueError("ftle.T is 0: set an integration time")
        level = (box.lo[2] + box.hi[2]) / 2 if table.level is None else table.level
        x, y = plane_axes(box, table.resolution)
        values = ftle(field, (x, y), t0, T, level=float(level), dt=table.dt)
    return FTLEMap(x, y, np.asarray(values), t0, T)


def plane_axes(box: Box, resolution: int) -> tuple[np.ndarray, np.ndarray]:
    """Return evenly spaced nodes: `resolution` along the longer axis.

    >>> [axis.size for axis in plane_axes(box_bounds([0, 2, 0, 1]), 101)]
    [101, 51]
    """
    width, height = box.size[:2]
    if not (width > 0 and height > 0):
        raise ValueError("the domain is flat along x or y: give bounds in [ftle]")
    spacing = max(width, height) / (resolution - 1)
    counts = [max(2, round(length / spacing) + 1) for length in (width, height)]
    ends = zip(box.lo[:2], box.hi[:2], counts, strict=True)
    x, y = (np.linspace(low, high, count) for low, high, count in ends)
    return x, y


def save_ftle(found: FTLEMap, folder: Path) -> list[Path]:
    """Write `ftle.npz` and `ftle.png` into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays, picture = folder / "ftle.npz", folder / "ftle.png"
    with atomic_write(arrays) as file:
        np.savez_compressed(
            file, x=found.x, y=found.y, ftle=found.values, t0=found.t0, T=found.T
        )
    plot_field_2d(
        found.values,
        (found.x, found.y),
        label="FTLE",
        title=f"t = {found.t0:.4g} to {found.t0 + found.T:.4g}",
        show=False,
        save_path=picture,
    )
    return [arrays, picture]
