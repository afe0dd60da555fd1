"""The flow room of the studio: choose a flow or a file, draw seeds, watch particles.

What a person draws becomes a case in the studio's folder, tracked as `jaxrig trace run`
tracks it: the same readers, tracker and store, so that a run can be resumed there.
"""

import tempfile
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from jaxrig.static_arguments import freeze
from jaxrig.studio.jobs import Job
from jaxrig.studio.rooms import Desk, Download, Room, required
from jaxtrace.bounds import AXES, Box, box_bounds
from jaxtrace.fields.analytic import as_field
from jaxtrace.integrators import METHODS
from jaxtrace.io.convert import export_store
from jaxtrace.io.store import open_store
from jaxtrace.studio_sources import (
    PRESETS,
    RUNS,
    SUFFIXES,
    as_picture,
    check_upload,
    domain_facts,
    flow_case,
    look,
    seed_positions,
    series,
    shown_axes,
    source_case,
)
from jaxtrace.tracking.seeding import random_seeds
from jaxtrace.workflow import tables
from jaxtrace.workflow.case import CASE_FILE, Case, case_text
from jaxtrace.workflow.case import write_case as write_case_file
from jaxtrace.workflow.densities import estimate
from jaxtrace.workflow.prepare import find_domain, make_field, make_plan, make_tracker
from jaxtrace.workflow.results import compute_ftle
from jaxtrace.workflow.run import store_path, stored_case, track_plan

EXPORTS = ("csv", "nc", "vtp", "npz")
MOST_PARTICLES, MOST_FRAMES = 200_000, 2_000
MOST_STREAMED = 48 * 2**20  # bytes of all frames of a run
MARGIN = 0.02  # of the domain around it that frames can show
LEVELS = 65_534  # of a coordinate; the next number stands for a particle not shown
HIDDEN = 65_535
PREVIEW = 2_000
FTLE_CELLS = 160  # along the longer side

# The chunks of a run share one program, which another run at the same time would upset.
_tracking = threading.Lock()


def sources(desk: Desk, request: Mapping[str, Any]) -> dict[str, Any]:
    """List the analytic flows, and the files of the folder with series as patterns."""
    return {
        "flows": [
            {"flow": name, "title": preset.title} for name, preset in PRESETS.items()
        ],
        "files": series([f["name"] for f in desk.folder.files(SUFFIXES)]),
        "integrators": list(METHODS),
        "suffixes": list(SUFFIXES),
        "most_particles": MOST_PARTICLES,
        "most_streamed": MOST_STREAMED,
        "runs": runs(desk, {}),
    }


def _drawn_case(desk: Desk, request: Mapping[str, Any]) -> Case:
    """Return the case of a request: its source with what was chosen on the page,
    without seeds and folder.
    """
    case = source_case(desk, request)
    frames = required(request, "frames", int)
    if not 2 <= frames <= MOST_FRAMES:
        raise ValueError(f"{frames} frames: give 2 to {MOST_FRAMES:,}")
    span = _span(request)
    boundary = required(request, "boundary", str)
    if boundary != case.boundary.type:
        given = case.boundary.to_mapping().get("bounds")
        keeps = given is not None and boundary not in ("none", "walls")
        bounds = {"bounds": given} if keeps else {}
        case = replace(case, boundary=tables.Boundary(boundary, freeze(bounds)))
    between = abs(span[1] - span[0]) / (frames - 1)
    step = None if case.time.dt is None else min(case.time.dt, between)
    given = request.get("diffusivity")  # None where the page leaves it out
    mixing = 0.0 if given is None else required(request, "diffusivity", float)
    return replace(
        case,
        particles=tables.Particles(
            release=case.particles.release,
            max_age=case.particles.max_age,
        ),
        time=tables.Time(frames, step, time_span=tuple(span)),
        tracking=replace(
            case.tracking, integrator=required(request, "integrator", str)
        ),
        motion=replace(case.motion, diffusivity=(mixing,) * 3 if mixing else None),
        sample=replace(case.sample, variables=_color(request)),
    )


def _span(request: Mapping[str, Any]) -> tuple[float, float]:
    """Return the times of a request; ValueError unless they are two that differ."""
    span = [required({"t": t}, "t", float) for t in required(request, "span", list)]
    if len(span) != 2 or span[0] == span[1] or not np.isfinite(span).all():
        raise ValueError(f"the times {span} are not a start and another end")
    return span[0], span[1]


