from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrig.testing import assert_one_trace
from jaxtrace.fields.analytic import UniformFlow
from jaxtrace.fields.base import Field
from jaxtrace.fields.grid import make_grid_field
from jaxtrace.sphere import EARTH_RADIUS
from jaxtrace.tracking.boundaries.box import box_boundary
from jaxtrace.tracking.motion import SCHEMES, Diffusion, PassiveTracer
from jaxtrace.tracking.simulation import simulate
from trace_runs import UNIT_BOX, cloud, end, grid_of, single, still

HOUR = 3600.0


def ramp(positions):
    """A diffusivity that rises tenfold in the middle of the unit box."""
    return 0.1 + 0.9 * (1 + jnp.tanh((positions[:, 0] - 0.5) / 0.1)) / 2


def unmixed(positions):
    """How far a cloud is from an even one: chi squared over its degrees of freedom."""
    bins = 20
    found, _ = np.histogram(np.asarray(positions)[:, 0], bins, (0.0, 1.0))
    expected = len(positions) / bins
    return np.sum((found - expected) ** 2 / expected) / (bins - 1)


def mixed(motion, steps=150, dt=1e-3, boundary="reflective"):
    """The cloud after a while in a closed box, even at the start."""
    count = 2000
    seeds = np.full((count, 3), 0.5, np.float32)
    seeds[:, 0] = (np.arange(count) + 0.5) / count
    box = box_boundary([[0, 0, 0], [1, 0, 0]], boundary)
    times = dt * np.array([0.0, steps])
    options = {"motion": motion, "boundary": box, "integrator": "euler"}
    return end(still, seeds, times, substeps=steps, **options)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_spread_of_a_brownian_cloud(scheme):
    """Kx = 100, Ky = 50 for two hours: mean 0, standard deviation sqrt(2 K t)."""
    motion = Diffusion((100.0, 50.0, 0.0), scheme)
    count = 4000
    times = np.array([0.0, HOUR, 2 * HOUR])
    found = end(still, np.zeros((count, 3), np.float32), times, motion=motion)
    expected = np.sqrt(2 * np.array([100.0, 50.0]) * 2 * HOUR)
    sigmas = 4.5
    assert np.all(np.abs(found[:, :2].mean(0)) < sigmas * expected / np.sqrt(count))
    error = found[:, :2].std(0) / expected - 1
    assert np.all(np.abs(error) < sigmas / np.sqrt(2 * count))
    assert abs(np.corrcoef(found[:, 0], found[:, 1])[0, 1]) < sigmas / np.sqrt(count)
    assert np.all(found[:, 2] == 0)


def test_the_walk_is_normal_and_independent_in_time():
    count = 4000
    times = np.array([0.0, 0.5, 1.0])
    paths = simulate(
        still, np.zeros((count, 3), np.float32), times, motion=Diffusion(1.0)
    )
    found = np.asarray(paths.positions, np.float64)
    steps = (found[1:] - found[:-1]).reshape(2, -1)
    together = np.mean(steps[0] * steps[1]) / np.mean(steps**2)
    assert abs(together) < 4.5 / np.sqrt(steps.shape[1])
    kurtosis = np.mean(steps**4) / np.mean(steps**2) ** 2
    assert kurtosis == pytest.approx(3, abs=4.5 * np.sqrt(24 / steps.size))


@pytest.mark.parametrize(("scheme", "dt"), [*zip(SCHEMES, [1e-3, -1e-3], strict=True)])
def test_a_well_mixed_cloud_stays_well_mixed(scheme, dt):
    assert unmixed(mixed(Diffusion(ramp, scheme), dt=dt)) < 2.5


class Undrifted(Diffusion):
    """A walk without the drift of a varying diffusivity."""

    def _coefficients(self, places, time):
        return super()._coefficients(places, time)[0], None


def test_without_the_drift_a_cloud_gathers_where_it_walks_least():
    found = mixed(cast(Any, Undrifted)(ramp))
    assert unmixed(found) > 20
    assert np.mean(found[:, 0] < 0.4) > 0.45


@pytest.mark.parametrize(
    "scheme", ["milstein", pytest.param("euler-maruyama", marks=pytest.mark.slow)]
)
def test_a_diffusivity_that_ends_at_a_wall(scheme):
    """K falls to nothing at a wall, and would be negative beyond it."""

    def fading(positions):
        return 4 * positions[:, 0] * (1 - positions[:, 0])

    found = mixed(Diffusion(fading, scheme), steps=100, dt=2e-4)
    assert np.all(np.isfinite(found))
    assert unmixed(found) < 3


