"""Run a case: load, track to disk, then densities, pictures, exports and reports.

Everything lies in the folder of the case. Tracking is written as it goes and can be
stopped and gone on with; all that follows is made anew from it.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from jaxrig import Meter, record_compilations
from jaxrig.atomic import remove_path
from jaxtrace.analysis.statistics import analyze_trajectory_results
from jaxtrace.files.stores import open_store
from jaxtrace.files.trajectories import export_trajectory_to_vtk
from jaxtrace.reports import (
    generate_enhanced_summary_report,
    generate_performance_report,
)
from jaxtrace.tracking.trajectory import Trajectory
from jaxtrace.workflow.case import CASE_FILE, Case, load_case, write_case
from jaxtrace.workflow.densities import (
    DensityMap,
    estimate,
    flow_slab,
    plane_slab,
    save_maps,
)
from jaxtrace.workflow.page import write_page
from jaxtrace.workflow.pictures import draw
from jaxtrace.workflow.prepare import (
    Plan,
    describe_seeding,
    make_plan,
    make_tracker,
    working,
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
        return self.share * steps / max(self.seconds["tracking"], 1e-9)


def store_path(case: Case) -> Path:
    """Where frames are written as they come."""
    return case.folder / f"trajectory.{case.output.store}"


def run_case(
    case: Case,
    *,
    resume: bool = False,
    overwrite: bool = False,
    meter: Meter | None = None,
    tell: Tell = lambda line: None,
) -> Outcome:
    """Run a case from start to end.

    A folder that holds a run is refused unless `resume` goes on with it or `overwrite`
    replaces it. `tell` hears one line for each thing done.
    """
    _claim(case, resume, overwrite)
    with working(case):
        clock: dict[str, float] = {}
        with _timed(clock, "loading"):
            plan = make_plan(case)
        for note in plan.notes:
            tell(note)
        tell(_intent(plan))
        write_case(case, case.folder / CASE_FILE)
        found = _frames_there(store_path(case))
        with record_compilations() as log, _timed(clock, "tracking"):
            trajectory = _track(case, plan, resume, meter or Meter())
        clock["compiling"] = min(log.seconds, clock["tracking"])
        clock["tracking"] -= clock["compiling"]
        outcome = Outcome(plan, trajectory, [store_path(case)], list(plan.notes), clock)
        outcome.share = 1 - max(found - 1, 0) / max(trajectory.T - 1, 1)
        finish_case(case, outcome, tell)
    return outcome


def resume_case(folder: str | Path, **options: Any) -> Outcome:
    """Go on with the run in a folder; `options` are those of `run_case`."""
    return run_case(stored_case(folder), resume=True, **options)


def stored_case(folder: str | Path) -> Case:
    """The case of a run, wherever its folder lies now."""
    path = Path(folder) / CASE_FILE
    if not path.is_file():
        raise FileNotFoundError(f"{folder} holds no run: there is no {CASE_FILE} in it")
    case = load_case(path)
    return replace(case, output=replace(case.output, folder=str(Path(folder))))


def _claim(case: Case, resume: bool, overwrite: bool) -> None:
    if resume and overwrite:
        raise ValueError("resume and overwrite are both set: choose one of them")
    store = store_path(case)
    state = store.with_name(store.name + ".state")
    if overwrite:
        frames = store.with_name(f"{store.stem}_frames")  # beside a .pvd
        for path in (store, state, frames):
            remove_path(path)
    elif store.exists() and not resume:
        raise FileExistsError(
            f"{case.folder} holds a run: go on with it (--resume), replace it "
            "(--overwrite), or give another folder in [output]"
        )
    case.folder.mkdir(parents=True, exist_ok=True)


def _frames_there(store: Path) -> int:
    """How many frames an earlier run left."""
    if not store.exists():
        return 0
    with open_store(store, "r") as frames:
        return frames.frames


def _intent(plan: Plan) -> str:
    first, last = plan.time_span
    return (
        f"{len(plan.seeds):,} particles, {plan.n_timesteps:,} frames from t = "
        f"{first:.6g} to {last:.6g}"
    )


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
            output=store_path(case),
            resume=resume,
        )
    finally:
        meter.stop()


@contextmanager
def _timed(clock: dict[str, float], name: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    clock[name] = time.perf_counter() - start


def finish_case(case: Case, outcome: Outcome, tell: Tell = lambda line: None) -> None:
    """All that follows the tracking; files and notes are added to the outcome."""
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
    """Maps over the plane, cuts across the flow, and the place of the cuts."""
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
    files = []
    target = case.folder / "trajectory.vtp"
    if "vtp" in case.output.formats:
        files.append(Path(export_trajectory_to_vtk(trajectory, target)["file"]))
    if "series" in case.output.formats:
        written = export_trajectory_to_vtk(trajectory, target, time_series=True)
        files.append(Path(written["collection"]))
    return files


def _report(case: Case, outcome: Outcome, maps: list[DensityMap]) -> None:
    trajectory, plan = outcome.trajectory, outcome.plan
    if not (case.output.reports or case.output.page):
        return
    seeding = describe_seeding(case)
    statistics, validation = analyze_trajectory_results(
        trajectory, seeding, verbose=False
    )
    outcome.notes += validation["errors"] + validation["warnings"]
    if case.output.reports:
        density = {one.method: one.facts() for one in maps}
        notes = {"notes": outcome.notes} if outcome.notes else {}
        outcome.files += [
            generate_enhanced_summary_report(
                plan.field,
                trajectory,
                statistics,
                seeding,
                density,
                notes,
                output_dir=case.folder,
            ),
            generate_performance_report(
                trajectory, plan.field, outcome.seconds, output_dir=case.folder
            ),
        ]
    if case.output.page:
        page = write_page(
            case.folder / PAGE_FILE,
            f"Particles: {case.folder.name}",
            trajectory,
            plan.domain,
            case.pictures.plane,
            maps,
            statistics,
            outcome.seconds,
            outcome.notes,
        )
        outcome.files.append(page)
