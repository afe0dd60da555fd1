"""From the tables of a case to a field, seeds, a boundary and a tracker."""

import contextlib
import dataclasses
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool

from jaxrig.static_arguments import thaw
from jaxtrace.bounds import AXES, Box, box_bounds
from jaxtrace.config import (
    configure,
    get_config,
    memory_budget_bytes,
    working_accelerators,
)
from jaxtrace.fields.analytic import FLOWS, as_field
from jaxtrace.fields.base import AbstractField, Field, find_land, find_sunk, moment
from jaxtrace.fields.variables import Variable
from jaxtrace.io.convert import span_words
from jaxtrace.io.formats import source_name
from jaxtrace.io.loader import align, load_field, load_variable
from jaxtrace.io.seed_files import read_seeds
from jaxtrace.settings import GIB
from jaxtrace.tracking import behaviors
from jaxtrace.tracking.boundaries.base import AbstractBoundary, no_boundary
from jaxtrace.tracking.boundaries.walls import Traced, WallBoundary
from jaxtrace.tracking.motion import AbstractMotion, Diffusion, Inertial
from jaxtrace.tracking.release import release_times, repeated
from jaxtrace.tracking.schedule import as_span
from jaxtrace.tracking.seeding import Seeds, as_seeds, random_seeds, uniform_grid_seeds
from jaxtrace.tracking.tracker import ParticleTracker, create_tracker
from jaxtrace.workflow.case import Case
from jaxtrace.workflow.tables import BOUNDARIES, Boundary, Data

