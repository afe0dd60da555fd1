"""Oracle: the eight CPU devices of the test run, and a fresh process."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrig.devices import pick_devices, place, set_accelerator_memory


def test_pick_counts_and_kinds():
    assert pick_devices("cpu", 3) == jax.devices("cpu")[:3]
    assert pick_devices() == jax.devices()


def test_what_is_not_there_is_said():
    with pytest.raises(ValueError, match="no tpu device: JAX sees cpu only"):
        pick_devices("tpu")
    with pytest.raises(ValueError, match="9 devices asked for, 8 cpu there"):
        pick_devices("cpu", 9)
    with pytest.raises(ValueError, match="'quantum' is not one of"):
        pick_devices("quantum")


def test_place_moves_arrays_and_nothing_else():
    device = jax.devices()[5]
    tree = place({"a": np.arange(3), "b": jnp.ones(2), "name": "x"}, device)
    assert tree["a"].devices() == tree["b"].devices() == {device}
    assert tree["name"] == "x"


def test_memory_settings_are_refused_once_devices_are_open():
    jnp.ones(1)
    with pytest.raises(RuntimeError, match="before the first array"):
        set_accelerator_memory(preallocate=False)
    with pytest.raises(ValueError, match=r"fraction=1\.5"):
        set_accelerator_memory(fraction=1.5)


def test_importing_opens_no_device_and_settings_take_effect():
    program = """
import os, jaxrig.devices as d, jaxrig, jaxarc, jaxtrace, acbo
assert not d.devices_are_open()
d.set_accelerator_memory(preallocate=False, fraction=0.5)
assert os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
assert os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] == "0.5"
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
