"""Flows against their formulas in NumPy, and what the formulas promise."""

from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrig.testing import assert_one_trace
from jaxtrace.fields.analytic import (
    FLOWS,
    ABCFlow,
    DoubleGyre,
    FunctionField,
    HostField,
    MovingEddy,
    Rotation,
    Saddle,
    TaylorGreen,
    UniformFlow,
    Vortex,
    as_field,
    function_field,
)

PLACES = np.random.default_rng(0).uniform(0.1, 0.9, (50, 3))
T = 1.7


def uniform(x, y, z, t):
    return 0.3, -2.0, 0.1


def rotation(x, y, z, t):
    return -0.7 * (y - 0.2), 0.7 * (x - 0.5), 0.05


def saddle(x, y, z, t):
    return 1.5 * (x - 0.5), -1.5 * (y - 0.1), 0


def vortex(x, y, z, t):
    dx, dy = x - 0.5, y - 0.5
    r2 = dx**2 + dy**2
    speed = 2.0 / (2 * np.pi * r2) * (1 - np.exp(-r2 / 0.2**2))
    return -speed * dy, speed * dx, 0


def double_gyre(x, y, z, t):
    a = 0.25 * np.sin(2 * np.pi / 10 * t)
    f, slope = a * x**2 + (1 - 2 * a) * x, 2 * a * x + 1 - 2 * a
    u = -np.pi * 0.1 * np.sin(np.pi * f) * np.cos(np.pi * y)
    return u, np.pi * 0.1 * np.cos(np.pi * f) * np.sin(np.pi * y) * slope, 0


def abc(x, y, z, t):
    a, b, c = np.sqrt(3), np.sqrt(2), 1
    return (
        a * np.sin(z) + c * np.cos(y),
        b * np.sin(x) + a * np.cos(z),
        c * np.sin(y) + b * np.cos(x),
    )


def taylor_green(x, y, z, t):
    decay = 1.2 * np.exp(-2 * 0.1 * 9 * t)
    u = decay * np.cos(3 * x) * np.sin(3 * y)
    return u, -decay * np.sin(3 * x) * np.cos(3 * y), 0


def moving_eddy(x, y, z, t):
    mean, swing = 0.04 * np.exp(-0.3 * t), 0.26 * np.exp(-0.2 * t)
    return mean + swing * np.cos(1.1 * t), -swing * np.sin(1.1 * t), 0


CASES = {
    "uniform": (UniformFlow(0.3, -2, 0.1), uniform),
    "rotation": (Rotation(0.7, 0.5, 0.2, 0.05), rotation),
    "saddle": (Saddle(1.5, 0.5, 0.1), saddle),
    "vortex": (Vortex(2, 0.2, 0.5, 0.5), vortex),
    "double_gyre": (DoubleGyre(), double_gyre),
    "abc": (ABCFlow(), abc),
    "taylor_green": (TaylorGreen(1.2, 3, 0.1), taylor_green),
    "moving_eddy": (MovingEddy(0.04, 0.3, 1.1, 0.2, 0.3), moving_eddy),
}


def expected(formula, t: Any = T, places=PLACES):
    parts = formula(*places.T, t)
    return np.stack([np.broadcast_to(p, len(places)) for p in parts], 1)


def answers(flows, x, times):
    """What all flows answer, by one program."""
    return [f.velocity(x, f.instant(times), f.start(x))[0] for f in flows]


def test_every_flow_is_its_formula():
    assert {name: type(flow) for name, (flow, _) in CASES.items()} == FLOWS
    flows = [flow for flow, _ in CASES.values()]
    times = np.linspace(0, 3, len(PLACES))  # an instant of each particle
    single = jax.jit(answers)(flows, jnp.asarray(PLACES), jnp.asarray(times))
    with jax.enable_x64(True):
        double = jax.jit(answers)(flows, jnp.asarray(PLACES), jnp.asarray(T))
    for (_, formula), one, two in zip(CASES.values(), single, double, strict=True):
        assert np.allclose(one, expected(formula, times), atol=1e-5)
        assert two.dtype == np.float64
        assert np.allclose(two, expected(formula), rtol=0, atol=1e-12)


def test_no_flow_has_divergence():
    flows = [flow for flow, _ in CASES.values()]
    with jax.enable_x64(True):
        at = lambda x: jnp.stack(answers(flows, x[None], jnp.asarray(T)))[:, 0]
        slopes = jax.jit(jax.vmap(jax.jacfwd(at)))(jnp.asarray(PLACES[:7]))
    assert np.allclose(np.trace(slopes, axis1=2, axis2=3), 0, atol=1e-12)


def test_other_parameters_are_not_compiled_again():
    flows = [flow for flow, _ in CASES.values()]
    others = [type(flow)() for flow in flows]
    ask = lambda flows, t: answers(flows, jnp.asarray(PLACES, np.float32), t)
    assert_one_trace(ask, (flows, jnp.float32(0.5)), (others, jnp.float32(2.5)))