N_TIMESTEPS = 2000
TIME_SPAN = (0.0, 4.0)  # where neither the case nor the field has ends in time
UNEVEN = 1e-3  # of their mean, how far spacings of slices may be apart to count as even


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything a tracker needs, as a case describes it, and notes about the data."""

    field: Field
    domain: Box
    seeds: Seeds
    boundary: AbstractBoundary
    motion: AbstractMotion | None
    time_span: tuple[float, float]
    n_timesteps: int
    notes: tuple[str, ...]
    release: Any = None  # as `track_particles` takes it, and these two
    sample: dict[str, Variable] = dataclasses.field(default_factory=dict)
    behave: tuple[behaviors.AbstractBehavior, ...] = ()

    @property
    def particles(self) -> int:
        """The number of particles, each as often as it is released."""
        again = repeated(*self.release) if isinstance(self.release, tuple) else [0.0]
        return len(self.seeds) * len(again)


@contextlib.contextmanager
def working(case: Case) -> Generator[None, None, None]:
    """Use the precision, device and memory of a case, and restore those before."""
    before = get_config()
    table = case.tracking
    configure(
        dtype=table.dtype, device=table.device, memory_limit_gb=table.memory_limit_gb
    )
    try:
        yield
    finally:
        names = ("dtype", "device", "device_id", "memory_limit_gb")
        configure(**{name: getattr(before, name) for name in names})


def make_plan(case: Case) -> Plan:
    """Read or make the field, and place the particles in it."""
    field, notes = make_field(case)
    first = as_field(field)  # of a streamed field, that of its first slices
    domain = find_domain(case, first)
    span = find_span(case, field)
    round_ = first.sphere is not None
    seeds, release = make_seeds(case, domain, round_), find_release(case, field)
    inside, dropped = find_inside(first, seeds)
    if isinstance(release, np.ndarray):
        release = release[inside]
    behave = make_rules(case, field)
    needed = [name for rule in behave for name in rule.needs]
    sampled = dict.fromkeys([*case.sample.variables, *needed])
    uneven = [k for k in case.motion.diffusivity or () if isinstance(k, str)]
    variables = load_variables(case, [*sampled, *uneven], field)
    return Plan(
        field,
        domain,
        seeds[inside],
        check_walls(make_boundary(case, domain, round_), first),
        make_motion(case, variables),
        span,
        count_frames(case, first, span),
        (*notes, *dropped),
        release,
        {name: variables[name] for name in sampled},
        behave,
    )


def make_field(case: Case) -> tuple[Field, tuple[str, ...]]:
    """Return the field of the files or of the formula, and notes about the data."""
    if case.flow is not None:
        return FLOWS[case.flow.name](**thaw(case.flow.parameters)), ()
    assert case.data is not None
    table = case.data
    with in_words():
        loaded = load_field(table.pattern, **loading_options(case, table))
    count = len(loaded.slices)
    files = source_name(table.pattern)
    notes = [f"{count} slices of {files}" if count > 1 else f"steady flow: {files}"]
    notes += [*loaded.notes, f"interpolation: {loaded.scheme}"]
    if loaded.streamed:
        limit = memory_budget_bytes() / GIB
        notes.append(f"slices beyond {limit:.3g} GiB are streamed during the run")
    return loaded.field, tuple(notes)


# What loading calls by the names of its arguments, in the words of a case.
CASE_WORDS = {
    'velocity_field_name=("u", "v")': 'velocity_name = ["u", "v"] in [data]',
    'velocity_field_name=("ua", "va")': 'velocity_name = ["ua", "va"] in [data]',
    "velocity_field_name=": "velocity_name in [data]",
    "allow_nan=True": "allow_nan = true in [data]",
    "time_source=": "time_source in [data]:",
    "velocity_units=": "velocity_units in [data]",
    "geometry='flat'": 'geometry = "flat" in [data]',
    "geometry='sphere' or 'flat'": 'geometry = "sphere" or "flat" in [data]',
    "geometry='sphere'": 'geometry = "sphere" in [data]',
    "max_time_steps": "max_timesteps_to_load in [data]",
    "skip_initial_timesteps=1": "skip_initial_timesteps = 1 in [data]",
    "use_stable_mesh_only=True": "use_stable_mesh_only = true in [data]",
    "jt.configure(memory_limit_gb=...)": "memory_limit_gb in [tracking]",
}


# The same as options of `jaxrig trace new`, which has no case yet.
NEW_WORDS = {
    'velocity_field_name=("u", "v")': "--velocity u --velocity v",
    'velocity_field_name=("ua", "va")': "--velocity ua --velocity va",
    "velocity_field_name=": "--velocity",
    "allow_nan=True": "--allow-nan",
    "geometry='sphere' or 'flat'": "--geometry sphere or flat",
    "geometry='flat'": "--geometry flat",
    "geometry='sphere'": "--geometry sphere",
    "velocity_units=": "--velocity-units",
    "time_scale": "--time-scale",
}


@contextlib.contextmanager
def in_words(words_of: Mapping[str, str] = CASE_WORDS) -> Generator[None, None, None]:
    """Let errors of readers name keys or options in place of arguments."""
    try:
        yield
    except (ValueError, TypeError) as error:
        words = str(error)
        for argument, key in words_of.items():
            words = words.replace(argument, key)
        raise type(error)(words) from error


# Keys of [data] that readers know by the same names.
READING = (
    *("interpolation", "extrapolation", "outside", "slip", "time_range"),
    *("skip_initial_timesteps", "use_stable_mesh_only", "time_source"),
    *("time_scale",),
    *("geometry", "radius", "velocity_units", "land"),
)


def loading_options(case: Case, table: Data | None) -> dict[str, Any]:
    """Return the options of `load_field`; None stands for its default.

    Files beside the data have the rules of those, and are read whole.
    """
    options: dict[str, Any] = {"dtype": case.tracking.dtype}
    if table is None:
        keys = ("extrapolation", "outside", "geometry")
        return options | {key: getattr(case.data, key, None) for key in keys}
    return options | {
        **{key: getattr(table, key) for key in READING},
        "max_time_steps": table.max_timesteps_to_load,
        "velocity_field_name": table.velocity_name,
        "allow_nan": table.allow_nan or None,  # labeled grids do not have it
    }


def find_domain(case: Case, field: Field) -> Box:
    """Return the box of the boundary, of the field, or that of the particles."""
    given = thaw(case.boundary.options).get("bounds")
    if given is not None:
        return box_bounds(given)
    corners = field.get_spatial_bounds()
    if np.isfinite(corners).all():
        return box_bounds(np.stack(corners))
    if case.particles.bounds is None:
        raise ValueError(
            "this flow is unbounded: give the domain as bounds in [boundary], or the "
            "box of the particles as bounds in [particles]"
        )
    return box_bounds(case.particles.bounds)


def find_span(case: Case, field: Field) -> tuple[float, float]:
    """Return the time span of the case, else of the data, else from 0 to 4."""
    first, last = field.get_time_bounds()
    recorded = math.isfinite(last - first)
    if case.time.time_span is not None:
        span = as_span(
            case.time.time_span, getattr(field, "_source_info", {}), "time.time_span"
        )
        check_recorded(case, field, span, "time.time_span")
        return span
    return (first, last) if recorded else TIME_SPAN


def check_recorded(
    case: Case, field: Field, span: tuple[float, float], name: str
) -> None:
    """Refuse instants that the files say nothing of, unless a rule is given."""
    if case.data is None or case.data.extrapolation is not None:
        return
    first, last = field.get_time_bounds()
    slack = UNEVEN * (last - first)
    if last > first and (min(span) < first - slack or max(span) > last + slack):
        facts = getattr(field, "_source_info", {})
        asked, there = (
            span_words(np.array(ends), facts) for ends in (span, (first, last))
        )
        raise ValueError(
            f"{name} is {asked}, but the data are from t = {there}: give a span "
            'within, or extrapolation in [data], such as "constant" or "periodic"'
        )


def count_frames(case: Case, field: AbstractField, span: tuple[float, float]) -> int:
    """Return the number of frames: as asked for, or as far apart as the slices."""
    if not case.time.use_data_dt:
        return case.time.n_timesteps or N_TIMESTEPS
    clock = getattr(field, "clock", None)
    times = np.zeros(1) if clock is None else np.asarray(clock.times, np.float64)
    spacing = np.diff(times)
    if not spacing.size or np.ptp(spacing) > UNEVEN * spacing.mean():
        raise ValueError(
            "time.use_data_dt needs at least two slices at even times: give "
            "n_timesteps in place of it"
        )
    return max(2, round(abs(span[1] - span[0]) / spacing.mean()) + 1)


def make_seeds(case: Case, domain: Box, round_: bool = False) -> Seeds:
    """Return particles of a file, on a lattice, at random, or around the middle.

    A flat axis has one layer, whatever its count. On a sphere random ones are even per
    area.
    """
    table = case.particles
    if table.file is not None:
        count = math.prod(table.concentrations)
        return as_seeds(read_seeds(table.file, count, table.seed, round_).positions)
    region = domain if table.bounds is None else box_bounds(table.bounds)
    if table.bounds_fraction is not None:
        ends = np.array(table.bounds_fraction).T
        region = box_bounds(domain.lo + ends * domain.size)
    counts = [
        n if active else 1
        for n, active in zip(table.concentrations, region.active, strict=True)
    ]
    if table.distribution == "uniform":
        return uniform_grid_seeds(counts, region)
    if table.distribution == "random":
        geometry = "sphere" if round_ else "flat"
        return random_seeds(math.prod(counts), region, table.seed, geometry=geometry)
    draw = np.random.default_rng(table.seed).normal(size=(math.prod(counts), 3))
    middle = (region.lo + region.hi) / 2
    spread = np.array(table.gaussian_std) * region.size
    return as_seeds(np.clip(middle + spread * draw, region.lo, region.hi))


def find_release(case: Case, field: Field) -> Any:
    """Return when particles are released: by the case, by its file, or None."""
    table = case.particles
    times = None if table.file is None else read_seeds(table.file, 0).times
    if times is not None and table.release is not None:
        raise ValueError(
            f"particles has release, and {table.file} has a column time: leave one out"
        )
    facts = getattr(field, "_source_info", {})
    if times is not None:
        return release_times(times, facts, f"a time in {table.file}")
    return release_times(table.release, facts, "particles.release")


def find_inside(
    field: AbstractField, seeds: Seeds
) -> tuple[Bool[np.ndarray, " seeds"], tuple[str, ...]]:
    """Return which seeds are inside the field, and how many are not, in words."""
    first = field.get_time_bounds()[0]
    start = first if math.isfinite(first) else 0.0
    known = np.asarray(field.contains(seeds, start))
    land = find_land(field, jnp.asarray(seeds, np.float32))
    dry = np.zeros_like(known) if land is None else np.asarray(land) & known
    sunk = find_sunk(field, jnp.asarray(seeds), moment(field, start))
    deep = np.zeros_like(known) if sunk is None else np.asarray(sunk) & known & ~dry
    inside = known & ~dry & ~deep
    if not inside.any():
        lo, hi = field.get_spatial_bounds()
        ends = zip(AXES, lo.tolist(), hi.tolist(), strict=True)
        box = ", ".join(f"{axis} {low:g} to {high:g}" for axis, low, high in ends)
        raise ValueError(
            f"none of the {len(seeds)} particles is inside the data ({box}): give "
            "bounds or a file in [particles] that overlap them"
        )
    counts = {"outside the data": ~known, "on land": dry, "below the floor": deep}
    return inside, tuple(
        f"{int(where.sum()):,} of {len(seeds):,} particles are {place}: dropped"
        for place, where in counts.items()
        if where.any()
    )


def make_boundary(case: Case, domain: Box, round_: bool = False) -> AbstractBoundary:
    """Return the boundary; particles that enter start on the lattice of the seeds.

    A sphere has none unless the case gives one.
    """
    table = case.boundary
    if round_ and table == Boundary():
        return no_boundary()
    given, takes = thaw(table.options), table.arguments()
    counts = dict(zip(AXES, case.particles.concentrations, strict=True))
    filled = {
        "bounds": np.stack([domain.lo, domain.hi]),
        "concentrations": counts,
        "seed": case.tracking.seed,
    }
    defaults = {name: value for name, value in filled.items() if name in takes}
    return BOUNDARIES[table.type](**{**defaults, **given})


def check_walls(boundary: AbstractBoundary, field: AbstractField) -> AbstractBoundary:
    """Return the boundary; walls of a mesh are refused where there is none."""
    if isinstance(boundary, WallBoundary) and not isinstance(field, Traced):
        raise ValueError(
            'boundary.type is "walls", which needs data on a mesh, and these are on a '
            'grid or a formula: give "absorbing", "reflective" or another'
        )
    return boundary


SAMPLE_WORDS = {"velocity_field_name=": "variables in [sample]"}


def load_variables(case: Case, names: Sequence[str], field: Field) -> dict[str, Any]:
    """Read variables, each from the first files that have it: the data, then others."""
    found: dict[str, Any] = {}
    sources: list[Any] = [] if case.data is None else [(case.data.pattern, case.data)]
    sources += [(file, None) for file in case.sample.files]
    facts = getattr(field, "_source_info", {})
    for name in dict.fromkeys(names):
        errors = []
        for pattern, table in sources:
            options = loading_options(case, table)
            try:
                with in_words(SAMPLE_WORDS):
                    found[name] = align(
                        load_variable(pattern, name, **options), name, facts
                    )
                break
            except (ValueError, KeyError) as error:
                errors.append(error)
        if name not in found:
            if not errors:
                raise ValueError(f"{name} is in no file: give files in [sample]")
            raise ValueError("; ".join(dict.fromkeys(map(str, errors))))
    return found


def make_rules(case: Case, field: Field) -> tuple[behaviors.AbstractBehavior, ...]:
    """Return the behaviors that a case asks for."""
    table = case.behave
    rules: list[behaviors.AbstractBehavior] = [behaviors.Age()] if table.age else []
    rules += [behaviors.History(name) for name in table.history]
    if table.sinking_speed is not None:
        rules.append(behaviors.Sinking(table.sinking_speed))
    if table.diameter is not None:
        fluid = table.viscosity, table.water_density
        rules.append(behaviors.Buoyancy(table.diameter, table.density, *fluid))
    if table.windage is not None:
        rules.append(behaviors.Windage(table.windage, table.wind))
    if table.stokes_drift:
        rules.append(behaviors.StokesDrift(table.stokes_drift, table.wavenumber))
    if table.migration_speed is not None:
        depths = table.day_depth, table.night_depth
        rules.append(
            behaviors.Migration(*depths, table.migration_speed, _first_hour(field))
        )
    if table.decay_time is not None:
        rules.append(behaviors.Decay(table.decay_time))
    return tuple(rules)


def _first_hour(field: Field) -> float:
    """Return the hour (UTC) at time zero; 0 where the data have no dates."""
    units = getattr(field, "_source_info", {}).get("time_units", "")
    clock = units.partition(" since ")[2].replace("T", " ").partition(" ")[2]
    parts = [float(part) for part in clock.split(":")] if clock else []
    return sum(part / 60**i for i, part in enumerate(parts))


def make_motion(
    case: Case, variables: Mapping[str, Any] = MappingProxyType({})
) -> AbstractMotion | None:
    """Return the motion of the case; None for passive tracers."""
    table = case.motion
    motion: AbstractMotion | None = None
    if table.response_time is not None:
        motion = Inertial(np.asarray(table.response_time), np.asarray(table.gravity))
    elif any(table.gravity):
        raise ValueError(
            "motion.gravity needs response_time: passive tracers have no weight"
        )
    if table.diffusivity is None:
        return motion
    named = [variables[k] if isinstance(k, str) else k for k in table.diffusivity]
    return Diffusion(named, table.scheme, motion)


def make_tracker(
    case: Case, plan: Plan, progress: Callable[[int, int], None] | None = None
) -> ParticleTracker:
    """Return the tracker of a plan; `progress` is given frames done and in total."""
    table = case.tracking
    adaptive: dict[str, Any] = {}
    if table.error_tolerance is not None:
        adaptive = {"adaptive_dt": True, "error_tolerance": table.error_tolerance}
    return create_tracker(
        table.integrator,
        plan.field,
        plan.boundary,
        batch_size=table.batch_size,
        recording_interval=table.recording_interval,
        record_velocities=table.record_velocities,
        max_memory_gb=table.memory_limit_gb,
        seed=table.seed,
        devices=table.devices or working_accelerators(),
        motion=plan.motion,
        progress_callback=progress,
        **adaptive,
    )


def describe_seeding(case: Case) -> dict[str, Any]:
    """Return how particles are placed, for a report."""
    found = dataclasses.asdict(case.particles)
    return {name: value for name, value in found.items() if value is not None}
