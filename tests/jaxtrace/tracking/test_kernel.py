"""Runs as one GPU kernel, in the interpreter of kernels and lowered for a GPU."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.fields import DoubleGyre
from jaxtrace.tracking import (
    continuous_inlet_boundary_factory,
    periodic_boundary,
    reflective_boundary,
    spherical_boundary,
)
from jaxtrace.tracking.dynamics import Method
from jaxtrace.tracking.motion import Diffusion, Inertial
from jaxtrace.tracking.schedule import make_schedule
from jaxtrace.tracking.time_loop import (
    advance,
    advance_in_lanes,
    first_frame,
    first_instant,
    make_dynamics,
)
from trace_flows import noise_field, seeds

BOX = [[0, 0, 0], [1, 1, 1]]


def run_of(boundary=None, motion=None, field=None, integrator="rk4", count=60):
    """The arguments of a run through two frames of two steps each."""
    dynamics = make_dynamics(field or noise_field(), boundary, motion)
    times = np.array([0.0, 0.3, 0.5])
    method = Method(integrator, count)
    steps = make_schedule(dynamics.field, times, 2, method.tableau, np.float32)
    first = first_instant(dynamics.field, times, np.float32)
    start = jnp.asarray(seeds(count), np.float32)
    particles, _ = first_frame(dynamics, start, first, method)
    return dynamics, particles, jax.tree.map(jnp.asarray, steps), method


def test_a_kernel_takes_particles_where_the_loop_does():
    inlet = continuous_inlet_boundary_factory(BOX, flow_axis="x")
    run = run_of(inlet, Diffusion(0.01), integrator="rk2")

    whole = jax.jit(advance_in_lanes, static_argnums=3, static_argnames="interpret")
    got = whole(*run, interpret=True)
    want = jax.jit(advance, static_argnums=3)(*run)
    assert np.any(np.asarray(want[1].generation) > 0)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=0, atol=2e-6), got, want
    )


@pytest.mark.parametrize(
    "choices",
    [
        {"boundary": reflective_boundary(BOX)},
        {"boundary": periodic_boundary(BOX), "motion": Diffusion(0.01)},
        {"boundary": spherical_boundary([0.5, 0.5, 0.5], 0.4)},
        {"boundary": continuous_inlet_boundary_factory(BOX, flow_axis="x")},
        {"motion": Inertial(0.1)},
        {"field": DoubleGyre(), "integrator": "rk45"},
    ],
)
def test_rules_that_act_on_one_particle_fit_into_a_kernel(choices):
    run = run_of(**choices)
    traced = jax.jit(advance_in_lanes, static_argnums=3).trace(*run)
    lowered = traced.lower(lowering_platforms=("cuda",)).as_text()
    assert "triton" in lowered
