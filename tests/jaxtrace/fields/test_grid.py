"""Grid fields against SciPy and closed forms, in space and in time."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import RegularGridInterpolator

from jaxrig.testing import assert_one_trace
from jaxtrace.fields.clock import make_clock
from jaxtrace.fields.grid import GridField, StructuredGridSampler, make_grid_field
from trace_series import linear

EVEN = [np.linspace(-1, 1, 9), np.linspace(0, 3, 6), np.linspace(5, 6, 4)]
UNEVEN = [np.array([-1, -0.9, 0, 0.3, 1.0]), np.array([0, 2.5, 3]), EVEN[2] ** 2]
PLANE = [EVEN[0], UNEVEN[1], np.array([0.25])]
LINE = [np.array([0.0]), UNEVEN[0], np.array([1.0])]
AXES = {"even": EVEN, "uneven": UNEVEN, "plane": PLANE, "line": LINE}


@jax.jit
def answer(field, x, instant):
    return field.velocity(x, instant, ())[0]


def sample(field, x):
    """Velocities at a few places, by the program for 200 of them."""
    x = np.asarray(x)
    return np.asarray(field.sample(np.resize(x, (200, x.shape[1]))))[: len(x)]


def nodes(axes):
    return np.stack(np.meshgrid(*axes, indexing="ij"), -1)


def places(axes, count=200, seed=0, beyond=0.0):
    rng = np.random.default_rng(seed)
    low, high = (np.array([a[end] for a in axes]) for end in (0, -1))
    return low + (high - low) * rng.uniform(-beyond, 1 + beyond, (count, 3))


def random_values(axes, slices=None, seed=1):
    shape = tuple(a.size for a in axes)
    slices = () if slices is None else (slices,)
    return np.random.default_rng(seed).standard_normal((*slices, *shape, 3))


def oracle(axes, values, x):
    """SciPy's answer; axes with one node are constant, places outside are clamped."""
    wide = [i for i in range(3) if axes[i].size > 1]
    squeezed = values.squeeze(tuple(i for i in range(3) if i not in wide))
    grid = [axes[i] for i in wide]
    x = np.stack([np.clip(x[:, i], axes[i][0], axes[i][-1]) for i in wide], -1)
    return RegularGridInterpolator(grid, squeezed)(x)


@pytest.mark.parametrize("name", AXES)
def test_random_values_are_interpolated_as_scipy_does(name):
    axes = AXES[name]
    values, x = random_values(axes), places(axes, beyond=0.5)
    with jax.enable_x64(True):
        found = make_grid_field(values, axes).sample(x)
    assert np.allclose(found, oracle(axes, values, x), atol=1e-12)