def test_a_well_mixed_sea_stays_so_at_its_surface():
    """The surface is a mirror; what comes from 200 m below does not get there."""
    axes = np.arange(3.0), np.arange(3.0), np.array([-400.0, -200.0, 0.0])
    sea = make_grid_field(np.zeros((3, 3, 3, 3)), axes, radius=EARTH_RADIUS)
    seeds = np.ones((20_000, 3), np.float32)
    seeds[:, 2] = -200 * (np.arange(20_000) + 0.5) / 20_000
    walk = {"motion": Diffusion((0, 0, 1e-2)), "integrator": "euler", "substeps": 10}
    depths = -end(sea, seeds, [0.0, 10 * HOUR], **walk)[:, 2]
    found, _ = np.histogram(depths, np.arange(0, 60, 10))
    assert found.sum() == pytest.approx(5000, abs=4.5 * 5000**0.5)
    np.testing.assert_allclose(found, 1000, atol=4.5 * 1000**0.5)
    assert not (depths <= 0).any()


def test_each_axis_has_its_own_diffusivity_and_slope():
    def layered(positions):
        y, z = positions[:, 1], positions[:, 2]
        return jnp.stack([1 + y, 2 + y * y, 3 * jnp.exp(z)], 1)

    places = jnp.asarray(cloud(4), np.float32)
    spread, slope = coefficients(layered, places)
    x, y, z = np.asarray(places).T
    diffusivity = np.stack([1 + y, 2 + y * y, 3 * np.exp(z)], 1)
    np.testing.assert_allclose(spread, np.sqrt(2 * diffusivity), rtol=1e-6)
    expected = np.stack([0 * x, 2 * y, 3 * np.exp(z)], 1)
    np.testing.assert_allclose(slope, expected, rtol=1e-6)


@eqx.filter_jit
def ask(walk, places, time):
    return walk._coefficients(places, time)


def coefficients(diffusivity, places, time=0.0) -> Any:
    given = (jnp.asarray(x, np.float32) for x in (places, time))
    found = ask(Diffusion(diffusivity), *given)
    return [None if x is None else np.asarray(x) for x in found]


