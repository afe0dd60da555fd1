import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.fields.analytic import Rotation, UniformFlow
from jaxtrace.fields.clock import Instant
from jaxtrace.fields.mesh import make_mesh_field
from jaxtrace.integrators import euler_step, rk2_step, rk4_step
from jaxtrace.tracking.boundaries.box import box_boundary
from jaxtrace.tracking.diffusion import Diffusion
from jaxtrace.tracking.motion import Inertial
from jaxtrace.tracking.simulate import make_dynamics
from jaxtrace.tracking.step import Method, TimeStep, initialize, single_step, take_step
from jaxtrace.types import ParticleStatus
from trace_meshes import SIX, lattice, split
from trace_runs import UNIT_BOX, cloud, grid_of, single, spiral

STEPS = {"euler": euler_step, "rk2": rk2_step, "rk4": rk4_step}


def instant(field, time):
    found = field.instant(np.asarray(time, np.float64))
    return jax.tree.map(
        lambda x: jnp.asarray(x, np.float32 if x.dtype == np.float64 else None), found
    )


def prepare(field, seeds, boundary=None, motion=None, **choices):
    """A world, particles at their seeds and the static choices of a run."""
    dynamics = make_dynamics(field, boundary, motion, 0)
    seeds = jnp.asarray(seeds, np.float32)
    method = Method(particles=len(seeds), **choices)
    return (
        dynamics,
        initialize(dynamics, seeds, instant(dynamics.field, 0.0), method),
        method,
    )


def tick_of(dynamics, method, t=0.0, dt=0.1, step=0):
    instants = instant(dynamics.field, t + dt * np.asarray(method.tableau.instants))
    return TimeStep(jnp.float32(t), jnp.float32(dt), jnp.int32(step), instants)


def step(field, seeds, *, dt=0.1, **choices):
    dynamics, particles, method = prepare(field, seeds, **choices)
    take = eqx.filter_jit(lambda w, p, t: take_step(w, p, t, method))
    return take(dynamics, particles, tick_of(dynamics, method, dt=dt))


@pytest.mark.parametrize("name", STEPS)
def test_one_step_is_that_of_the_formula(name):
    seeds = jnp.asarray(cloud(6), np.float32)
    dynamics = make_dynamics(spiral, None, None, 0)
    found = single_step(dynamics, seeds, 0.3, 0.1, Method(name, 6))
    expected = STEPS[name](seeds, 0.3, 0.1, spiral)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_single_steps_are_compiled_once_per_shape():
    """Another time, step length or field of the kind is no new program."""
    from jaxtrace.tracking.step import _single_step

    seeds = jnp.asarray(cloud(11), np.float32)
    method = Method("rk2", 11)
    before = _single_step.trace_count
    for rate, t in ((1.0, 0.0), (2.0, 0.5), (3.0, 7.0)):
        single_step(make_dynamics(Rotation(rate), None, None, 0), seeds, t, 0.1, method)
    assert _single_step.trace_count == before + 1


@pytest.mark.parametrize("motion", [None, Diffusion(0.1), Inertial(0.5)], ids=type)
@pytest.mark.slow
def test_tiles_change_nothing(motion):
    box = box_boundary(UNIT_BOX, "reflective")
    axes = [np.linspace(0, 1, 4)] * 3
    field = grid_of(lambda p, t: np.cos(9 * p[:, ::-1]), axes)
    given = {"boundary": box, "motion": motion, "integrator": "rk2"}
    whole = step(field, cloud(6), **given)
    for tile in (3, 100) if motion is None else (3,):
        tiled = step(field, cloud(6), tile=tile, **given)
        np.testing.assert_array_equal(tiled.positions, whole.positions)


