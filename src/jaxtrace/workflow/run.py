"""Run a case: load, track to disk, then densities, pictures, exports and reports.

Everything lies in the folder of the case. Frames are written as they come, so a run
that was stopped continues; all that follows is made again from them.
"""

import shutil
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from jaxrig import Meter, record_compilations
from jaxrig.atomic import remove_path
from jaxrig.memory import tree_bytes
from jaxtrace.analysis.statistics import analyze_trajectory_results
from jaxtrace.io.convert import export_store
from jaxtrace.io.store import open_store
from jaxtrace.io.vtk_export import export_trajectory_to_vtk
from jaxtrace.reports import generate_summary_report
from jaxtrace.settings import GIB
from jaxtrace.tracking.behaviors import make_behaviors
from jaxtrace.tracking.schedule import kept_frames
from jaxtrace.trajectory import Trajectory
from jaxtrace.workflow.case import CASE_FILE, Case, load_case, write_case
from jaxtrace.workflow.prepare import (
    Plan,
    describe_seeding,
    make_plan,
    make_tracker,
    working,
)
from jaxtrace.workflow.results import (
    DensityMap,
    draw,
    estimate,
    flow_slab,
    plane_slab,
    save_maps,
    write_page,
)

PAGE_FILE, DENSITY_FILE = "report.html", "density.npz"
Tell = Callable[[str], None]


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


def run_case(
    case: Case,
    *,
    overwrite: bool = False,
    meter: Meter | None = None,
    tell: Tell = lambda line: None,
    approve: Callable[[str], bool] = lambda words: True,
) -> Outcome:
    """Run a case from start to end, or from where it was stopped.

    A folder that holds the run of another case is refused unless `overwrite` replaces
    it. `tell` is given one line for each thing done. `approve` is asked before a new
    run that writes more than `ASK_ABOVE`, or more than there is room for.
    """
    _claim(case, overwrite)
    with working(case):
        clock: dict[str, float] = {}
        with _timed(clock, "loading"):
            plan = make_plan(case)
        for note in plan.notes:
            tell(note)
        first, last = plan.time_span
        tell(
            f"{plan.particles:,} particles, {plan.n_timesteps:,} frames from t = "
            f"{first:.6g} to {last:.6g}"
        )
        found = _frames_there(store_path(case))
        if found:
            tell(f"continuing after {found:,} frames")
        else:
            _check_cost(case, plan, tell, approve)
        write_case(case, case.folder / CASE_FILE)
        with record_compilations() as log, _timed(clock, "tracking"):
            trajectory = _track(case, plan, found > 0, meter or Meter())
        if trajectory.variables:
            tell(f"sampled {', '.join(sorted(trajectory.variables))}")
        clock["compiling"] = min(log.seconds, clock["tracking"])
        clock["tracking"] -= clock["compiling"]
        outcome = Outcome(plan, trajectory, [_output(case)], list(plan.notes), clock)
        outcome.share = 1 - max(found - 1, 0) / max(trajectory.T - 1, 1)
        finish_case(case, outcome, tell)
    return outcome


def stored_case(folder: str | Path) -> Case:
    """Return the case of a run, wherever its folder lies now."""
    path = Path(folder) / CASE_FILE
    if not path.is_file():
        raise FileNotFoundError(f"{folder} is not a run: {CASE_FILE} is missing")
    case = load_case(path)
    return replace(case, output=replace(case.output, folder=str(Path(folder))))


# What decides where particles go; the rest may change between the parts of a run.
_DECISIVE = (
    *("data", "flow", "particles", "time", "boundary", "motion"),
    *("sample", "behave"),
)
_DECISIVE_TRACKING = (
    *("integrator", "recording_interval", "record_velocities"),
    *("error_tolerance", "dtype", "seed"),
)