def test_a_number_a_function_and_a_field_agree():
    places = cloud(5)
    axes = [np.linspace(0, 1, 6)] * 3
    ramped = lambda p, t: np.stack([1 + 2 * p[:, 0], 0 * p[:, 0] + 3, 1 + p[:, 2]], 1)
    field = grid_of(ramped, axes)
    by_field = coefficients(field, places)
    by_hand = coefficients(
        lambda p: jnp.stack([1 + 2 * p[:, 0], 0 * p[:, 0] + 3, 1 + p[:, 2]], 1), places
    )
    for a, b in zip(by_field, by_hand, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    for even in (2.0, (2.0, 2.0, 2.0), jnp.asarray(2.0), lambda p: 0 * p[:, 0] + 2):
        np.testing.assert_allclose(coefficients(even, places)[0], 2.0, rtol=1e-6)
    assert coefficients(2.0, places)[1] is None


def test_a_facade_and_a_foreign_field_will_do():
    axes = [np.linspace(0, 1, 3)] * 3
    field = grid_of(lambda p, t: 2.0 + 0 * p, axes)

    class Facade(Field):
        @property
        def frozen(self):
            return field

    class Foreign:
        def sample_at_positions(self, positions, t):
            return 2.0 + 0 * positions

    class Steady:
        def sample(self, positions):
            return 2.0 + 0 * positions

    for given in (field, Facade(), Foreign(), Steady()):
        np.testing.assert_allclose(coefficients(given, cloud(2))[0], 2.0, rtol=1e-6)


def test_a_diffusivity_may_change_in_time():
    def growing(positions, t):
        return t + 0 * positions[:, 0]

    np.testing.assert_allclose(coefficients(growing, cloud(2), 2.0)[0], 2.0, rtol=1e-6)

    class Foreign:
        def sample_at_positions(self, positions, t=0.0):
            return t + 0 * positions

    foreign = coefficients(Foreign(), cloud(2), 2.0)[0]
    np.testing.assert_allclose(foreign, 2.0, rtol=1e-6)
    slices = grid_of(lambda p, t: t + 0 * p, [np.zeros(1)] * 3, [0.0, 4.0])
    np.testing.assert_allclose(coefficients(slices, cloud(2), 2.0)[0], 2.0, rtol=1e-6)


def test_a_repeating_domain_walks_by_the_diffusivity_inside():
    """Beyond a periodic face K is that of the other side, not what a formula says."""

    def hollow(positions):
        return jnp.where(positions[:, 0] > 1, 1e6, 1e-8)

    box = box_boundary(UNIT_BOX, "periodic")
    seeds = [[0.95, 0.5, 0.5]]
    found = end(UniformFlow(), seeds, [0, 0.1], motion=Diffusion(hollow), boundary=box)
    np.testing.assert_allclose(found, [[0.05, 0.5, 0.5]], atol=1e-3)


def test_a_particle_walks_alike_alone_in_a_batch_and_tiled():
    seeds, times = single(cloud(8)), np.linspace(0, 1, 4)
    motion = Diffusion(0.1)
    whole = simulate(still, seeds, times, motion=motion, seed=3).positions
    some = simulate(still, seeds[:2], times, motion=motion, seed=3).positions
    np.testing.assert_array_equal(some, whole[:, :2])


def test_noise_does_not_depend_on_what_is_recorded():
    seeds, times = single(cloud(8)), np.linspace(0, 1, 4)
    motion = Diffusion(0.1)
    every = simulate(still, seeds, times, motion=motion).positions
    last = simulate(still, seeds, [0.0, 1.0], substeps=3, motion=motion).positions
    np.testing.assert_array_equal(every[-1], last[-1])


def test_chance_acts_at_the_end_of_adaptive_intervals():
    seeds, times = single(cloud(8)), np.linspace(0, 1, 4)
    fixed = end(still, seeds, times, motion=Diffusion(0.1))
    found = end(still, seeds, times, motion=Diffusion(0.1), tolerance=1e-4)
    np.testing.assert_allclose(found, fixed, rtol=1e-6)


def test_other_numbers_are_no_new_program():
    def go(motion, seeds):
        return simulate(still, seeds, np.linspace(0, 1, 3), motion=motion).positions

    seeds = jnp.asarray(cloud(3), np.float32)
    first, second = assert_one_trace(
        go, (Diffusion(0.1), seeds), (Diffusion((0.4, 0.4, 0.4)), seeds)
    )
    moved = [np.asarray(p[-1] - seeds) for p in (first, second)]
    np.testing.assert_allclose(moved[1], 2 * moved[0], atol=1e-5)


def test_gradient_with_respect_to_the_diffusivity():
    """A path of a walk scales with the root of K."""

    def reached(k):
        motion = Diffusion(jnp.stack([k, k, k]))
        paths = simulate(still, np.zeros((1, 3)), [0.0, 1.0, 2.0], motion=motion)
        return paths.positions[-1, 0, 0]

    both = jax.jit(jax.value_and_grad(reached))
    value, slope = both(jnp.asarray(4.0))
    assert slope == pytest.approx(float(value) / 8, rel=1e-5)
    assert np.isfinite(both(jnp.asarray(0.0))[1])


def test_the_flow_and_terms_carry_the_cloud():
    wind = PassiveTracer((lambda x, t, u: jnp.array([1.0, 0.0, 0.0]),))
    seeds, flow = np.zeros((3000, 3), np.float32), UniformFlow(2.0, -1.0, 0.0)
    walk = Diffusion(0.1, motion=wind)
    found = end(flow, seeds, np.linspace(0, 2, 5), motion=walk)
    np.testing.assert_allclose(found.mean(0), [6.0, -2.0, 0.0], atol=0.06)
    np.testing.assert_allclose(found.std(0), np.sqrt(0.4), rtol=0.06)


@pytest.mark.parametrize("wrong", [-1.0, (1.0, 2.0), float("nan"), "much", None])
def test_wrong_numbers_are_named(wrong):
    with pytest.raises(ValueError, match="diffusivity"):
        Diffusion(wrong)


def test_wrong_functions_and_schemes_are_named():
    with pytest.raises(ValueError, match=r"shape \(2, 2\)"):
        Diffusion(lambda x: x[:, :2])
    with pytest.raises(TypeError, match=r"jax\.numpy"):
        Diffusion(lambda x: np.asarray(x)[:, 0])
    with pytest.raises(ValueError, match=r"'heun'.*euler-maruyama, milstein"):
        Diffusion(1.0, "heun")
