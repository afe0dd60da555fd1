"""Run a case: load, track to disk, then densities, pictures, exports and reports.

Everything lies in the folder of the case. Frames are written as they come, so a run
that was stopped continues; all that follows is made again from them.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from jaxrig import Meter, record_compilations
from jaxrig.atomic import remove_path
from jaxrig.memory import tree_bytes
from jaxrig.progress import starting
from jaxrig.report.text import count_of
from jaxtrace.config import memory_budget_bytes
from jaxtrace.io.store import open_store
from jaxtrace.settings import GIB
from jaxtrace.tracking.behaviors import make_behaviors
from jaxtrace.tracking.schedule import kept_frames
from jaxtrace.trajectory import Trajectory
from jaxtrace.workflow.case import CASE_FILE, Case, load_case, write_case
from jaxtrace.workflow.prepare import Plan, make_plan, make_tracker, working
from jaxtrace.workflow.results import Outcome, finish_case, store_path, timed

Tell = Callable[[str], None]


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
    run that writes more than `ASK_ABOVE`, or takes more room or memory than there is.
    """
    begun = _claim(case, overwrite)
    with working(case):
        clock: dict[str, float] = {}
        with timed(clock, "loading"):
            plan = make_plan(case)
        for note in plan.notes:
            tell(note)
        first, last = plan.time_span
        tell(
            f"{count_of(plan.particles, 'particle')}, "
            f"{count_of(plan.n_timesteps, 'frame')} from t = "
            f"{first:.6g} to {last:.6g}"
        )
        found = _frames_there(store_path(case))
        if found:
            tell(f"continuing after {found:,} frames")
        else:
            _check_cost(case, plan, tell, approve)
        write_case(case, case.folder / CASE_FILE)
        with record_compilations() as log, timed(clock, "tracking"):
            trajectory = _track(case, plan, begun or found > 0, meter or Meter())
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


def _claim(case: Case, overwrite: bool) -> bool:
    """Make the folder of a case ready for it; refuse one that holds another run.

    Return whether it holds what this run left, which may have no frame yet.
    """
    store = store_path(case)
    if overwrite:
        state = store.with_name(store.name + ".state")
        frames = store.with_name(f"{store.stem}_frames")  # beside a .pvd
        for path in (store, state, frames, _output(case)):
            remove_path(path)
    begun = store.exists() and (case.folder / CASE_FILE).is_file()
    if begun:
        before = stored_case(case.folder)
        changed = [
            *(f"[{n}]" for n in _DECISIVE if getattr(before, n) != getattr(case, n)),
            *(
                f"tracking.{n}"
                for n in _DECISIVE_TRACKING
                if getattr(before.tracking, n) != getattr(case.tracking, n)
            ),
        ]
        if changed:
            raise FileExistsError(
                f"{case.folder} contains a run with another {changed[0]}: overwrite it "
                "(--overwrite), or set another folder in [output]"
            )
    case.folder.mkdir(parents=True, exist_ok=True)
    return begun


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
    much = cost.total > ASK_ABOVE or STEP_BYTES * cost.steps > memory_budget_bytes()
    if (room or much) and not approve(f"{cost}{room}"):
        raise ValueError(
            f"not started: this run {cost}{room}: allow it (--yes), or do less: "
            "fewer n_timesteps or a larger dt in [time], a larger recording_interval "
            "in [tracking], fewer concentrations in [particles], fewer formats in "
            "[output]"
        )


# What one recorded position takes beside its coordinates, measured on runs of 500,000.
EXPORT_BYTES = {
    **{"vtp": 32, "series": 41, "pvd": 41, "csv": 60},
    **{"npz": 0, "h5": 0, "nc": 8, "parquet": 16},
}
ASK_ABOVE = GIB
STEP_BYTES = 300  # instants of a step's stages, and their slices and weights


@dataclass(frozen=True)
class Cost:
    """About how much a run writes by format, and the memory that it needs."""

    written: dict[str, int]
    memory: int
    steps: int = 0

    @property
    def total(self) -> int:
        """All bytes on disk."""
        return sum(self.written.values())

    def __str__(self) -> str:
        parts = ", ".join(f"{n} {size_words(b)}" for n, b in self.written.items())
        return (
            f"will write about {size_words(self.total)} ({parts}) and need about "
            f"{size_words(self.memory)} of memory for {self.steps:,} steps"
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
    first, last = plan.time_span
    least = plan.n_timesteps - 1
    steps = max(least, int(abs(last - first) / abs(case.time.dt or np.inf)))
    held += STEP_BYTES * steps
    return Cost(written, held + tree_bytes(plan.field.frozen), steps)


def _output(case: Case) -> Path:
    return case.folder / f"trajectory.{case.output.store}"


def _frames_there(store: Path) -> int:
    """Return how many frames an earlier run left."""
    if not store.exists():
        return 0
    with open_store(store, "r") as frames:
        return frames.frames


def _track(case: Case, plan: Plan, resume: bool, meter: Meter) -> Trajectory:
    try:
        meter.compiling("tracking")
        progress = starting(meter, "tracking")
        return track_plan(case, plan, progress, _output(case), resume)
    finally:
        meter.stop()


def track_plan(
    case: Case,
    plan: Plan,
    progress: Callable[[int, int], None],
    output: Path,
    resume: bool,
) -> Trajectory:
    """Track the particles of a plan into a file, or go on with what it holds."""
    first, last = plan.time_span
    spacing = abs(last - first) / max(plan.n_timesteps - 1, 1)
    # A case gives the largest step: shorter ones are nothing to warn of.
    step = case.time.dt and min(case.time.dt, spacing or case.time.dt)
    return make_tracker(case, plan, progress).track_particles(
        plan.seeds,
        plan.time_span,
        plan.n_timesteps,
        step,
        release=plan.release,
        max_age=case.particles.max_age,
        sample=plan.sample,
        behave=plan.behave,
        output=output,
        resume=resume,
    )
