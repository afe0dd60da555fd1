"""Flows and runs that tests of the tracker share."""

from typing import Any

import numpy as np

from jaxtrace.fields.grid import GridField, make_grid_field
from jaxtrace.tracking.boundaries.box import box_boundary
from jaxtrace.tracking.tracker import create_tracker

AXIS = np.linspace(0, 1, 6)
AXES = (AXIS, AXIS, AXIS)
TIMES = np.linspace(0, 2, 21)
BOX = [[0, 0, 0], [1, 1, 1]]


def noise_values(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(21, 6, 6, 6, 3), scale=0.3).astype(np.float32)


def noise_field(seed: int = 0) -> GridField:
    """A rough unsteady flow: any difference between two runs shows at once."""
    return make_grid_field(noise_values(seed), AXES, TIMES)


def seeds(count: int = 60, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).random((count, 3)).astype(np.float32)


def mirrors():
    return box_boundary(BOX, "reflective")


def track(field: Any = None, boundary: Any = None, span=(0.0, 2.0), **options: Any):
    """A short run of the rough flow; two stages are enough for all that is asked."""
    given = {k: options.pop(k) for k in ("output", "resume", "dt") if k in options}
    start = options.pop("start", seeds())
    tracker = create_tracker(
        options.pop("integrator", "rk2"),
        noise_field() if field is None else field,
        mirrors() if boundary is None else boundary,
        **options,
    )
    return tracker.track_particles(start, span, 31, **{"dt": 0.04, **given})
