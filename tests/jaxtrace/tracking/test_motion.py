import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrig.testing import assert_one_trace
from jaxtrace.fields.analytic import Rotation, UniformFlow
from jaxtrace.integrators import METHODS, find_method
from jaxtrace.tracking.boundaries.base import as_boundary
from jaxtrace.tracking.boundaries.box import box_boundary
from jaxtrace.tracking.boundaries.channel import channel_boundary
from jaxtrace.tracking.boundaries.solids import spherical_boundary
from jaxtrace.tracking.motion import Diffusion, Inertial, PassiveTracer
from jaxtrace.tracking.particles import noise_key
from jaxtrace.tracking.simulation import simulate
from jaxtrace.tracking.step import Method, single_step
from jaxtrace.tracking.time_loop import make_dynamics
from trace_runs import UNIT_BOX, cloud, end, still

TIMES = np.linspace(0, 2, 9)


def rise(positions, t, velocity):
    """A buoyant particle: up at a constant speed."""
    return jnp.zeros_like(positions).at[:, 2].set(0.25)


def drift(positions, t, velocity):
    """Half the flow again, and a push that grows in time."""
    push = jnp.stack([t, t, t], -1)
    return velocity / 2 + jnp.broadcast_to(push, positions.shape)


@pytest.mark.parametrize(
    "options", [{}, {"tolerance": 1e-5}], ids=["fixed", "adaptive"]
)
def test_terms_see_positions_time_and_velocity_and_add_up(options):
    seeds = cloud(4)
    motion = PassiveTracer((rise, drift))
    found = end(UniformFlow(1.0, 0.5, 0.0), seeds, TIMES, motion=motion, **options)
    expected = seeds + np.array([3.0 + 2.0, 1.5 + 2.0, 0.5 + 2.0])
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_term_of_another_shape_is_named():
    def wrong(positions, t, velocity):
        return positions[:, :2]

    with pytest.raises(ValueError, match=r"wrong returned shape \(4, 2\)"):
        simulate(still, cloud(4), TIMES, motion=PassiveTracer((wrong,)))


class Push(eqx.Module):
    """A term with a parameter."""

    speed: jax.Array

    def __call__(self, positions, t, velocity):
        return jnp.broadcast_to(self.speed[None], positions.shape)


def test_the_same_terms_are_compiled_once():
    """Other seeds, another flow of the kind, another parameter: one trace."""

    def go(field, motion, seeds):
        return simulate(field, seeds, TIMES, motion=motion).positions

    seeds = jnp.asarray(cloud(3), np.float32)
    push = [Push(jnp.full(3, s)) for s in (1.0, 2.0)]
    first, second = assert_one_trace(
        go,
        (Rotation(1.0), PassiveTracer((rise, push[0])), seeds),
        (Rotation(2.0), PassiveTracer((rise, push[1])), seeds + 1),
    )
    assert not np.allclose(first, second)


def test_another_function_is_another_program():
    def go(motion, seeds):
        return simulate(still, seeds, TIMES, motion=motion).positions

    seeds = jnp.asarray(cloud(3), np.float32)
    with pytest.raises(AssertionError, match="motion"):
        assert_one_trace(
            go, (PassiveTracer((rise,)), seeds), (PassiveTracer((drift,)), seeds)
        )


def test_gradients_reach_the_parameters_of_a_term():
    def reached(speed):
        motion = PassiveTracer((Push(speed),))
        return simulate(still, cloud(1), TIMES, motion=motion).positions[-1, 0, 0]

    slope = jax.jit(jax.grad(reached))(jnp.array([0.5, 0.0, 0.0]))
    np.testing.assert_allclose(slope, [2.0, 0.0, 0.0], rtol=1e-6)


GRAVITY = (0.0, 0.0, -9.81)
WEIGHTLESS = 1e8  # a response time that makes drag negligible


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def settled(tau, t, seeds):
    """x and v of particles that start at rest and fall through a fluid at rest."""
    final = tau * np.array(GRAVITY)
    decay = np.exp(-t / tau)
    return seeds + final * (t - tau * (1 - decay)), final * (1 - decay)


