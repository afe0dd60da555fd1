"""Results of a case: densities, Lyapunov exponents over planes, pictures, a page."""

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxrig.atomic import atomic_write
from jaxrig.progress import Meter
from jaxrig.report import (
    Beside,
    Code,
    Figure,
    Fold,
    Part,
    Report,
    Section,
    Table,
    Text,
)
from jaxrig.report.page import machine_table
from jaxtrace.analysis.flow_maps import SILENT, ftle
from jaxtrace.analysis.statistics import analyze_trajectory_results
from jaxtrace.bounds import PLANES, Box, box_bounds
from jaxtrace.fields.analytic import as_field
from jaxtrace.io.convert import export_store
from jaxtrace.io.store import open_store
from jaxtrace.io.vtk_export import export_trajectory_to_vtk
from jaxtrace.paths import read_radius
from jaxtrace.plot.canvas import describe, particle_canvas
from jaxtrace.plot.inputs import axis_names, instant
from jaxtrace.plot.pictures import (
    plot_density_2d,
    plot_field_2d,
    plot_particles,
    plot_trajectory,
)
from jaxtrace.reports import generate_summary_report
from jaxtrace.trajectory import Trajectory
from jaxtrace.types import ParticleStatus
from jaxtrace.workflow.case import CASE_FILE, Case
from jaxtrace.workflow.densities import (
    DensityMap,
    estimate,
    flow_slab,
    plane_slab,
    save_maps,
)
from jaxtrace.workflow.prepare import (
    Plan,
    check_recorded,
    describe_seeding,
    find_domain,
    find_span,
    make_field,
    working,
)
from jaxtrace.workflow.tables import Pictures

PAGE_FILE, DENSITY_FILE = "report.html", "density.npz"


@dataclass
class Outcome:
    """A finished run: what was tracked, where it lies and how long it took."""

    plan: Plan
    trajectory: Trajectory
    files: list[Path] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    share: float = 1.0  # of the tracking that this run did; the rest was there already

    @property
    def rate(self) -> float:
        """Particle-steps per second of tracking in this run, compiling left out."""
        steps = self.trajectory.N * max(self.plan.n_timesteps - 1, 0)
        steps *= int(self.trajectory.metadata.get("substeps", 1))
        return self.share * steps / max(self.seconds["tracking"], 1e-9)


def store_path(case: Case) -> Path:
    """Return the store that frames stream to."""
    return case.folder / "trajectory.zarr"


@contextmanager
def timed(clock: dict[str, float], name: str) -> Generator[None, None, None]:
    """Keep the seconds that a block takes."""
    start = time.perf_counter()
    yield
    clock[name] = time.perf_counter() - start


DOTS = 10_000.0  # square points that all dots of a picture share


def draw(
    table: Pictures,
    folder: Path,
    trajectory: Trajectory,
    domain: Box,
    maps: list[DensityMap],
    cuts: list[DensityMap],
    field: Any = None,
) -> list[Path]:
    """Draw what the table asks for into a folder; return the files.

    `cuts` are densities in the yz plane; land of the field is drawn.
    """
    corners = [domain.lo.tolist(), domain.hi.tolist()]
    common: dict[str, Any] = {"plane": table.plane, "bounds": corners}
    common |= {"field": field, "color": table.color}
    options: dict[str, Any]
    files: list[Path] = []

    def save(name: str, plot: Callable[..., Any], *what: Any, **options: Any) -> None:
        files.append(folder / f"{name}.png")
        plot(*what, **options, show=False, save_path=files[-1])

    if "particles" in table.which:
        options = {**common, "title": _when(trajectory)}
        options["s"] = float(np.clip(DOTS / max(trajectory.N, 1), 1.0, 12.0))
        save("final_particles", plot_particles, trajectory, **options)
    if "trajectories" in table.which:
        options = {**common, "title": _when(trajectory, whole=True), "s": 3.0}
        options["max_points"] = table.max_paths
        save("trajectories", plot_trajectory, trajectory, **options)
    for one in maps if "density" in table.which else ():
        options = {"plane": one.plane, "title": f"{one.method}, {_when(trajectory)}"}
        options["axis_labels"] = axis_names(PLANES[one.plane], trajectory)
        if read_radius(trajectory.metadata) is not None and one.plane == "xy":
            options["label"] = "density per square meter"
        grid = (one.x, one.y, one.values)
        save(f"density_{one.method}", plot_density_2d, *grid, **options)
    for one in cuts if "slice" in table.which else ():
        options = {"plane": "yz", "title": f"x = {one.place or 0:.4g}"}
        options["levels"] = table.slice_levels
        options["cutoff"] = (table.slice_cutoff_min, table.slice_cutoff_max)
        grid = (one.x, one.y, one.values)
        save(f"slice_yz_{one.method}", plot_density_2d, *grid, **options)
    return files