def test_stage_points_of_a_repeating_domain_are_wrapped_before_sampling():
    """The field is NaN beyond the box, and stages lie there."""

    def flow(positions, t):
        x = positions[:, :1]
        inside = (x >= 0) & (x < 1)
        return jnp.where(inside, 1.0 + x, jnp.nan) * jnp.array([[1.0, 0.0, 0.0]])

    seeds = [[0.95, 0.5, 0.5]]
    found = step(flow, seeds, boundary=box_boundary(UNIT_BOX, "periodic"))
    assert found.alive[0]
    unwrapped = lambda p, t: flow(p - jnp.floor(p), t)
    expected = rk4_step(single(seeds), 0.0, 0.1, unwrapped)[0, 0] - 1
    assert found.positions[0, 0] == pytest.approx(float(expected), rel=1e-5)


def test_a_particle_that_gets_nowhere_is_lost_where_it_was():
    def hole(positions, t):
        bad = positions[:, :1] > 0.5
        return jnp.where(bad, jnp.nan, 1.0) * jnp.ones_like(positions)

    seeds = single([[0.1, 0.1, 0.1], [0.6, 0.2, 0.2], [0.2, 0.3, 0.3]])
    found = step(hole, seeds)
    assert found.alive.tolist() == [True, False, True]
    assert found.status.tolist() == [0, ParticleStatus.LOST, 0]
    assert np.array_equal(found.positions[1], seeds[1])
    assert found.exit_time[1] == 0
    np.testing.assert_allclose(found.positions[::2], seeds[::2] + 0.1, rtol=1e-6)


def test_the_gone_stay_where_they_are():
    dynamics, particles, method = prepare(UniformFlow(), cloud(3))
    alive = jnp.array([True, False, True])
    particles = eqx.tree_at(lambda p: p.alive, particles, alive)
    after = take_step(dynamics, particles, tick_of(dynamics, method), method)
    assert np.array_equal(after.positions[1], particles.positions[1])
    assert not np.array_equal(after.positions[0], particles.positions[0])


def test_absorbed_where_the_path_meets_the_face():
    box = box_boundary(UNIT_BOX, "absorbing")
    found = step(UniformFlow(1.0, 0.5, 0.0), [[0.9, 0.5, 0.5]], boundary=box, dt=0.4)
    assert found.status.tolist() == [ParticleStatus.ABSORBED]
    np.testing.assert_allclose(found.positions, [[1.0, 0.55, 0.5]], rtol=1e-6)
    assert found.exit_time[0] == pytest.approx(0.1, rel=1e-5)


@pytest.mark.slow
def test_what_look_ups_remember_is_handed_on():
    points, cells = lattice((4, 4, 4))
    values = np.broadcast_to([0.6, 0.0, 0.0], points.shape)
    mesh = make_mesh_field(
        points, split(cells, SIX), values, kind="tetra", dtype=np.float32
    )
    dynamics, particles, method = prepare(mesh, [[0.1, 0.5, 0.4]])
    after = take_step(dynamics, particles, tick_of(dynamics, method, dt=1.0), method)
    np.testing.assert_allclose(after.positions, [[0.7, 0.5, 0.4]], rtol=1e-5)
    same = jax.tree.map(np.array_equal, after.cell_hint, particles.cell_hint)
    assert not all(jax.tree.leaves(same))


def test_a_seed_that_is_nowhere_starts_an_empty_slot():
    seeds = [[0.1, 0.2, np.nan], [0.4, 0.5, 0.6], [np.inf, 0, 0]]
    _, particles, _ = prepare(UniformFlow(), seeds, motion=Inertial(1.0))
    assert particles.alive.tolist() == [False, True, False]
    assert particles.status.tolist() == [ParticleStatus.LOST, 0, ParticleStatus.LOST]
    assert np.isfinite(particles.positions).all()
    assert np.isfinite(particles.velocity).all()


def test_a_method_knows_its_numbers():
    assert Method("rk2").tableau.order == 2
    with pytest.raises(ValueError, match="rk7"):
        _ = Method("rk7").tableau


def test_a_tick_holds_the_instants_of_its_stages():
    dynamics, _, method = prepare(UniformFlow(), cloud(1))
    assert isinstance(tick_of(dynamics, method).stages, Instant)