@pytest.mark.parametrize("options", [{"substeps": 8}, {"tolerance": 1e-9}], ids=str)
def test_settling_from_rest_to_the_terminal_velocity(options):
    """Each particle at the rate of its own response time."""
    tau, times = np.array([0.1, 0.2, 0.15]), np.linspace(0, 2, 11)
    motion = Diffusion(0.0, motion=Inertial(tau, GRAVITY))
    paths = simulate(still, cloud(3), times, motion=motion, **options)
    expected, velocity = settled(tau[:, None], 2.0, cloud(3))
    np.testing.assert_allclose(paths.positions[-1], expected, rtol=1e-6)
    found = np.asarray(paths.final.velocity)
    np.testing.assert_allclose(found, velocity, rtol=1e-5)
    assert found[0, 2] == pytest.approx(tau[0] * GRAVITY[2], rel=1e-4)


def test_particles_start_with_the_velocity_of_the_flow():
    """In a uniform flow without gravity there is nothing to adapt to."""
    times = np.linspace(0, 1, 5)
    found = end(UniformFlow(1.0, -2.0, 0.5), cloud(3), times, motion=Inertial(0.3))
    np.testing.assert_allclose(found, cloud(3) + np.array([1.0, -2.0, 0.5]), rtol=1e-12)


def test_the_exponential_approach_to_a_flow_that_starts():
    """From rest in u = 1: x = t - tau (1 - exp(-t / tau))."""
    tau = 0.5

    def flow(positions, t):
        speed = jnp.where(t > 0, 1.0, 0.0)  # at rest when the particles start
        return jnp.broadcast_to(speed, positions.shape)

    times = np.concatenate([[0.0], np.linspace(1e-9, 2, 201)])
    paths = simulate(flow, np.zeros((1, 3)), times, motion=Inertial(tau))
    t = times[1:]
    expected = t - tau * (1 - np.exp(-t / tau))
    np.testing.assert_allclose(paths.positions[1:, 0, 0], expected, atol=1e-8)