def _when(trajectory: Trajectory, whole: bool = False) -> str:
    """Return the last instant in words, or both ends of the run."""
    last = instant(trajectory, -1)
    return f"{instant(trajectory, 0)} to {last}" if whole else last


def _sentence(name: str) -> str:
    """Return what a picture of this name shows."""
    kind, _, method = name.rpartition("_")
    return {
        "final": "The particles at the end.",
        "": "Paths of a selection of the particles.",
        "density": f"Density of the particles at the end ({method.upper()}).",
        "slice_yz": f"The density by {method} in a plane across x.",
    }[kind]


def write_page(
    case: Case,
    outcome: Outcome,
    maps: Sequence[DensityMap],
    statistics: Mapping[str, Any],
) -> Path:
    """Write the page; it is one file and needs no network."""
    trajectory = outcome.trajectory
    span = f"{instant(trajectory, 0)} to {instant(trajectory, -1)}"
    title = f"{trajectory.N:,} particles in {_flow_name(case)}"
    report = Report(title, f"{span}, {trajectory.T:,} recorded frames.")
    plane = case.pictures.plane
    shown = trajectory, outcome.plan.domain, plane, maps, outcome.plan.field
    report.add(moving_section(*shown))
    drawn = [
        Figure(
            file.read_bytes(),
            caption=f"{_sentence(file.stem)} `{file.name}`",
            alt=file.stem,
        )
        for file in outcome.files
        if file.suffix == ".png"
    ]
    if drawn:
        pairs = [drawn[i : i + 2] for i in range(0, len(drawn), 2)]
        report.add(Section("Pictures", *(Beside(*pair) for pair in pairs)))
    report.add(Section("Statistics", *figure_parts(trajectory, statistics)))
    rows: list[tuple[str, Any]] = [
        ("particles", trajectory.N),
        ("recorded frames", trajectory.T),
        ("integrator", str(trajectory.metadata.get("integrator", ""))),
        ("step", float(trajectory.metadata.get("dt", np.nan))),
        *((f"seconds: {name}", float(s)) for name, s in outcome.seconds.items()),
    ]
    parts: list[Part] = [*(Text(note) for note in outcome.notes)]
    parts += [
        Code(f"jaxrig trace run {CASE_FILE}"),
        Fold("Sizes and times", Table(("what", "value"), rows)),
        machine_table(),
    ]
    report.add(Section("The run", *parts))
    return report.write(case.folder / PAGE_FILE)


def _flow_name(case: Case) -> str:
    if case.data is None:
        return case.flow.name.replace("_", " ") if case.flow else ""
    pattern = case.data.pattern
    files = [pattern] if isinstance(pattern, str) else pattern
    return ", ".join(Path(file).name for file in files)


