"""Settings reach JAX, come back from it, and leave it alone at import."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace import config
from jaxtrace.config import (
    configure,
    configure_package,
    ensure_consistent_arrays,
    get_config,
    get_package_config,
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


def run(program: str) -> None:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.slow
def test_import_starts_nothing_and_a_limit_set_early_takes_memory_as_needed():
    run(
        """
import os
from jaxrig.devices import devices_are_open
import jax, jaxtrace.config as c, jaxtrace.utils
assert not devices_are_open() and not jax.config.values["jax_enable_x64"]
assert c.get_config().memory_limit_gb == 8.0 and "auto" in repr(c.get_config())
c.configure(memory_limit_gb=3.0, verbose=True)
assert not devices_are_open()
assert os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
"""
    )


@pytest.mark.slow
def test_memory_variables_of_the_user_stay():
    run(
        """
import os
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "true"
import jaxtrace.config as c
c.configure(memory_limit_gb=3.0)
assert os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] == "true"
"""
    )


def test_a_device_that_is_not_there_is_said_once():
    with pytest.warns(
        RuntimeWarning, match="no tpu device.*working on the cpu"
    ) as seen:
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
    assert get_config().device == jax.default_backend()
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
    with pytest.raises(ValueError, match="device='quantum'"):
        configure(dtype="float64", device="quantum")
    with pytest.raises(TypeError, match="did you mean 'verbose'"):
        configure(dtype="float64", verbos=True)
    with pytest.raises(ValueError, match="device_id=99 is too large: 8 cpu"):
        configure(dtype="float64", device="cpu", device_id=99)
    assert get_config().dtype == "float32"
    assert jnp.ones(1).dtype == jnp.float32


def test_the_live_object_is_one_and_sets_what_is_assigned():
    live = get_config()
    configure(verbose=True)
    assert live.verbose is True
    live.dtype = "float64"
    assert jnp.ones(1).dtype == jnp.float64
    with pytest.raises(TypeError, match="no setting 'speed'"):
        live.speed = 3
    with pytest.raises(AttributeError, match="no setting 'speed'"):
        _ = live.speed
    reset_config()
    assert live is get_config()
    assert live.settings == config.Settings()


def test_setters_and_presets():
    live = get_config()
    live.set_device("cpu", 1)
    live.set_memory_limit(2.5)
    live.set_dtype("float64")
    assert (live.device_id, live.memory_limit_gb, live.dtype) == (1, 2.5, "float64")
    with pytest.raises(ValueError, match="above 0"):
        live.set_memory_limit(0)
    live.optimize_for_speed()
    assert (live.dtype, live.precompile_functions) == ("float32", True)
    live.optimize_for_memory()
    assert (live.auto_batch_sizing, live.precompile_functions) == (True, False)
    live.optimize_for_accuracy()
    assert (live.dtype, live.precision) == ("float64", "highest")


def test_the_package_functions_use_the_same_store():
    configure_package(memory_limit_gb=5.0)
    assert get_config().memory_limit_gb == 5.0
    configure_package("float64", "cpu")
    assert get_package_config() == {
        "dtype": "float64",
        "device": "cpu",
        "memory_limit_gb": 5.0,
    }


def test_recommended_batch_size():
    live = get_config()
    assert live.get_recommended_batch_size(7500, 1500) == 7500
    live.set_memory_limit(0.5)
    # 0.5 GiB over 1500 frames x 3 coordinates x 4 bytes x 4 copies
    assert live.get_recommended_batch_size(10**6, 1500) == 2**29 // 72000
    live.set_memory_limit(1e-9)
    assert live.get_recommended_batch_size(10**6, 1500) == 100
    assert live.get_recommended_batch_size(7, 1500) == 7
    with pytest.raises(ValueError, match="n_timesteps=0"):
        live.get_recommended_batch_size(7, 0)


def test_system_info():
    info = get_config().get_system_info()
    assert set(info) == {
        *("system_memory_gb", "available_devices", "jax_available", "current_config")
    }
    assert len(info["available_devices"]) == len(jax.devices())
    assert info["current_config"]["dtype"] == "float32"
    assert info["current_config"]["device"] == jax.default_backend()


def test_consistent_arrays():
    configure(device="cpu", device_id=2)
    a, b = ensure_consistent_arrays([1, 2], np.ones(3))
    assert a.dtype == b.dtype == jnp.float32
    assert a.devices() == b.devices() == {jax.devices()[2]}
    (c,) = get_config().ensure_consistent_arrays(a)
    np.testing.assert_array_equal(c, [1, 2])
    assert ensure_consistent_arrays(a, device="cpu")[0].devices() == {jax.devices()[0]}
    with pytest.raises(ValueError, match=r'configure\(dtype="float64"\)'):
        ensure_consistent_arrays(a, dtype="float64")
    with pytest.raises(ValueError, match="int32 is not one of: float32, float64"):
        ensure_consistent_arrays(a, dtype=np.int32)