def _claim(case: Case, overwrite: bool) -> None:
    """Make the folder of a case ready for it; refuse one that holds another run."""
    store = store_path(case)
    if overwrite:
        state = store.with_name(store.name + ".state")
        frames = store.with_name(f"{store.stem}_frames")  # beside a .pvd
        for path in (store, state, frames, _output(case)):
            remove_path(path)
    elif store.exists() and (case.folder / CASE_FILE).is_file():
        before = stored_case(case.folder)
        for name in _DECISIVE:
            if getattr(before, name) != getattr(case, name):
                raise _another(case, f"[{name}]")
        for name in _DECISIVE_TRACKING:
            if getattr(before.tracking, name) != getattr(case.tracking, name):
                raise _another(case, f"tracking.{name}")
    case.folder.mkdir(parents=True, exist_ok=True)


def _check_cost(
    case: Case, plan: Plan, tell: Tell, approve: Callable[[str], bool]
) -> None:
    """Say what a run writes and needs, and stop where that is much and not wanted."""
    cost = expected_cost(case, plan)
    tell(str(cost))
    free = shutil.disk_usage(case.folder).free
    room = (
        f"; {size_words(free)} are free in {case.folder}" if cost.total > free else ""
    )
    if (room or cost.total > ASK_ABOVE) and not approve(f"{cost}{room}"):
        raise ValueError(
            f"not started: this run {cost}{room}: allow it (--yes), or write less: "
            "fewer n_timesteps in [time], a larger recording_interval in [tracking], "
            "fewer concentrations in [particles], fewer formats in [output]"
        )


# What one recorded position takes beside its coordinates, measured on runs of 500,000.
EXPORT_BYTES = {
    **{"vtp": 32, "series": 41, "pvd": 41, "csv": 60},
    **{"npz": 0, "h5": 0, "nc": 8, "parquet": 16},
}
ASK_ABOVE = GIB


@dataclass(frozen=True)
class Cost:
    """About how much a run writes by format, and the memory that it needs."""

    written: dict[str, int]
    memory: int

    @property
    def total(self) -> int:
        """All bytes on disk."""
        return sum(self.written.values())

    def __str__(self) -> str:
        parts = ", ".join(f"{n} {size_words(b)}" for n, b in self.written.items())
        return (
            f"will write about {size_words(self.total)} ({parts}) and need about "
            f"{size_words(self.memory)} of memory"
        )


def size_words(size: float) -> str:
    """Return a number of bytes as people read it.

    >>> size_words(9.2 * 2**30), size_words(120 * 2**20)
    ('9.2 GiB', '120 MiB')
    """
    if size < 2**19:
        return f"{size / 2**10:,.3g} KiB"
    if size < GIB / 2:
        return f"{size / 2**20:,.3g} MiB"
    return f"{size / GIB:,.3g} GiB"


def expected_cost(case: Case, plan: Plan) -> Cost:
    """Return what a run writes and needs, if no particle leaves early."""
    table = case.tracking
    frames = len(kept_frames(plan.n_timesteps, table.recording_interval))
    points = frames * plan.particles
    width = 8 if table.dtype == "float64" else 4
    record = 3 * width * (2 if table.record_velocities else 1)
    record += 4 * plan.boundary.recycles  # whose generations are kept too
    record += width * len(make_behaviors(plan.sample, plan.behave).names)
    exports = [*case.output.formats]
    exports += [case.output.store] if case.output.store != "zarr" else []
    written = {"zarr": points * record}
    written |= {name: points * (record + EXPORT_BYTES[name]) for name in exports}
    held = points * (2 * record + 2)  # frames of the store and of the trajectory
    return Cost(written, held + tree_bytes(plan.field.frozen))


def _another(case: Case, what: str) -> FileExistsError:
    return FileExistsError(
        f"{case.folder} contains a run with another {what}: overwrite it "
        "(--overwrite), or set another folder in [output]"
    )


def _output(case: Case) -> Path:
    return case.folder / f"trajectory.{case.output.store}"


def _frames_there(store: Path) -> int:
    """Return how many frames an earlier run left."""
    if not store.exists():
        return 0
    with open_store(store, "r") as frames:
        return frames.frames