def test_a_vortex_is_smooth_at_its_center():
    flow = Vortex(2.0, 0.2)
    near = 0.2 * np.sqrt(1e-3) * np.array([[0.999, 0, 0], [1.001, 0, 0], [0, 0, 0]])
    speed = np.asarray(flow.sample(near))[:, 1]
    assert np.allclose(speed[:2], 1 / (np.pi * 0.2**2) * near[:2, 0], rtol=1e-3)
    assert speed[2] == 0
    instant = jax.tree.map(jnp.asarray, flow.instant(0.0))
    at = lambda x: flow.velocity(x[None], instant, ())[0][0]
    assert np.isfinite(jax.jit(jax.jacfwd(at))(jnp.zeros(3))).all()


def test_parameters_may_be_any_kind_of_number_and_have_gradients():
    x = np.array([[1.0, 2.0, 0.0]])
    rates: list[Any] = [2, 2.0, np.float64(2), np.float32(2), jnp.float32(2)]
    for rate in rates:
        assert Rotation(rate).sample(x).tolist() == [[-4, 2, 0]]

    def speed(rate):
        return Rotation(rate).sample(jnp.asarray(x, np.float32))[0, 1]

    assert jax.grad(speed)(jnp.float32(3)) == 1


def test_where_and_when_flows_are_known():
    low, high = DoubleGyre().get_spatial_bounds()
    assert low.tolist() == [0, 0, 0]
    assert high.tolist() == [2, 1, 0]
    assert UniformFlow().get_time_bounds() == (-np.inf, np.inf)
    assert np.isinf(UniformFlow().get_spatial_bounds()[1]).all()


SOME_PLACES = np.random.default_rng(0).uniform(-1, 1, (9, 3)).astype(np.float32)


def swirl(x, t):
    return jnp.stack([-x[:, 1], x[:, 0]], 1) * (1 + t)


def host_swirl(x, t):
    out = np.zeros_like(x)
    out[:, 0], out[:, 1] = -x[:, 1] * (1 + t), x[:, 0] * (1 + t)
    return out


def swirl_at(t):
    x, y = SOME_PLACES[:, 0], SOME_PLACES[:, 1]
    return np.stack([-y, x, 0 * x], 1) * (1 + t)


def test_a_jax_function_is_compiled_and_gains_a_third_component():
    field = as_field(swirl)
    assert type(field) is FunctionField
    found = field.sample_at_positions(SOME_PLACES, 0.5)
    assert np.allclose(found, swirl_at(0.5), atol=1e-6)


def test_a_numpy_function_is_called_on_the_host_with_one_warning():
    with pytest.warns(UserWarning, match="host_swirl needs NumPy arrays"):
        field = as_field(host_swirl)
    assert type(field) is HostField
    found = jax.jit(lambda x: field.sample_at_positions(x, 0.5))(SOME_PLACES)
    assert np.allclose(found, swirl_at(0.5), atol=1e-6)


class Foreign:
    """A field of another package, which a user may also call."""

    def sample_at_positions(self, positions, t):
        return swirl(positions, t)

    def sample(self, positions):
        raise AssertionError("the call with a time comes first")

    def __call__(self, positions, t):
        raise AssertionError("sample_at_positions comes first")


class Steady:
    def sample(self, positions):
        return swirl(positions, 1.0)


def test_foreign_fields_answer_by_the_fullest_call_they_have():
    found = as_field(Foreign()).sample_at_positions(SOME_PLACES, 0.5)
    assert np.allclose(found, swirl_at(0.5), atol=1e-6)
    found = as_field(Steady()).sample_at_positions(SOME_PLACES, 99.0)
    assert np.allclose(found, swirl_at(1.0), atol=1e-6)


def test_the_same_steady_field_is_the_same_program():
    steady = Steady()
    fields = [cast(FunctionField, as_field(x)) for x in (steady, steady, Steady())]
    one, two, other = (field.function for field in fields)
    assert one == two
    assert hash(one) == hash(two)
    assert one != other


def test_fields_of_ours_are_themselves_and_what_is_no_field_is_refused():
    flow = Rotation()
    assert as_field(flow) is flow
    with pytest.raises(TypeError, match="ndarray is not a field"):
        as_field(np.zeros(3))
    with pytest.raises(ValueError, match="is given for one number"):
        Rotation(np.array([1.0, 2.0]))


@pytest.mark.parametrize("shape", [(4, 3), (9, 4), (9,)])
def test_answers_of_another_shape_are_refused(shape):
    field = function_field(lambda x, t: jnp.zeros(shape))
    with pytest.raises(ValueError, match=r"for 9 positions: return \(9, 3\)"):
        field.sample(SOME_PLACES)


def test_errors_of_the_function_itself_come_through():
    def broken(x, t):
        raise KeyError("my own")

    with pytest.raises(KeyError, match="my own"):
        as_field(broken)


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [(lambda t, positions: positions[:, :2], IndexError), (lambda p: p, TypeError)],
)
def test_a_function_of_other_arguments_is_told_how_it_is_called(wrong, kind):
    with pytest.raises(kind) as raised:
        as_field(wrong)
    assert "called as f(positions, t)" in raised.value.__notes__[-1]