@pytest.mark.parametrize("name", METHODS)
def test_measured_order(name):
    tau, steps, errors = 0.2, 80, []
    options = {"motion": Inertial(tau), "integrator": name}
    for longer in (2, 1):  # one program: both runs take so many steps
        times = np.linspace(0, longer, steps + 1)
        found = simulate(Rotation(2.0), [[1.0, 0, 0]], times, **options).positions
        errors.append(np.linalg.norm(found[steps // longer, 0] - spun(tau, 2.0, 1.0)))
    order = np.log2(errors[0] / errors[1])
    assert order == pytest.approx(METHODS[name].order, abs=0.3)


def spun(tau, rate, t):
    """A heavy particle in solid rotation, as a complex number: tau x'' + x' = i w x."""
    roots = np.roots([tau, 1.0, -1j * rate])
    parts = np.linalg.solve(np.array([[1, 1], roots]), np.array([1.0, 1j * rate]))
    place = np.sum(parts * np.exp(roots * t))
    return np.array([place.real, place.imag, 0.0])


def test_terms_are_accelerations_that_see_the_own_velocity():
    """A drag of the second kind: dv/dt = -k v without any other force."""

    def brake(positions, t, velocity, own):
        return -3.0 * own

    motion = Inertial(WEIGHTLESS, terms=(brake,))
    paths = simulate(
        UniformFlow(1.0, 0, 0), np.zeros((1, 3)), np.linspace(0, 1, 51), motion=motion
    )
    assert paths.positions[-1, 0, 0] == pytest.approx((1 - np.exp(-3)) / 3, rel=1e-6)


def throw(boundary, seeds, velocity, times):
    """Particles without drag that start with a velocity."""
    flow = UniformFlow(*velocity)
    motion = Inertial(WEIGHTLESS)
    return simulate(flow, seeds, times, motion=motion, boundary=boundary)


def test_a_mirror_turns_the_velocity_round():
    """Also where both components turn in one step, in a corner."""
    seeds, t = np.array([[0.5, 0.5, 0.5], [0.95, 0.97, 0.5]]), np.linspace(0, 3, 31)
    paths = throw(box_boundary(UNIT_BOX, "reflective"), seeds, (1.0, 0.6, 0.0), t)
    for axis, u in enumerate((1.0, 0.6)):
        way = seeds[None, :, axis] + u * t[:, None]
        folded = np.abs((way + 1) % 2 - 1)
        np.testing.assert_allclose(paths.positions[..., axis], folded, atol=1e-6)
    wanted = [[-1.0, 0.6, 0.0], [-1.0, 0.6, 0.0]]
    np.testing.assert_allclose(paths.final.velocity, wanted, atol=1e-6)


@pytest.mark.parametrize(("rule", "velocity"), [("periodic", 1.0), ("clamping", 0.0)])
def test_a_period_keeps_the_velocity_and_a_stop_ends_it(rule, velocity):
    paths = throw(
        box_boundary(UNIT_BOX, rule), [[0.9, 0.5, 0.5]], (1.0, 0.5, 0.0), [0.0, 0.2]
    )
    np.testing.assert_allclose(paths.final.velocity, [[velocity, 0.5, 0.0]], atol=1e-6)


def test_a_round_wall_turns_the_radial_part():
    """Straight along a radius the way back is the same radius."""
    unit = np.array([0.6, 0.8, 0.0])
    paths = throw(
        spherical_boundary((0, 0, 0), 1.0, "reflective"), [0.9 * unit], unit, [0.0, 0.2]
    )
    np.testing.assert_allclose(paths.positions[-1, 0], 0.9 * unit, atol=1e-6)
    np.testing.assert_allclose(paths.final.velocity[0], -unit, atol=1e-6)


def test_a_user_s_mirror_turns_the_velocity_too():
    mirror = as_boundary(lambda x: jnp.abs(x))
    paths = throw(mirror, [[0.1, 0.5, 0.5]], (-1.0, 0.0, 0.0), [0.0, 0.2])
    np.testing.assert_allclose(paths.positions[-1, 0, 0], 0.1, atol=1e-6)
    np.testing.assert_allclose(paths.final.velocity[0, 0], 1.0, atol=1e-6)


def test_a_boundary_on_the_host_has_no_derivative():
    with pytest.warns(UserWarning, match="NumPy"):
        mirror = as_boundary(lambda x: np.abs(np.asarray(x)))
    with pytest.raises(TypeError, match=r"derivative.*jax\.numpy"):
        throw(mirror, [[0.1, 0.5, 0.5]], (-1.0, 0.0, 0.0), [0.0, 0.2])


def shear(positions, t):
    """Along x, faster higher up, and faster in time."""
    u = (1 + positions[:, 1]) * (1 + t)
    return jnp.stack([u, jnp.zeros_like(u), jnp.zeros_like(u)], 1)


def test_newcomers_start_with_the_velocity_of_the_flow():
    boundary = channel_boundary(UNIT_BOX, "x", concentrations=(1, 2, 2))
    seeds = np.array([[0.95, 0.1, 0.2], [0.05, 0.8, 0.7]])
    motion = Inertial(50.0, (0.0, 0.2, 0.0))
    paths = simulate(shear, seeds, [0.0, 0.1], motion=motion, boundary=boundary)
    assert paths.final.generation.tolist() == [1, 0]
    np.testing.assert_allclose(paths.positions[-1, 0], [0.0, 0.0, 0.0], atol=1e-12)
    own = np.asarray(paths.final.velocity)
    np.testing.assert_allclose(own[0], [1.1, 0.0, 0.0], rtol=1e-12)
    assert own[1, 0] == pytest.approx(1.8, abs=0.01)  # the other one hardly changed
    assert own[1, 1] == pytest.approx(0.02, rel=0.01)


def test_an_empty_slot_carries_nothing_that_spreads():
    seeds = np.array([[np.nan, 0, 0], [0.5, 0.5, 0.5]])
    paths = simulate(UniformFlow(), seeds, np.linspace(0, 1, 5), motion=Inertial(0.5))
    assert np.isnan(paths.positions[:, 0]).all()
    np.testing.assert_allclose(paths.positions[-1, 1], [1.5, 0.5, 0.5], rtol=1e-12)


def test_chance_moves_heavy_particles_too():
    walk = Diffusion(1e-3, motion=Inertial(0.5))
    plain = simulate(UniformFlow(), cloud(500), [0.0, 0.5, 1.0], motion=walk)
    spread = np.asarray(plain.positions[-1] - plain.positions[0])
    np.testing.assert_allclose(spread.mean(0), [1.0, 0.0, 0.0], atol=0.01)
    np.testing.assert_allclose(spread.std(0), np.sqrt(2e-3), rtol=0.15)


@pytest.mark.parametrize("name", METHODS)
def test_steps_that_would_blow_up_are_refused(name):
    limit = {"euler": 2.0, "rk2": 2.0, "rk4": 2.785, "rk45": 3.306}[name]
    motion, tableau = Inertial(0.01), find_method(name)
    motion.check(0.0099 * limit, tableau)
    with pytest.raises(
        ValueError, match=rf"response_time 0\.01 .*{name}|{name}.*0\.01"
    ):
        motion.check(0.0101 * limit, tableau)
    with pytest.raises(ValueError, match="unstable"):
        Diffusion(1.0, motion=motion).check(0.0101 * limit, tableau)


def test_simulate_checks_its_longest_step():
    times = [0.0, 0.01, 0.2]
    for substeps in (1, 6):
        with pytest.raises(ValueError, match="unstable"):
            simulate(still, cloud(1), times, motion=Inertial(0.01), substeps=substeps)
    simulate(still, cloud(1), times, motion=Inertial(0.01), substeps=8)
    simulate(still, cloud(1), times, motion=Inertial(0.01), tolerance=1e-3)


@pytest.mark.parametrize("options", [{}, {"tolerance": 1e-3}], ids=str)
def test_backward_is_refused(options):
    with pytest.raises(ValueError, match=r"dt=-0\.1 .*forward"):
        simulate(still, cloud(1), [0.1, 0.0], motion=Inertial(1.0), **options)


@pytest.mark.parametrize("tau", [0.0, -1.0, float("nan"), float("inf"), [1.0, 0.0]])
def test_a_response_time_is_above_nothing(tau):
    with pytest.raises(ValueError, match="response_time"):
        Inertial(tau)


def test_wrong_shapes_are_named():
    with pytest.raises(ValueError, match=r"response_time of shape \(1, 2\)"):
        Inertial([[1.0, 2.0]])
    with pytest.raises(ValueError, match=r"response_time of shape \(2,\) for 3"):
        simulate(still, cloud(3), TIMES, motion=Inertial([1.0, 2.0]))
    with pytest.raises(ValueError, match=r"gravity of shape \(2,\)"):
        Inertial(1.0, (0.0, 1.0))


def test_gradient_with_respect_to_the_response_time():
    def fallen(tau):
        motion = Inertial(tau, GRAVITY)
        paths = simulate(still, cloud(1), np.linspace(0, 1, 41), motion=motion)
        return paths.positions[-1, 0, 2]

    found = jax.jit(jax.grad(fallen))(jnp.asarray(0.3))
    step = 1e-6
    expected = (settled(0.3 + step, 1.0, 0)[0] - settled(0.3 - step, 1.0, 0)[0])[2]
    assert found == pytest.approx(expected / (2 * step), rel=1e-5)


def test_a_single_step_begins_with_the_flow():
    dynamics = make_dynamics(UniformFlow(2.0, 0, 0), None, Inertial(0.5), 0)
    assert dynamics.key.tolist() == noise_key(0).tolist()
    found = single_step(dynamics, jnp.zeros((2, 3)), 0.0, 0.1, Method("rk4", 2))
    np.testing.assert_allclose(found, [[0.2, 0, 0]] * 2, rtol=1e-12)
