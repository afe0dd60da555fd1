"""The calls that every field answers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.fields.analytic import DoubleGyre, Rotation
from jaxtrace.fields.base import Field, as_positions


def test_positions_gain_rows_and_columns():
    assert as_positions([1, 2]).tolist() == [[1, 2, 0]]
    assert as_positions((1.0, 2.0, 3.0)).tolist() == [[1, 2, 3]]
    assert as_positions(np.ones((4, 2))).shape == (4, 3)
    assert as_positions(np.zeros((0, 3))).shape == (0, 3)


def test_positions_keep_their_precision():
    assert as_positions(np.ones((1, 3))).dtype == np.float32
    assert as_positions(np.ones((1, 3), np.float16)).dtype == np.float16
    with jax.enable_x64(True):
        assert as_positions(np.ones((1, 3))).dtype == np.float64
        assert as_positions(np.ones((1, 3), np.float32)).dtype == np.float32
        assert as_positions([[1, 2, 3]]).dtype == np.float64


@pytest.mark.parametrize("shape", [(3, 4), (2, 2, 3), (5,), ()])
def test_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match="give \\(N, 3\\) or \\(N, 2\\)"):
        as_positions(np.zeros(shape))


class Wrapped(Field):
    """The least a field for users has to be."""

    def __init__(self, flow):
        self.flow = flow

    @property
    def frozen(self):
        return self.flow


def test_a_wrapper_answers_as_what_it_wraps():
    flow = DoubleGyre()
    x = np.random.default_rng(0).uniform(0, 1, (5, 2))
    found = Wrapped(flow).sample_at_positions(x, 3)
    assert np.array_equal(found, flow.sample_at_positions(x, 3.0))
    assert np.array_equal(Wrapped(flow).sample(x), flow.sample_at_positions(x, 0.0))
    assert Wrapped(flow).get_time_bounds() == flow.time_bounds()
    assert np.array_equal(Wrapped(flow).get_spatial_bounds()[1], flow.bounds()[1])
    assert Wrapped(flow).contains(x).tolist() == [True] * 5


def test_fields_are_pytrees_that_compiled_functions_take():
    x = jnp.ones((2, 3))

    @jax.jit
    def ask(flow, t):
        return flow.sample_at_positions(x, t)

    assert np.allclose(ask(Rotation(2.0), 0.0)[0], [-2, 2, 0])
    assert np.allclose(ask(Rotation(3.0), jnp.float32(1))[0], [-3, 3, 0])
    assert np.allclose(jax.jit(Rotation(2.0))(x, 0.0)[0], [-2, 2, 0])
