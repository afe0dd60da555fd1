import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrig.testing import assert_one_trace
from jaxtrace.analysis.density import KERNELS, NORMAL, get_kernel
from trace_densities import CONSTANTS, PROFILES

pytestmark = pytest.mark.slow  # compiles many programs

ALL = {**KERNELS, "normal": NORMAL}


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("h", [0.7, 3e-6])
@pytest.mark.parametrize("name", ALL)
def test_kernels_integrate_to_one(name, h, dims):
    kernel = ALL[name]
    r = np.linspace(0, min(kernel.support, 12.0) * h, 20_001)
    shell = 2 * np.pi * r if dims == 2 else 4 * np.pi * r**2
    with jax.enable_x64(True):
        values = np.asarray(kernel(jnp.asarray(r), h, dims))
    assert np.trapezoid(shell * values, r) == pytest.approx(1, rel=1e-7)


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_follow_the_table(name, dims):
    q = np.linspace(0, 2.5, 26, dtype=np.float32)
    expected = [CONSTANTS[name][dims] * PROFILES[name](x) for x in q.tolist()]
    values = get_kernel(name)(jnp.asarray(q), 1.0, dims)
    np.testing.assert_allclose(values, expected, rtol=2e-5, atol=1e-7)


@pytest.mark.parametrize("name", KERNELS)
def test_nothing_beyond_the_support(name):
    kernel = get_kernel(name)
    q = kernel.support * jnp.array([0.0, 0.999, 1.0, 1.5])
    assert kernel.profile(q)[2:].tolist() == [0, 0]
    assert kernel.inside(q).tolist() == [1, 1, 0, 0]
    assert bool(jnp.all(jnp.diff(kernel.profile(q)) <= 0))


@pytest.mark.parametrize("name", ALL)
def test_kernels_compile(name):
    kernel = ALL[name]
    r = jnp.linspace(0.0, 3.0, 7)
    values, again = assert_one_trace(lambda r: kernel(r, 0.8, 3), (r,), (r + 1.0,))
    np.testing.assert_allclose(values, kernel(r, 0.8, 3), rtol=1e-6)
    np.testing.assert_allclose(again, kernel(r + 1.0, 0.8, 3), rtol=1e-6)


def test_unknown_kernels_and_dimensions_raise():
    with pytest.raises(ValueError, match=r"'spline' is unknown.*cubic_spline"):
        get_kernel("spline")
    with pytest.raises(ValueError, match="2-D or 3-D"):
        get_kernel("wendland")(jnp.ones(3), 1.0, 4)
