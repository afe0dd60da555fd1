"""Settings reach JAX, come back from it, and leave it alone at import."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.config import (
    configure,
    get_config,
    memory_budget_bytes,
    reset_config,
    working_device,
    working_dtype,
)


@pytest.fixture(autouse=True)
def defaults():
    reset_config()
    yield
    reset_config()


def test_a_device_that_is_not_there_is_said_once():
    with pytest.warns(RuntimeWarning, match="no tpu device.*using the CPU") as seen:
        configure(dtype="float32", device="tpu", memory_limit_gb=3.0)
    assert len(seen) == 1
    assert get_config().device == "cpu"
    assert memory_budget_bytes() == 3 * 1024**3


def test_float64_is_float64_and_back():
    configure(dtype="float64")
    assert working_dtype() == np.float64
    assert jnp.ones(1).dtype == jnp.float64
    configure(dtype="float32")
    assert jnp.ones(1).dtype == jnp.float32


def test_x64_of_the_user_survives():
    jax.config.update("jax_enable_x64", True)
    try:
        configure(dtype="float32")
        configure(dtype="float64")
        configure(dtype="float32")
        assert jnp.ones(1).dtype == jnp.float64
        assert working_dtype() == np.float32
    finally:
        jax.config.update("jax_enable_x64", False)


def test_a_device_is_pinned_after_jax_has_started():
    jnp.ones(1)
    configure(device="cpu", device_id=3)
    assert jnp.ones(1).devices() == {jax.devices("cpu")[3]} == {working_device()}
    assert get_config().device_id == 3
    configure(device="cpu")
    assert get_config().device_id is None
    assert jnp.ones(1).devices() == {jax.devices("cpu")[0]}
    configure(device="auto", device_id=2)
    assert working_device() == jax.devices()[2]
    configure(device="auto")
    assert working_device() == jax.devices()[0]
    with jax.default_device(jax.devices()[4]):
        assert working_device() == jax.devices()[4]


def test_precision_reaches_jax_and_reset_takes_it_back():
    found = jax.config.values["jax_default_matmul_precision"]
    configure(precision="fastest")
    assert jax.config.values["jax_default_matmul_precision"] == "bfloat16"
    configure(precision="highest")
    assert jax.config.values["jax_default_matmul_precision"] == "highest"
    reset_config()
    assert jax.config.values["jax_default_matmul_precision"] == found


def test_all_or_nothing():
    with pytest.raises(ValueError, match="device is 'quantum'"):
        configure(dtype="float64", device="quantum")
    with pytest.raises(TypeError, match="did you mean 'device'"):
        configure(dtype="float64", devise="cpu")
    with pytest.raises(
        ValueError, match="device_id=99 is out of range: there are 8 cpu"
    ):
        configure(dtype="float64", device="cpu", device_id=99)
    assert get_config().dtype == "float32"
    assert jnp.ones(1).dtype == jnp.float32
