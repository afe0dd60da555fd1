"""Every boundary of the library, a flow that meets them all, and short runs."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxrig.batching import pad_axis
from jaxtrace.fields.analytic import UniformFlow
from jaxtrace.tracking import boundary
from jaxtrace.tracking.boundaries.base import StepContext
from jaxtrace.tracking.particles import Draw, noise_key, seed_particles
from jaxtrace.tracking.schedule import make_schedule
from jaxtrace.tracking.simulation import Paths
from jaxtrace.tracking.step import Method
from jaxtrace.tracking.time_loop import (
    advance,
    first_instant,
    initialize,
    make_dynamics,
)

BOX = np.array([[0.0, 0.0, 0.0], [2.0, 1.0, 1.0]])
COUNTS = {"x": 9, "y": 5, "z": 3}
TIMES = np.linspace(0.0, 3.0, 7)
ROWS = 200


def uniform(*velocity: float) -> UniformFlow:
    """The same velocity everywhere; components left out are 0."""
    parts = [np.asarray(v) for v in (*velocity, 0.0, 0.0)]
    return UniformFlow(*parts[:3])


FLOW = uniform(0.9, -0.4, 0.3)


def ball_distance(positions):
    center = jnp.asarray([1.0, 0.5, 0.5], positions.dtype)
    return jnp.sqrt(jnp.sum((positions - center[None]) ** 2, 1)) - 0.5


def scatter_inside(numbers):
    return numbers * jnp.asarray([2.0, 1.0, 1.0], numbers.dtype)[None]


def every_boundary():
    """Boundaries by name; all but the walls of a mesh, which need one."""
    inlet = boundary.continuous_inlet_boundary_factory
    made = {
        "open": boundary.no_boundary(),
        "periodic": boundary.periodic_boundary(BOX),
        "reflective": boundary.reflective_boundary(BOX),
        "clamping": boundary.clamping_boundary(BOX),
        "absorbing": boundary.absorbing_boundary_factory(BOX),
        "mixed": boundary.mixed_boundary(BOX, {"x": "absorbing", "y": "reflective"}),
        "inlet uniform": inlet(BOX),
        "inlet grid": inlet(BOX, inlet_distribution="grid", concentrations=COUNTS),
        "inlet gaussian": inlet(BOX, "x", "negative", "gaussian"),
        "inlet outlet": boundary.inlet_outlet_boundary_factory(BOX),
        "refilled": boundary.inlet_outlet_boundary_factory(
            BOX, inlet_particle_generator=scatter_inside
        ),
        "flow through": boundary.flow_through_boundary_factory(BOX),
        "composed": boundary.compose_boundaries(
            boundary.mixed_boundary(BOX, {"y": "open", "z": "open"}),
            boundary.mixed_boundary(BOX, {"x": "open", "z": "absorbing"}),
        ),
        "distance absorbing": boundary.distance_based_boundary(BOX, ball_distance),
        "distance reflective": boundary.distance_based_boundary(
            BOX, ball_distance, "clamping", "reflective"
        ),
        "function": jnp.abs,
    }
    for condition in ("reflective", "absorbing", "clamping"):
        sphere = boundary.spherical_boundary((1, 0.5, 0.5), 0.6, condition)
        pipe = boundary.cylindrical_boundary("x", (0.5, 0.5), 0.5, 3.0, condition)
        made |= {f"sphere {condition}": sphere, f"cylinder {condition}": pipe}
    return made


def make_seeds(count=6, seed=0, dtype=np.float32):
    """Places near the middle of the box, inside every boundary of the collection."""
    rng = np.random.default_rng(seed)
    return (np.array([1.0, 0.5, 0.5]) + rng.uniform(-0.2, 0.2, (count, 3))).astype(
        dtype
    )


def run_slots(limit, seeds, slots, total, integrator="euler", seed: Any = 0):
    """The paths of some slots of a larger run; the flow is uniform."""
    dynamics = make_dynamics(FLOW, limit, None, seed)
    method = Method(integrator, particles=total)
    start = jnp.asarray(seeds)
    schedule = make_schedule(dynamics.field, TIMES, 2, method.tableau, start.dtype)
    first = first_instant(dynamics.field, TIMES, start.dtype)
    particles = initialize(dynamics, start, first, method)
    particles = replace(particles, slots=jnp.asarray(slots))
    final, record = advance(dynamics, particles, schedule, method)
    return Paths(record.positions, TIMES[1:], None, record.generation, final)


def cross(limit, before, after, *, start=0.0, end=1.0, seed=0, step=0, field=None):
    """Particles after one step from before to after, and the boundary."""
    count = len(before)
    # Rows up to one number, so that one program serves all tests of a boundary.
    before, after = (pad_axis(x, -(-count // ROWS) * ROWS) for x in (before, after))
    span = np.asarray([start, end], after.dtype)
    found = _cross(limit, before, after, span, noise_key(seed), np.int32(step), field)
    host = (lambda x: x) if isinstance(after, jax.Array) else np.asarray
    return jax.tree.map(lambda x: host(x)[:count], found)


@eqx.filter_jit
def _cross(limit, before, after, span, key, step, field):
    cell_hint = () if field is None else field.start(before)
    particles = replace(seed_particles(before, cell_hint), positions=after)
    draw = Draw(key, particles.slots, step)
    return limit.apply(particles, StepContext(before, span[0], span[1], draw, field))


def assert_same(first, second):
    """Equal trees, bit for bit, NaN being equal to itself."""
    jax.tree.map(np.testing.assert_array_equal, first, second)
