"""Functions and foreign objects as fields."""

from typing import cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.fields.analytic import (
    FunctionField,
    HostField,
    Rotation,
    as_field,
    function_field,
)

PLACES = np.random.default_rng(0).uniform(-1, 1, (9, 3)).astype(np.float32)


def swirl(x, t):
    return jnp.stack([-x[:, 1], x[:, 0]], 1) * (1 + t)


def host_swirl(x, t):
    out = np.zeros_like(x)
    out[:, 0], out[:, 1] = -x[:, 1] * (1 + t), x[:, 0] * (1 + t)
    return out


def expected(t):
    return np.stack([-PLACES[:, 1], PLACES[:, 0], 0 * PLACES[:, 0]], 1) * (1 + t)


def test_a_jax_function_is_compiled_and_gains_a_third_component():
    field = as_field(swirl)
    assert type(field) is FunctionField
    assert np.allclose(field.sample_at_positions(PLACES, 0.5), expected(0.5), atol=1e-6)


def test_a_numpy_function_is_called_on_the_host_with_one_warning():
    with pytest.warns(UserWarning, match="host_swirl needs NumPy arrays"):
        field = as_field(host_swirl)
    assert type(field) is HostField
    found = jax.jit(lambda x: field.sample_at_positions(x, 0.5))(PLACES)
    assert np.allclose(found, expected(0.5), atol=1e-6)


def test_fields_of_ours_are_themselves():
    flow = Rotation()
    assert as_field(flow) is flow


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
    found = as_field(Foreign()).sample_at_positions(PLACES, 0.5)
    assert np.allclose(found, expected(0.5), atol=1e-6)
    found = as_field(Steady()).sample_at_positions(PLACES, 99.0)
    assert np.allclose(found, expected(1.0), atol=1e-6)


def test_the_same_steady_field_is_the_same_program():
    steady = Steady()
    one, two, other = (
        cast(FunctionField, as_field(x)).function for x in (steady, steady, Steady())
    )
    assert one == two
    assert hash(one) == hash(two)
    assert one != other


def test_what_is_no_field_is_refused():
    with pytest.raises(TypeError, match="ndarray is no field"):
        as_field(np.zeros(3))


@pytest.mark.parametrize("shape", [(4, 3), (9, 4), (9,)])
def test_answers_of_another_shape_are_refused(shape):
    field = function_field(lambda x, t: jnp.zeros(shape))
    with pytest.raises(ValueError, match=r"for 9 positions: return \(9, 3\)"):
        field.sample(PLACES)


def test_errors_of_the_function_itself_come_through():
    def broken(x, t):
        raise KeyError("my own")

    with pytest.raises(KeyError, match="my own"):
        as_field(broken)
