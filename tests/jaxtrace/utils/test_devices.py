"""Oracle: the eight CPU devices of the test run, and a fresh process."""

import subprocess
import sys

import jax
import pytest

from jaxtrace.config import configure, reset_config
from jaxtrace.utils.devices import (
    configure_xla_env,
    default_device_kind,
    devices_in_use,
    get_devices,
    get_jax_version,
)


def test_what_there_is():
    assert get_jax_version() == jax.__version__
    assert get_devices() == jax.devices()
    assert get_devices("cpu") == jax.devices("cpu")
    assert get_devices("tpu") == []
    with pytest.raises(ValueError, match="'quantum' is not one of"):
        get_devices("quantum")


def test_the_kind_in_use():
    configure(device="cpu")
    assert default_device_kind() == "cpu"
    reset_config()


def test_a_device_outside_the_preferred_ones_is_added(monkeypatch):
    every = jax.local_devices()
    monkeypatch.setattr(jax, "local_devices", lambda **_: every[:2])
    with jax.default_device(every[1]):
        assert devices_in_use() == every[:2]
    with jax.default_device(every[5]):
        assert devices_in_use() == [*every[:2], every[5]]


def test_too_late_is_said():
    jax.devices()
    with pytest.raises(RuntimeError, match="before the first array"):
        configure_xla_env(preallocate=False)
    with pytest.raises(RuntimeError, match=r"configure\(device='cpu'\)"):
        configure_xla_env(platform="cpu")


@pytest.mark.slow
def test_in_time_it_takes_effect():
    program = """
import os, jax
from jaxtrace.utils import configure_xla_env
configure_xla_env(preallocate=False, mem_fraction=0.75, platform="cpu", quiet=True)
assert os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
assert os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] == "0.75"
assert jax.config.values["jax_platforms"] == "cpu"
assert {d.platform for d in jax.devices()} == {"cpu"}
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
