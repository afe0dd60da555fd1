import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.fields.analytic import DoubleGyre, Rotation, UniformFlow
from jaxtrace.fields.mesh import make_mesh_field
from jaxtrace.integrators import SHORTEST, euler_step, rk2_step, rk4_step
from jaxtrace.tracking import step as module
from jaxtrace.tracking.boundaries.box import box_boundary
from jaxtrace.tracking.motion import Diffusion, Inertial, PassiveTracer
from jaxtrace.tracking.simulation import simulate
from jaxtrace.tracking.step import Method, TimeStep, single_step
from jaxtrace.tracking.time_loop import make_dynamics
from jaxtrace.types import ParticleStatus
from trace_meshes import SIX, lattice, split
from trace_runs import UNIT_BOX, cloud, end, grid_of, single, spiral, still

STEPS = {"euler": euler_step, "rk2": rk2_step, "rk4": rk4_step}
# Compiled where they are called, so that one program serves runs of a shape.
initialize = eqx.filter_jit(module.initialize)
take_step = eqx.filter_jit(module.take_step)


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
    return take_step(dynamics, particles, tick_of(dynamics, method, dt=dt), method)


@pytest.mark.parametrize("name", STEPS)
def test_one_step_is_that_of_the_formula(name):
    seeds = jnp.asarray(cloud(6), np.float32)
    dynamics = make_dynamics(spiral, None, None, 0)
    found = single_step(dynamics, seeds, 0.3, 0.1, Method(name, 6))
    expected = jax.jit(lambda x: STEPS[name](x, 0.3, 0.1, spiral))(seeds)
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


def test_tiles_change_nothing():
    motion = Diffusion(0.1, motion=Inertial(0.5))
    box = box_boundary(UNIT_BOX, "reflective")
    axes = [np.linspace(0, 1, 4)] * 3
    field = grid_of(lambda p, t: np.cos(9 * p[:, ::-1]), axes)
    given = {"boundary": box, "motion": motion, "integrator": "euler"}
    whole = step(field, cloud(6), **given)
    tiled = step(field, cloud(6), tile=3, **given)
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
    expected = jax.jit(lambda x: rk4_step(x, 0.0, 0.1, unwrapped))(single(seeds))[0, 0]
    assert found.positions[0, 0] == pytest.approx(float(expected) - 1, rel=1e-5)


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


def gyre_seeds(count):
    seeds = cloud(count)
    seeds[:, 0] *= 2
    seeds[:, 2] = 0
    return seeds


def test_the_tolerance_is_met_on_a_double_gyre(double):
    """The error of an interval is at most the tolerance, times the way along it."""
    seeds, times = gyre_seeds(20), np.linspace(0, 2, 5)
    exact = end(DoubleGyre(), seeds, times, substeps=200)
    errors = []
    for tolerance in (1e-4, 1e-8):
        found = end(DoubleGyre(), seeds, times, tolerance=tolerance)
        errors.append(np.max(np.abs(found - exact)))
        assert errors[-1] < 5 * tolerance
    assert errors[0] > 100 * errors[1]


def test_long_intervals_take_more_steps(double):
    """One interval over the whole span is as right as many."""
    seeds = gyre_seeds(20)
    many = end(DoubleGyre(), seeds, np.linspace(0, 10, 5), tolerance=1e-8)
    one = end(DoubleGyre(), seeds, [0.0, 10.0], tolerance=1e-8)
    np.testing.assert_allclose(one, many, atol=1e-5)


def test_a_particle_is_alone_in_its_steps():
    """The same bits whoever else is tracked: the others do not shorten its steps."""
    seeds, times = single(cloud(9)), np.linspace(0, 3, 4)
    whole = np.asarray(simulate(spiral, seeds, times, tolerance=1e-5).positions)
    for i in (0, 4, 8):
        copies = np.repeat(seeds[i : i + 1], len(seeds), 0)
        alone = simulate(spiral, copies, times, tolerance=1e-5).positions
        np.testing.assert_array_equal(alone[:, 0], whole[:, i])


def patchwork(positions, t):
    """A flow of several kinds, by the whole part of z; a particle meets one of them."""
    x, y, kind = positions[:, 0], positions[:, 1], jnp.round(positions[:, 2])
    spin = jnp.where(kind == 1, 0.1, 40.0)
    jump = jnp.where(x > 0.5, 1e3, 1.0)
    u = jnp.where(kind < 1, 0 * x, jnp.where(kind < 3, -spin * y, jump))
    v = jnp.where((kind == 1) | (kind == 2), spin * x, 0 * x)
    return jnp.stack([jnp.where(kind < 0, jnp.nan, u), v, 0 * x], 1)