def _track(case: Case, plan: Plan, resume: bool, meter: Meter) -> Trajectory:
    started = []

    def progress(done: int, total: int) -> None:
        if not started:
            meter.start("tracking", total)
            started.append(total)
        meter.show(done)

    tracker = make_tracker(case, plan, progress)
    try:
        return tracker.track_particles(
            plan.seeds,
            plan.time_span,
            plan.n_timesteps,
            case.time.dt,
            release=plan.release,
            max_age=case.particles.max_age,
            sample=plan.sample,
            behave=plan.behave,
            output=_output(case),
            resume=resume,
        )
    finally:
        meter.stop()


@contextmanager
def _timed(clock: dict[str, float], name: str) -> Generator[None, None, None]:
    start = time.perf_counter()
    yield
    clock[name] = time.perf_counter() - start


def finish_case(case: Case, outcome: Outcome, tell: Tell = lambda line: None) -> None:
    """Make all that follows the tracking; add its files and notes to the outcome."""
    seen = len(outcome.notes)
    with _timed(outcome.seconds, "density"):
        maps, cuts, place = _densities(case, outcome)
    with _timed(outcome.seconds, "pictures"):
        outcome.files += draw(
            case.pictures,
            case.folder,
            outcome.trajectory,
            outcome.plan.domain,
            maps,
            cuts,
            place,
            outcome.plan.field,
        )
    with _timed(outcome.seconds, "exports"):
        outcome.files += _export(case, outcome.trajectory)
    _report(case, outcome, maps)
    for note in outcome.notes[seen:]:
        tell(note)
    for path in outcome.files:
        tell(f"wrote {path}")


def _densities(
    case: Case, outcome: Outcome
) -> tuple[list[DensityMap], list[DensityMap], float]:
    """Return maps over the plane, cuts across the flow, and the place of the cuts."""
    table, domain = case.density, outcome.plan.domain
    last = outcome.trajectory.positions[-1]
    last = last[outcome.trajectory.alive[-1]]
    slab = flow_slab(table, case.pictures.slice_x0, domain)
    place = 0.0 if slab is None else slab[0]
    if not table.methods:
        return [], [], place
    maps, notes = estimate(table, last, domain, table.plane, plane_slab(table, domain))
    cuts: list[DensityMap] = []
    if "slice" in case.pictures.which and slab is not None:
        cuts, more = estimate(table, last, domain, "yz", slab)
        notes += more
    outcome.notes += notes
    if maps:
        outcome.files.append(save_maps(maps, case.folder / DENSITY_FILE))
    return maps, cuts, place


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
    trajectory, plan = outcome.trajectory, outcome.plan
    if not (case.output.reports or case.output.page):
        return
    seeding = describe_seeding(case)
    statistics, validation = analyze_trajectory_results(trajectory, seeding)
    outcome.notes += validation["errors"] + validation["warnings"]
    if case.output.reports:
        density = {one.method: one.facts() for one in maps}
        notes = {"notes": outcome.notes} if outcome.notes else {}
        report = generate_summary_report(
            plan.field,
            trajectory,
            statistics,
            seeding,
            density,
            notes,
            output_dir=case.folder,
            timing_info=outcome.seconds,
        )
        outcome.files.append(report)
    if case.output.page:
        page = write_page(
            case.folder / PAGE_FILE,
            f"{trajectory.N:,} particles in {_flow_name(case)}",
            trajectory,
            plan.domain,
            case.pictures.plane,
            maps,
            statistics,
            outcome.seconds,
            outcome.notes,
            [path for path in outcome.files if path.suffix == ".png"],
        )
        outcome.files.append(page)


def _flow_name(case: Case) -> str:
    if case.data is None:
        return case.flow.name.replace("_", " ") if case.flow else ""
    pattern = case.data.pattern
    files = [pattern] if isinstance(pattern, str) else pattern
    return ", ".join(Path(file).name for file in files)