def _color(request: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the variable to record and color by, if any."""
    return (required(request, "color", str),) if request.get("color") else ()


def run(desk: Desk, request: Mapping[str, Any]) -> dict[str, Any]:
    """Track particles from the seeds that were drawn; returns the job."""
    count = required(request, "particles", int)
    if not 1 <= count <= MOST_PARTICLES:
        raise ValueError(f"{count:,} particles: give 1 to {MOST_PARTICLES:,}")
    source = required(request, "source", dict)
    stem = str(source.get("flow") or Path(required(source, "file", str)).stem)
    case = _drawn_case(desk, request)
    field, _ = make_field(case)
    domain = find_domain(case, as_field(field))
    numbers = len(shown_axes(domain)) + len(_color(request))
    streamed = 2 * numbers * count * required(request, "frames", int)
    if streamed > MOST_STREAMED:
        raise ValueError(
            f"{count:,} particles and {request['frames']:,} frames are "
            f"{streamed / 2**20:.0f} MiB: at most {MOST_STREAMED / 2**20:.0f} are "
            "streamed, choose fewer of either"
        )
    seeds = seed_positions(required(request, "seeds", list), count, domain)
    lines = [",".join(f"{value:.9g}" for value in place) for place in seeds]
    with desk.lock:  # two tabs may track at once
        name, folder = desk.fresh(RUNS, stem)
        folder.mkdir(parents=True)
    seeds_file = replace(case.particles, file=str(folder / "seeds.csv"))
    output = tables.Output(str(folder), formats=(), reports=False, page=False)
    case = replace(case, particles=seeds_file, output=output)
    (folder / "seeds.csv").write_text("\n".join(["x,y,z", *lines, ""]))
    write_case_file(case, folder / CASE_FILE)
    return desk.start(name, lambda job: _track(job, case, name, False))


def runs(desk: Desk, request: Mapping[str, Any]) -> list[str]:
    """List the runs that are kept, the newest first."""
    found = [path.parent for path in desk.kept(RUNS).glob(f"*/{CASE_FILE}")]
    found.sort(key=lambda path: -path.stat().st_mtime)
    return [path.name for path in found]


def _kept_run(desk: Desk, request: Mapping[str, Any]) -> tuple[str, Path]:
    name = required(request, "run", str)
    return name, desk.result(RUNS, name)


def resume(desk: Desk, request: Mapping[str, Any]) -> dict[str, Any]:
    """Show a run of the folder again, and track the frames it still lacks."""
    name, folder = _kept_run(desk, request)
    case = stored_case(folder)
    return desk.start(name, lambda job: _track(job, case, name, True))


@contextmanager
def _alone(job: Job) -> Generator[None, None, None]:
    while not _tracking.acquire(timeout=0.2):
        job.show("waiting for another run")
    try:
        yield
    finally:
        _tracking.release()


def _track(job: Job, case: Case, name: str, again: bool) -> str:
    job.show("reading the flow")
    with _alone(job):
        plan = make_plan(case)
        domain, field = plan.domain, as_field(plan.field)
        begin, end = plan.time_span
        times = np.linspace(begin, end, plan.n_timesteps)
        job.describe(
            domain_facts(domain, field)
            | {"run": name, "count": plan.particles, "notes": list(plan.notes)}
            | {"times": [float(t) for t in times], "margin": MARGIN}
            | {"color": next(iter(plan.sample), None)}
        )
        store, wraps = store_path(case), plan.boundary.period

        def send() -> None:
            if not store.exists():
                return
            with open_store(store, "r") as frames:
                _, arrays = frames.read(len(job.frames))
            if "positions" not in arrays:
                return
            found = quantize(arrays["positions"], domain, wraps)
            if name := job.about["color"]:
                # By what the first frames hold: the end of a long run is not known yet.
                ends = job.about.get("ends") or _ends(arrays[name])
                job.describe({"ends": ends})
                levels = _levels(arrays[name], *ends)
                found = [a + b for a, b in zip(found, levels, strict=True)]
            job.add(found)

        def progress(done: int, total: int) -> None:
            send()
            job.show("tracking", done, total)

        if again:
            send()
        job.show("compiling")
        track_plan(case, plan, progress, store, again and store.exists())
        send()
    return name


def quantize(positions: np.ndarray, domain: Box, period: Sequence[Any]) -> list[bytes]:
    """Return frames as 16-bit coordinates of the shown axes; what is gone is hidden.

    Level 0 and the last lie a margin outside of the domain; periodic axes are wrapped.
    """
    axes = shown_axes(domain)
    size = np.where(domain.size > 0, domain.size, 1.0)[axes]
    shares = (positions[..., axes].astype(np.float64) - domain.lo[axes]) / size
    for column, axis in enumerate(axes):
        if period[axis]:
            shares[..., column] %= 1.0
    levels = np.round((shares + MARGIN) / (1 + 2 * MARGIN) * LEVELS)
    there = np.all((levels >= 0) & (levels <= LEVELS), axis=-1, keepdims=True)
    whole = np.where(there, np.nan_to_num(levels), HIDDEN).astype("<u2")
    return [np.ascontiguousarray(frame).tobytes() for frame in whole]


def _ends(values: np.ndarray) -> list[float]:
    known = values[np.isfinite(values)]
    return [float(known.min()), float(known.max())] if known.size else [0.0, 1.0]


def _levels(values: np.ndarray, low: float, high: float) -> list[bytes]:
    """Return values of each frame as 16 bits between two ends; what is not known is
    hidden.
    """
    shares = (values - low) / ((high - low) or 1.0)
    whole = np.where(
        np.isfinite(shares), np.clip(np.nan_to_num(shares), 0, 1) * LEVELS, HIDDEN
    )
    return [frame.tobytes() for frame in np.round(whole).astype("<u2")]


def case(desk: Desk, request: Mapping[str, Any]) -> Download:
    """Return the case file of a run, for `jaxrig trace run`."""
    name, folder = _kept_run(desk, request)
    return Download(f"{name}.toml", case_text(stored_case(folder)).encode())


def trajectories(desk: Desk, request: Mapping[str, Any]) -> Download:
    """Return the trajectories of a run in a format for other programs."""
    name, folder = _kept_run(desk, request)
    kind = request.get("format", "csv")
    if kind not in EXPORTS:
        raise ValueError(f"{kind!r} is not a format: {', '.join(EXPORTS)}")
    store = store_path(stored_case(folder))
    if not store.exists():
        raise FileNotFoundError(f"the run {name} has no frames yet")
    with tempfile.TemporaryDirectory() as aside, open_store(store, "r") as frames:
        written = export_store(frames, Path(aside) / f"{name}.{kind}")
        return Download(written.name, written.read_bytes())


def layer(desk: Desk, request: Mapping[str, Any]) -> dict[str, Any]:
    """Begin to compute FTLE of a source, or the density of a run at its end."""
    kind = required(request, "kind", str)
    if kind == "density":
        name, folder = _kept_run(desk, request)
        return desk.start(f"density of {name}", lambda job: _density(job, folder))
    if kind != "ftle":
        raise ValueError(f"{kind!r} is not a layer: ftle or density")
    base, span = source_case(desk, request), _span(request)
    table = replace(base.ftle, t0=span[0], T=span[1] - span[0])

    def work(job: Job) -> dict[str, Any]:
        job.show("computing FTLE")
        with _alone(job):
            field, _ = make_field(base)
            domain = find_domain(base, as_field(field))
            # In the middle of the cells: pictures show cells, and neighbors of a wall
            # part at its corners whatever the flow does, which hides every ridge.
            cell = np.minimum(domain.size[:2].max() / FTLE_CELLS, domain.size / 2)
            ends = (domain.lo + cell / 2).tolist(), (domain.hi - cell / 2).tolist()
            bounds = (tuple(ends[0]), tuple(ends[1]))
            found = compute_ftle(
                replace(base, ftle=replace(table, resolution=FTLE_CELLS, bounds=bounds))
            )
        return as_picture(found.values.T)

    return desk.start("FTLE", work)


def _density(job: Job, folder: Path) -> dict[str, Any]:
    job.show("estimating density")
    kept = stored_case(folder)
    with open_store(store_path(kept), "r") as frames:
        _, arrays = frames.read(-1)
    field, _ = make_field(kept)
    flow = as_field(field)
    domain = find_domain(kept, flow)
    radius = None if flow.sphere is None else float(flow.sphere.radius)
    plane = "".join(AXES[axis] for axis in shown_axes(domain)[:2])
    table = replace(kept.density, methods=("kde",), plane=plane)
    place = arrays["positions"][0]
    maps, notes = estimate(table, place, domain, plane, radius=radius)
    if not maps:
        raise ValueError(notes[0])
    return as_picture(maps[0].values)


def layer_values(desk: Desk, request: Mapping[str, Any]) -> Any:
    """Return the picture that a job for a layer has made."""
    return desk.jobs.get(required(request, "job", str)).result


def preview(desk: Desk, request: Mapping[str, Any]) -> bytes:
    """Return some frames of the double gyre, tracked here and now, for the home."""
    with desk.lock:
        if "preview" not in desk.held:
            base = flow_case("double_gyre")
            domain = box_bounds(PRESETS["double_gyre"].bounds)
            with _tracking:
                plan = make_plan(base)
                found = make_tracker(base, plan).track_particles(
                    random_seeds(PREVIEW, domain), (0.0, 12.0), 61, 0.1
                )
            frames = quantize(np.asarray(found.positions), domain, (0, 0, 0))
            desk.held["preview"] = b"".join(frames)
        return desk.held["preview"]


ROOM = Room(
    {
        function.__name__: function
        for function in (
            *(sources, look, run, resume, runs, case, trajectories),
            *(layer, layer_values, preview),
        )
    },
    SUFFIXES,
    check_upload,
)