@pytest.mark.parametrize("interpolation", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("extrapolation", ["constant", "linear", "periodic"])
@pytest.mark.slow  # compiles a program of its own
def test_an_instant_of_each_particle_equals_one_for_all(interpolation, extrapolation):
    values, x = random_values(EVEN, 4), places(EVEN, 24)
    clock = make_clock([0, 1, 1.5, 4], interpolation, extrapolation)
    field = make_grid_field(values, EVEN, clock)
    instants = np.linspace(-1, 5, 24)
    each = field.sample_at_positions(x, instants)
    for row in range(0, 24, 5):
        alone = field.sample_at_positions(x[row : row + 1], float(instants[row]))
        assert np.allclose(each[row : row + 1], alone, atol=1e-6)


def test_a_still_answers_as_the_field_does():
    field = make_grid_field(random_values(EVEN, 3), EVEN, [0.0, 1, 2])
    x, instant = jnp.asarray(places(EVEN), np.float32), field.instant(0.7)

    @jax.jit
    def both(field, instant):
        still, only = field.at_instant(instant, len(x))
        assert still.values.shape[0] == 1
        return answer(field, x, instant), answer(still, x, only)

    direct, frozen = both(field, instant)
    assert np.allclose(frozen, direct, atol=1e-6)
    assert field.at_instant(instant, 1)[0] is field
    assert field.at_instant(field.instant(np.linspace(0, 1, 999)), 999)[0] is field
    steady = make_grid_field(random_values(EVEN), EVEN)
    assert steady.at_instant(steady.instant(0.0), 999)[0] is steady


@pytest.mark.parametrize(("rule", "fill"), [("zero", 0.0), ("nan", np.nan)])
def test_times_beyond_the_record_give_nothing(rule, fill):
    clock = make_clock([0.0, 1], "cubic", rule)
    field = make_grid_field(random_values(EVEN, 2), EVEN, clock)
    x = jnp.asarray(places(EVEN, 5), np.float32)

    @jax.jit
    def both(field, late, early):
        still, instant = field.at_instant(early, 999)
        return answer(field, x, late), answer(still, x, instant)

    for found in both(field, field.instant(1.5), field.instant(-0.5)):
        np.testing.assert_array_equal(found, np.full((5, 3), fill))


def test_what_lies_outside_follows_the_policy():
    values = linear(nodes(EVEN))
    low, high = np.array([-1, 0, 5.0]), np.array([1, 3, 6.0])
    x = places(EVEN, beyond=0.5)
    outside = ((x < low) | (x > high)).any(1)
    answers = {
        rule: np.asarray(make_grid_field(values, EVEN, outside=rule).sample(x))
        for rule in ("clamp", "zero", "nan", "extrapolate")
    }
    for found in answers.values():
        assert np.allclose(found[~outside], linear(x[~outside]), atol=1e-4)
    assert outside.any()
    assert np.all(answers["zero"][outside] == 0)
    assert np.all(np.isnan(answers["nan"][outside]))
    assert np.allclose(answers["clamp"], linear(np.clip(x, low, high)), atol=1e-4)
    assert np.allclose(answers["extrapolate"], linear(x), atol=1e-4)


def test_the_surface_belongs_to_the_grid():
    corners = np.array(list(itertools.product([-1, 1], [0, 3], [5, 6])), float)
    field = make_grid_field(linear(nodes(EVEN)), EVEN, outside="nan")
    assert np.allclose(sample(field, corners), linear(corners), atol=1e-5)
    inside = field.contains(np.concatenate([corners, corners + 0.1]))
    assert inside[:8].all()
    assert not inside[8:].all()


@pytest.mark.parametrize("axis", [EVEN[0], UNEVEN[0]])
def test_a_repeating_grid_closes_after_its_last_spacing(axis):
    axes = [axis, EVEN[1], np.array([0.0])]
    values = random_values(axes)
    field = make_grid_field(values, axes, outside="periodic")
    period = axis[-1] - axis[0] + axis[1] - axis[0]
    low, high = field.bounds()
    assert np.isclose((high - low)[0], period)
    x = places(axes)
    again = x + np.array([3 * period, 0, 0])
    assert np.allclose(field.sample(x), field.sample(again), atol=1e-4)
    gap = (axis[1] - axis[0]) / 2
    seam = [[along, 0.3, 0.0] for along in (axis[0], axis[-1], axis[-1] + gap)]
    first, end, between = sample(field, seam)
    assert np.allclose(between, (end + first) / 2, atol=1e-5)
    assert field.contains(again).all()


def test_an_axis_that_is_nearly_even_is_not_taken_for_even():
    count = 1000
    steps = 1 + 9e-4 * np.linspace(-1, 1, count - 1)
    axis = np.concatenate([[0], np.cumsum(steps)]) / steps.sum()
    axes = [axis, np.zeros(1), np.zeros(1)]
    field = make_grid_field(linear(nodes(axes)), axes)
    assert not field.axes[0].even
    x = places(axes)
    assert np.allclose(field.sample(x), linear(x), atol=1e-5)


@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_single_precision_axes_are_even_to_their_rounding(offset):
    axis = np.linspace(offset, offset + 0.3, 17).astype(np.float32)
    for outside in ("clamp", "periodic"):
        axes = [axis, axis, axis]
        field = make_grid_field(np.zeros((17, 17, 17, 3)), axes, outside=outside)
        assert field.axes[0].even is (offset == 0)


@given(st.data())
@settings(max_examples=40)
@pytest.mark.slow  # compiles a program of its own
def test_any_grid_gives_back_its_nodes_and_stays_within_their_values(data):
    sizes = data.draw(st.sampled_from([(2, 5, 3), (4, 1, 2)]))
    scale = 10.0 ** data.draw(st.integers(-7, 7))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    axes = [scale * np.cumsum(rng.uniform(0.2, 1, n)) for n in sizes]
    values = random_values(axes)
    field = make_grid_field(values, axes, outside="nan")
    at_nodes = field.sample(nodes(axes).reshape(-1, 3))
    assert np.allclose(at_nodes, values.reshape(-1, 3), atol=1e-4)
    x = places(axes, 16, beyond=0.2)
    within = np.asarray(make_grid_field(values, axes).sample(x))
    assert np.all(within <= values.max((0, 1, 2)) + 1e-4)
    assert np.all(within >= values.min((0, 1, 2)) - 1e-4)


def test_positions_keep_their_dtype_whatever_the_values_have():
    with jax.enable_x64(True):
        field = make_grid_field(random_values(EVEN).astype(np.float32), EVEN)
        assert field.sample(places(EVEN)).dtype == np.float64
        assert field.sample(places(EVEN).astype(np.float32)).dtype == np.float32


def test_two_components_whole_numbers_and_no_numbers_are_accepted():
    field = make_grid_field(np.ones((9, 6, 4, 2), int), EVEN)
    found = sample(field, [[0.0, 1.0], [np.nan, 1.0]])
    np.testing.assert_array_equal(found, [[1, 1, 0], [np.nan] * 3])
    for shape, times in (((9, 6), None), ((3, 9, 6), [0, 1, 2])):
        values, (x, y, _) = np.ones((*shape, 2)), EVEN
        plane = StructuredGridSampler(values, x, y, times=times)
        np.testing.assert_array_equal(sample(plane, [[0.0, 1.0]]), [[1, 1, 0]])


def test_another_field_of_the_same_shape_is_not_compiled_again():
    x = jnp.asarray(places(EVEN, 31), np.float32)
    one = make_grid_field(random_values(EVEN, 2), EVEN, [0.0, 1])
    other = make_grid_field(random_values(EVEN, 2, seed=5), EVEN, [3.0, 7])
    ask = lambda field, instant: field.velocity(x, instant, ())[0]
    assert_one_trace(ask, (one, one.instant(0.5)), (other, other.instant(4.0)))


def test_values_have_gradients():
    field = make_grid_field(random_values(EVEN, 2), EVEN, [0.0, 1])
    x = jnp.asarray(places(EVEN, 3), np.float32)
    instant = jax.tree.map(jnp.asarray, field.instant(0.5))

    def total(values):
        other = GridField(values, field.axes, field.clock, field.outside)
        return answer(other, x, instant).sum()

    weights = jax.jit(jax.grad(total))(field.values)
    assert np.isclose(np.sum(weights), 9, atol=1e-4)


@pytest.mark.parametrize(
    ("values", "axes", "options", "message"),
    [
        ((9, 6, 5, 3), EVEN, {}, r"give \(\[slices,\] 9, 6, 4, 3\)"),
        ((9, 6, 4, 4), EVEN, {}, "do not fit axes"),
        ((2, 9, 6, 4, 3), EVEN, {"times": [0, 1, 2]}, "2 slices and 3 times"),
        ((9, 6, 4, 3), EVEN, {"outside": "bounce"}, "choose one of clamp"),
        ((9, 6, 4, 3), [EVEN[0][::-1], *EVEN[1:]], {}, "the x axis must increase"),
        ((2, 6, 4, 3), [np.array([0, np.inf]), *EVEN[1:]], {}, "finite coordinate"),
    ],
)
def test_wrong_grids_are_refused(values, axes, options, message):
    with pytest.raises(ValueError, match=message):
        make_grid_field(np.zeros(values), axes, **options)


X, Y, Z = np.array([0, 0.1, 0.5, 2.0]), np.linspace(-1, 1, 5), np.array([0.0, 3, 4])
RNG = np.random.default_rng(0)
STEADY = RNG.standard_normal((4, 5, 3, 3))
MOVING = RNG.standard_normal((6, 4, 5, 3, 3))
TIMES = np.array([0.0, 1, 2, 4, 8, 9])
PLACES = RNG.uniform([0, -1, 0], [2, 1, 4], (40, 3))


def test_a_grid_in_time_is_sampled_as_scipy_does():
    with jax.enable_x64(True):
        field = StructuredGridSampler(MOVING, X, Y, Z, times=TIMES)
        oracle = RegularGridInterpolator((TIMES, X, Y, Z), MOVING)
        for t in (0.0, 0.3, 3.5, 9.0):
            at = np.concatenate([np.full((40, 1), t), PLACES], 1)
            found = field.sample_at_positions(PLACES, t)
            assert np.allclose(found, oracle(at), atol=1e-12)
        assert np.allclose(field(PLACES, 3.5), field.sample_at_positions(PLACES, 3.5))
    assert field.get_time_bounds() == (0.0, 9.0)
    assert field.times is not None
    assert np.array_equal(field.times, TIMES)


def test_beyond_the_grid_the_bounds_are_handled():
    ones = np.ones((4, 5, 3, 3))
    field = StructuredGridSampler(ones, X, Y, Z, bounds_handling="nan")
    places = [[-5.0, 0, 0], [0.0, 0, 0]]
    assert np.isnan(field.sample(places))[:, 0].tolist() == [True, False]
    assert field.contains(places).tolist() == [False, True]
