"""One-call tracking: a run, a comparison of integrators, a whole job from a mapping."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxrig.timing import PerformanceMonitor
from jaxtrace.bounds import box_bounds
from jaxtrace.settings import known_only
from jaxtrace.tracking.boundary import (
    clamping_boundary,
    create_boundary_from_config,
    no_boundary,
    periodic_boundary,
    reflective_boundary,
)
from jaxtrace.tracking.flows import make_flow
from jaxtrace.tracking.options import TrackerOptions
from jaxtrace.tracking.seeding import combine_seed_strategies
from jaxtrace.tracking.tracker import ParticleTracker, create_tracker
from jaxtrace.tracking.trajectory import Trajectory

MARGIN = 0.1  # of the box around the seeds, where no bounds are given
BOXES = {
    "periodic": periodic_boundary,
    "reflective": reflective_boundary,
    "clamping": clamping_boundary,
}
SECTIONS = ("seeds", "field", "boundary", "integration", "tracker")
INTEGRATION = ("integrator", "time_span", "n_timesteps", "dt")

_defaults: dict[str, Any] = {}


def set_default_options(**options: Any) -> None:
    """Tracker options that the functions of this module use unless told otherwise.

    They add to those set before; without any, all are forgotten.
    """
    TrackerOptions(**known_only(options, _option_names(), "tracker option"))
    if options:
        _defaults.update(options)
    else:
        _defaults.clear()


def get_default_options() -> TrackerOptions:
    """The options that the functions of this module start from."""
    return TrackerOptions(**_defaults)


def track_particles_simple(
    initial_positions: Any,
    velocity_field: Any,
    time_span: tuple[float, float],
    n_timesteps: int | None = None,
    integrator: str = "rk4",
    boundary_condition: Any = None,
    dt: float | None = None,
    **options: Any,
) -> Trajectory:
    """Track particles in one call; `options` are those of a tracker."""
    tracker = _tracker(integrator, velocity_field, boundary_condition, options)
    return tracker.track_particles(initial_positions, time_span, n_timesteps, dt)


def compare_integrators(
    initial_positions: Any,
    velocity_field: Any,
    time_span: tuple[float, float],
    n_timesteps: int | None = None,
    integrators: Sequence[str] = ("euler", "rk2", "rk4"),
    boundary_condition: Any = None,
    dt: float | None = None,
    **options: Any,
) -> dict[str, Any]:
    """The same run by several integrators.

    `trajectories` and `timing` (seconds without compiling) by name, and in `comparison`
    how far final positions are from those of the first name: `mean_difference`,
    `max_difference` and `rms_difference` over particles that both runs still have.
    """
    if not integrators:
        raise ValueError("integrators is empty: give at least one name")
    monitor = PerformanceMonitor()
    trajectories, timing = {}, {}
    for name in integrators:
        tracker = _tracker(name, velocity_field, boundary_condition, options)
        trajectories[name], timing[name] = monitor.time_function(
            tracker.track_particles, initial_positions, time_span, n_timesteps, dt
        )
    first = trajectories[integrators[0]]
    return {
        "trajectories": trajectories,
        "timing": timing,
        "comparison": {n: _differences(first, t) for n, t in trajectories.items()},
    }


def _differences(first: Trajectory, other: Trajectory) -> dict[str, float]:
    apart = np.linalg.norm(
        other.positions[-1].astype(np.float64) - first.positions[-1], axis=-1
    )
    apart = apart[other.alive[-1] & first.alive[-1]]
    if not apart.size:
        apart = np.full(1, np.nan)
    return {
        "mean_difference": float(apart.mean()),
        "max_difference": float(apart.max()),
        "rms_difference": float(np.sqrt(np.mean(apart**2))),
    }


def quick_track(
    seeds: Any,
    field: Any,
    time_span: tuple[float, float] = (0.0, 10.0),
    n_timesteps: int = 100,
    integrator: str = "rk4",
    boundary: Any = "periodic",
    bounds: Any = None,
    **options: Any,
) -> Trajectory:
    """Track seeds through a field with a boundary by name.

    `boundary` is periodic, reflective, clamping, none, or a boundary; `bounds` is the
    box around the seeds with a tenth more on each side unless given.
    """
    condition = _boundary(boundary, seeds, bounds)
    tracker = _tracker(integrator, field, condition, options)
    return tracker.track_particles(seeds, time_span, n_timesteps)


def _boundary(boundary: Any, seeds: Any, bounds: Any) -> Any:
    if not isinstance(boundary, str):
        return no_boundary() if boundary is None else boundary
    if boundary == "none":
        return no_boundary()
    if boundary not in BOXES:
        known = ", ".join([*BOXES, "none"])
        raise ValueError(f"boundary={boundary!r}: choose one of {known}, or give one")
    return BOXES[boundary](seed_bounds(seeds) if bounds is None else bounds)


def seed_bounds(seeds: Any) -> np.ndarray:
    """The box around seeds with a tenth of its size more on each side, as corners."""
    rows = np.atleast_2d(np.asarray(seeds, np.float64))
    if not rows.size:
        raise ValueError("there are no seeds to put a box around: give bounds")
    low, high = rows.min(axis=0), rows.max(axis=0)
    room = MARGIN * (high - low)
    pairs = np.stack([low - room, high + room], axis=1)
    box = box_bounds(pairs)
    return np.stack([box.lo, box.hi])


def create_tracking_workflow(config: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Track as a mapping of sections says, and give its parts and its result.

    - `seeds`: `{"type": ..., ...}` of `combine_seed_strategies`, or positions
    - `field`: `{"type": "double_gyre", ...}` of the analytic flows, or a field
    - `boundary`: `{"type": ..., ...}` of `create_boundary_from_config`, or a boundary
    - `integration`: integrator, time_span, n_timesteps, dt
    - `tracker`: options of a tracker

    The answer holds `config`, `components` (seeds, field, boundary, tracker) and
    `results`, a trajectory.
    """
    known_only(config, SECTIONS, "section")
    for name in ("seeds", "field", "integration"):
        if name not in config:
            raise ValueError(f"the workflow has no section {name!r}: add it")
    plan = known_only(config["integration"], INTEGRATION, "key of integration")
    seeds = config["seeds"]
    if isinstance(seeds, Mapping):
        seeds = combine_seed_strategies([seeds])
    field = config["field"]
    if isinstance(field, Mapping):
        field = make_flow(**field)
    boundary: Any = config.get("boundary")
    if isinstance(boundary, Mapping):
        boundary = create_boundary_from_config(boundary)
    integrator = plan.pop("integrator", "rk4")
    tracker = _tracker(integrator, field, boundary, config.get("tracker", {}))
    parts = {"seeds": seeds, "field": field, "boundary": tracker.boundary}
    return {
        "config": config,
        "components": parts | {"tracker": tracker},
        "results": tracker.track_particles(seeds, **plan),
    }


def _tracker(
    integrator: str, field: Any, boundary: Any, options: Mapping[str, Any]
) -> ParticleTracker:
    condition = no_boundary() if boundary is None else boundary
    return create_tracker(integrator, field, condition, **{**_defaults, **options})


def _option_names() -> list[str]:
    return [field.name for field in dataclasses.fields(TrackerOptions)]
