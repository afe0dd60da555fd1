import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrig import record_compilations
from jaxrig.testing import assert_one_trace
from jaxtrace.fields.analytic import ABCFlow, DoubleGyre, UniformFlow
from jaxtrace.integrators import METHODS
from jaxtrace.tracking.boundaries.box import box_boundary
from jaxtrace.tracking.simulation import simulate
from jaxtrace.types import ParticleStatus
from trace_runs import UNIT_BOX, cloud, end, grid_of, single, spiral, still

AXES = [np.linspace(0, 1, 5)] * 3


def waves(positions, t):
    """A flow to put on a grid."""
    x, y, z = np.asarray(positions).T
    parts = [np.sin(3 * y + t), np.cos(2 * x * z) - 0.5, np.sin(x + 2 * y - t)]
    return 0.4 * np.stack(parts, 1)


waves_on_grid = grid_of(waves, AXES, [0.0, 1.0])


@pytest.mark.parametrize("name", METHODS)
def test_measured_order_on_a_nonlinear_flow(double, name):
    seeds, steps = cloud(4, -0.5, 0.5), 32
    exact = end(spiral, seeds, np.linspace(0, 1, 401), integrator="rk45")
    errors = []
    for longer in (2, 1):  # one program: both runs take so many steps
        times = np.linspace(0, longer, steps + 1)
        found = simulate(spiral, seeds, times, integrator=name).positions
        errors.append(np.max(np.abs(found[steps // longer] - exact)))
    order = np.log2(errors[0] / errors[1])
    assert order == pytest.approx(METHODS[name].order, abs=0.25)


@pytest.mark.parametrize(("name", "count"), [("rk2", 5), ("rk4", 9), ("rk45", 9)])
def test_a_ramp_in_time_is_integrated_exactly(name, count):
    """u = (t, 0, 0) from x = 1 over [0, 2] on slices 0, 0.5, .., 2 ends at 3."""
    times = np.linspace(0, 2, 5)
    ramp = lambda p, t: t * np.array([[1.0, 0.0, 0.0]]) + 0 * p
    field = grid_of(ramp, [np.zeros(1)] * 3, times)
    found = simulate(
        field, single([[1, 0, 0]]), np.linspace(0, 2, count), integrator=name
    ).positions
    if name == "rk45":  # its weights are no binary fractions
        np.testing.assert_allclose(found[-1, 0, 0], 3.0, rtol=1e-6)
    else:
        assert found[-1, 0, 0] == 3.0


def test_frames_are_the_state_at_their_times():
    times = np.array([0.0, 0.1, 0.5, 2.0])
    found = simulate(
        UniformFlow(2.0, 0, 0), np.zeros((1, 3), np.float32), times, substeps=3
    )
    np.testing.assert_allclose(found.positions[:, 0, 0], 2 * times, rtol=1e-6)
    np.testing.assert_allclose(found.times, times, rtol=1e-6)


@pytest.mark.parametrize("options", [{}, {"tolerance": 1e-9}], ids=str)
def test_forward_then_backward_returns(double, options):
    seeds, times = cloud(5), np.linspace(0, 2, 81)
    there = end(spiral, seeds, times, **options)
    back = end(spiral, there, times[::-1], **options)
    assert np.max(np.abs(there - seeds)) > 0.5
    np.testing.assert_allclose(back, seeds, atol=1e-5)


@pytest.mark.parametrize(
    ("flow", "seed", "length"),
    [(DoubleGyre(), [1.2, 0.3, 0.0], 10.0), (ABCFlow(), [1.0, 2.0, 3.0], 5.0)],
    ids=["double gyre", "abc"],
)
def test_flows_without_divergence_preserve_volume(double, flow, seed, length):
    times = np.linspace(0, length, 2)

    def flow_map(x):
        return simulate(flow, x[None], times, substeps=400).positions[-1, 0]

    gradient = jax.jit(jax.jacfwd(flow_map))(jnp.asarray(seed))
    assert np.linalg.det(gradient) == pytest.approx(1.0, abs=1e-8)
    assert np.abs(gradient).max() > 2  # though shapes are not preserved at all


def differences(function, x, step=1e-6):
    """The gradient of a scalar function by central differences."""
    x = np.asarray(x, np.float64)
    found = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        shift = np.zeros_like(x)
        shift[index] = step
        found[index] = (function(x + shift) - function(x - shift)) / (2 * step)
    return found


def check_modes(function, x, **tolerances):
    """Compare gradients by reverse and by forward mode with differences."""
    both = jax.jit(jax.value_and_grad(function))
    expected = differences(lambda x: both(x)[0], x)
    for found in (both(jnp.asarray(x))[1], jax.jit(jax.jacfwd(function))(x)):
        np.testing.assert_allclose(found, expected, **tolerances)


BOUNDARIES = {
    "open": None,
    "reflective": box_boundary(UNIT_BOX, "reflective"),
    "periodic": box_boundary(UNIT_BOX, "periodic"),
}


@pytest.mark.parametrize(
    "rule",
    [
        "reflective",
        pytest.param("open", marks=pytest.mark.slow),
        pytest.param("periodic", marks=pytest.mark.slow),
    ],
)
def test_gradient_with_respect_to_seeds(double, rule):
    outside = "periodic" if rule == "periodic" else "clamp"
    field = grid_of(waves, AXES, outside=outside)
    seeds = np.array([[0.3, 0.9, 0.2], [0.6, 0.4, 0.95]])
    times = np.linspace(0, 1.5, 7)

    def reached(x):
        paths = simulate(field, x, times, boundary=BOUNDARIES[rule], integrator="rk2")
        return jnp.sum(paths.positions[-1] * jnp.array([[1.0, 2.0, 3.0]]))

    check_modes(reached, seeds, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    "nodes",
    [
        pytest.param(3, id="blended"),
        pytest.param(5, id="per particle", marks=pytest.mark.slow),
    ],
)
def test_gradient_with_respect_to_the_values_of_a_field(double, nodes):
    field = grid_of(waves, [np.linspace(0, 1, nodes)] * 3, [0.0, 1.0])
    seeds, times = cloud(1), np.linspace(0, 0.8, 3)

    def reached(values):
        changed = eqx.tree_at(lambda f: f.values, field, values)
        paths = simulate(changed, seeds, times, integrator="euler")
        return jnp.sum(paths.positions[-1, 0])

    values = field.values
    way = jnp.asarray(np.random.default_rng(1).normal(size=values.shape))
    both = jax.jit(jax.value_and_grad(reached))
    ahead, behind = (both(values + step * way)[0] for step in (1e-6, -1e-6))
    expected = (ahead - behind) / 2e-6
    found = jnp.sum(both(values)[1] * way)
    assert float(found) == pytest.approx(float(expected), rel=1e-6)


def test_gradient_with_respect_to_a_parameter_and_the_times(double):
    seeds = np.array([[0.7, 0.4, 0.0]])

    def reached(x):
        flow = DoubleGyre(amplitude=x[0])
        times = jnp.linspace(0.0, 1.0, 5) * x[1]
        return simulate(flow, seeds, times, substeps=4).positions[-1, 0, 0]

    given, both = np.array([0.1, 3.0]), jax.jit(jax.value_and_grad(reached))
    expected = differences(lambda x: both(x)[0], given)
    np.testing.assert_allclose(both(given)[1], expected, rtol=1e-6)


@pytest.mark.slow  # compiles a program of its own
def test_gradients_pass_by_those_who_are_gone(double):
    box = box_boundary(UNIT_BOX, "absorbing")
    times = np.linspace(0, 1, 5)

    def reached(x):
        paths = simulate(UniformFlow(0.5, 0, 0), x, times, boundary=box)
        return jnp.nansum(paths.positions[-1, :, 0])

    found = jax.grad(reached)(jnp.array([[0.2, 0.5, 0.5], [0.8, 0.5, 0.5]]))
    np.testing.assert_allclose(found, [[1.0, 0, 0], [0, 0, 0]], atol=1e-12)


def test_one_program_for_fields_seeds_and_boundaries_of_a_shape():
    times = np.linspace(0, 1, 4)

    def go(field, boundary, seeds):
        return simulate(field, seeds, times, boundary=boundary).positions

    fields = [grid_of(f, AXES, [0.0, 1.0]) for f in (waves, lambda p, t: 1 + 0 * p)]
    boxes = [box_boundary([[0, 0, 0], [b, b, b]], "reflective") for b in (1.0, 2.0)]
    seeds = [jnp.asarray(cloud(6, seed=s), np.float32) for s in (0, 1)]
    found = assert_one_trace(go, *zip(fields, boxes, seeds, strict=True))
    np.testing.assert_allclose(found[1][-1], np.asarray(seeds[1]) + 1, rtol=1e-5)


def test_plain_calls_share_one_program():
    ends = []
    for shift in (0.0, 0.1):
        with record_compilations() as log:
            seeds = single(cloud(3)) + np.float32(shift)
            ends.append(end(waves_on_grid, seeds, [0.0, 0.5, 1.0], integrator="euler"))
    assert not log.compilations
    assert np.abs(ends[1] - ends[0]).min() > 1e-3


def test_traced_times_are_the_same_clock():
    seeds, times = single(cloud(3)), np.linspace(0, 1, 5)
    host = simulate(spiral, seeds, times).positions
    go = jax.jit(lambda t: simulate(spiral, seeds, t).positions)
    np.testing.assert_allclose(go(jnp.asarray(times, np.float32)), host, rtol=1e-5)


def test_a_seed_that_is_nowhere_poisons_nobody():
    seeds = single(cloud(4))
    holed = seeds.copy()
    holed[1, 2] = np.nan
    run = lambda x: simulate(waves_on_grid, x, [0.0, 0.5, 1.0], integrator="euler")
    found, others = run(holed), [0, 2, 3]
    whole, positions = (np.asarray(r.positions) for r in (run(seeds), found))
    assert np.isnan(positions[:, 1]).all()
    np.testing.assert_array_equal(positions[:, others], whole[:, others])
    assert found.final.status[1] == ParticleStatus.LOST


def test_one_frame_is_the_seeds():
    found = simulate(spiral, single(cloud(3)), [2.0], record_velocities=True)
    assert np.array_equal(found.positions, single(cloud(3))[None])
    assert found.velocities is not None
    assert found.velocities.shape == (1, 3, 3)


def test_frame_0_is_not_moved_by_the_boundary():
    seeds = single([[1.5, -0.2, 0.5]])
    box = box_boundary(UNIT_BOX, "reflective")
    found = simulate(still, seeds, [0.0, 1.0], boundary=box).positions
    assert np.array_equal(found[0], seeds)
    np.testing.assert_allclose(found[1], [[0.5, 0.2, 0.5]], rtol=1e-6)