def test_every_particle_meets_the_tolerance_by_steps_of_its_own():
    """What step a particle would take next is its own affair."""
    nowhere, rest, slow, fast, jump = range(5)
    seeds = single([[0.1, 0, -1], [0.1, 0, 0], [1, 0, 1], [1, 0, 2], [0, 0, 3]])
    found = simulate(patchwork, seeds, [0.0, 0.5, 1.0], tolerance=1e-5)
    final, next_dt = found.final, np.asarray(found.final.next_dt)
    assert final.alive.tolist() == [False, True, True, True, True]
    # Nothing but NaN: it ends, and the particle is lost where it was.
    assert final.status[nowhere] == ParticleStatus.LOST
    assert np.array_equal(found.positions[0], seeds)
    assert np.isnan(found.positions[1:, nowhere]).all()
    # At rest an interval is one step.
    assert np.array_equal(found.positions[-1, rest], seeds[rest])
    assert next_dt[rest] == next_dt[slow] == 1
    # Fast neighbors do not slow a particle down.
    assert SHORTEST < next_dt[fast] < 0.3
    for one, angle in ((slow, 0.1), (fast, 40.0)):
        expected = [np.cos(angle), np.sin(angle), seeds[one, 2]]
        np.testing.assert_allclose(found.positions[-1, one], expected, atol=2e-3)
    # Where no step meets the tolerance, at a jump of the field, the shortest is taken.
    assert found.positions[-1, jump, 0] == pytest.approx(500.5, rel=1e-3)


def test_slices_of_a_grid_are_blended_at_each_particle_s_own_time(double):
    """u = t^2 on fine slices, from x = 0: steps of all lengths agree with t^3 / 3."""
    times = np.linspace(0, 2, 201)
    ramp = lambda p, t: t**2 * np.array([[1.0, 2.0, 0.0]]) + 0 * p
    field = grid_of(ramp, [np.zeros(1)] * 3, times)
    found = end(field, np.zeros((2, 3)), [0.0, 2.0], tolerance=1e-6)
    np.testing.assert_allclose(found, [[8 / 3, 16 / 3, 0.0]] * 2, rtol=1e-4)


def test_a_first_step_beyond_the_field_is_tried_again_shorter(double):
    """Stages of a long step leave the grid, beyond which is nothing."""
    axes = [np.linspace(-1.2, 1.2, 3)] * 2 + [np.zeros(1)]
    turn = lambda p, t: np.stack([-p[:, 1], p[:, 0], 0 * p[:, 0]], 1)
    field = grid_of(turn, axes, outside="nan")
    found = simulate(field, np.array([[1.0, 0.0, 0.0]]), [0.0, 6.0], tolerance=1e-8)
    assert found.final.alive[0]
    expected = [[np.cos(6.0), np.sin(6.0), 0.0]]
    np.testing.assert_allclose(found.positions[-1], expected, atol=1e-6)


def test_terms_alone_are_no_reason_to_dawdle():
    """The way that is allowed to be wrong counts what terms add."""
    push = PassiveTracer((lambda x, t, u: 0 * x + 1.0,))
    found = simulate(still, single(cloud(2)), [0.0, 1.0], motion=push, tolerance=1e-6)
    assert np.all(found.final.next_dt == 1)


def test_a_stiff_particle_is_held_stable(double):
    """Far beyond what fixed steps allow, drag does not blow up."""
    motion = Inertial(1e-3, (0.0, 0.0, -10.0))
    found = simulate(still, np.zeros((1, 3)), [0.0, 1.0], motion=motion, tolerance=1e-6)
    expected = -10e-3 * (1 - 1e-3)
    assert found.positions[-1, 0, 2] == pytest.approx(expected, rel=1e-4)


def test_boundaries_act_at_the_ends_of_intervals():
    box = box_boundary(UNIT_BOX, "reflective")
    seeds = single([[0.5, 0.5, 0.5]])
    found = simulate(UniformFlow(), seeds, [0.0, 0.8], boundary=box, tolerance=1e-6)
    np.testing.assert_allclose(found.positions[-1], [[0.7, 0.5, 0.5]], rtol=1e-6)


def test_it_has_a_forward_mode(double):
    def reached(x):
        return simulate(spiral, x[None], [0.0, 1.0], tolerance=1e-9).positions[-1, 0]

    seed, step = jnp.array([0.3, 0.2, 0.1]), 1e-5
    found = jax.jit(jax.jacfwd(reached))(seed)[:, 0]
    shift = jnp.array([step, 0.0, 0.0])
    expected = (reached(seed + shift) - reached(seed - shift)) / (2 * step)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