def moving_section(
    trajectory: Trajectory,
    domain: Box,
    plane: str,
    maps: Sequence[DensityMap],
    field: Any = None,
) -> Section:
    """Show particles over the density of the last frame in this plane, and land."""
    behind = [one for one in maps if one.plane == plane]
    shade = behind[0].values.T if behind else None
    words = (
        f"The background is the density at the end ({behind[0].method})."
        if behind
        else ""
    )
    color = "age" if trajectory.generation.any() else "position"
    canvas = particle_canvas(
        trajectory,
        plane=plane,
        color=color,
        bounds=np.stack([domain.lo, domain.hi]),
        background=shade,
        field=field,
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


def finish_case(case: Case, outcome: Outcome, tell: Callable[[str], None]) -> None:
    """Make all that follows the tracking; add its files and notes to the outcome."""
    seen, trajectory, plan = len(outcome.notes), outcome.trajectory, outcome.plan
    with timed(outcome.seconds, "density"):
        maps, cuts = _densities(case, outcome)
    with timed(outcome.seconds, "pictures"):
        given = (trajectory, plan.domain, maps, cuts, plan.field)
        outcome.files += draw(case.pictures, case.folder, *given)
    with timed(outcome.seconds, "exports"):
        outcome.files += _export(case, trajectory)
    if case.output.reports or case.output.page:
        _report(case, outcome, maps)
    for note in outcome.notes[seen:]:
        tell(note)
    for path in outcome.files:
        tell(f"wrote {path}")


def _densities(
    case: Case, outcome: Outcome
) -> tuple[list[DensityMap], list[DensityMap]]:
    """Return maps over the plane, and cuts across the flow."""
    table, domain = case.density, outcome.plan.domain
    if not table.methods:
        return [], []
    last = outcome.trajectory.positions[-1]
    last = last[outcome.trajectory.alive[-1]]
    slab, radius = plane_slab(table, domain), read_radius(outcome.trajectory.metadata)
    maps, notes = estimate(table, last, domain, table.plane, slab, radius)
    cuts: list[DensityMap] = []
    slab = flow_slab(table, case.pictures.slice_x0, domain)
    if "slice" in case.pictures.which and slab is not None:
        cuts, more = estimate(table, last, domain, "yz", slab)
        notes += more
    outcome.notes += notes
    if maps:
        outcome.files.append(save_maps(maps, case.folder / DENSITY_FILE))
    return maps, cuts


def _export(case: Case, trajectory: Trajectory) -> list[Path]:
    files, target = [], case.folder / "trajectory.vtp"
    for kind in case.output.formats:
        if kind == "vtp":
            files.append(Path(export_trajectory_to_vtk(trajectory, target)["file"]))
        elif kind == "series":
            written = export_trajectory_to_vtk(trajectory, target, time_series=True)
            files.append(Path(written["collection"]))
        else:
            with open_store(store_path(case), "r") as store:
                files.append(export_store(store, target.with_suffix(f".{kind}")))
    return files


def _report(case: Case, outcome: Outcome, maps: list[DensityMap]) -> None:
    seeding = describe_seeding(case)
    statistics, validation = analyze_trajectory_results(outcome.trajectory, seeding)
    outcome.notes += validation["errors"] + validation["warnings"]
    if case.output.reports:
        report = generate_summary_report(
            outcome.plan.field,
            outcome.trajectory,
            statistics,
            seeding,
            {one.method: one.facts() for one in maps},
            {"notes": outcome.notes} if outcome.notes else {},
            output_dir=case.folder,
            timing_info=outcome.seconds,
        )
        outcome.files.append(report)
    if case.output.page:
        outcome.files.append(write_page(case, outcome, maps, statistics))


@dataclass(frozen=True, eq=False)
class FTLEMap:
    """Exponents (across, up) at the nodes of two axes at a level, from t0 over T."""

    x: Float[np.ndarray, " across"]
    y: Float[np.ndarray, " up"]
    values: Float[np.ndarray, "across up"]
    t0: float
    T: float
    level: float = 0.0


def compute_ftle(case: Case, meter: Meter = SILENT) -> FTLEMap:
    """Return the exponents of a case over its plane; a meter hears of steps taken."""
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
        check_recorded(case, field, (t0, t0 + T), "the span from ftle.t0 by ftle.T")
        middle = (box.lo[2] + box.hi[2]) / 2
        # Of a sea the surface, as for seeds: halfway down another flow is seen.
        usual = middle if as_field(field).sphere is None else box.hi[2]
        level = float(usual if table.level is None else table.level)
        x, y = plane_axes(box, table.resolution)
        values = ftle(field, (x, y), t0, T, level=level, meter=meter, dt=table.dt)
    return FTLEMap(x, y, np.asarray(values), t0, T, level)


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


_FTLE_FACTS = ("x", "y", "t0", "T", "level")


def save_ftle(found: FTLEMap, folder: Path) -> list[Path]:
    """Write `ftle.npz` and `ftle.png` into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays, picture = folder / "ftle.npz", folder / "ftle.png"
    with atomic_write(arrays) as file:
        np.savez_compressed(
            file, ftle=found.values, **{n: getattr(found, n) for n in _FTLE_FACTS}
        )
    plot_field_2d(
        found.values,
        (found.x, found.y),
        label="FTLE",
        title=f"t = {found.t0:.4g} to {found.t0 + found.T:.4g}, z = {found.level:.4g}",
        show=False,
        save_path=picture,
    )
    return [arrays, picture]
