"""Memory is reported where it is; tracking does nothing until it starts."""

import json
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrig.memory import MIB
from jaxtrace.config import configure, reset_config
from jaxtrace.utils import (
    memory_report,
    start_memory_tracking,
    stop_memory_tracking,
    track_memory,
    track_operation_memory,
)


@pytest.fixture(autouse=True)
def defaults():
    yield
    stop_memory_tracking()
    reset_config()


@track_operation_memory("decorated")
def work():
    track_memory("event", "x", {"a": np.ones(2), "b": np.ones(1)})
    with track_operation_memory("block"):
        return 7


def test_the_report_says_where_data_is():
    configure(device="cpu", device_id=6, memory_limit_gb=2.0)
    before = memory_report()
    array = jnp.ones((4 * MIB,), jnp.int8)
    after = memory_report()
    assert after.working_device.startswith("cpu:6 ")
    growth = {
        name: memory.in_use - before.devices[name].in_use
        for name, memory in after.devices.items()
    }
    assert growth.pop(after.working_device) == array.nbytes
    assert set(growth.values()) == {0}
    assert after.budget_bytes == 2 * 1024**3
    text = str(after)
    assert "cpu:6 cpu: 4.0 MiB (live arrays), working device" in text
    assert "limit set: 2,048 MiB" in text


def test_nothing_is_recorded_before_the_start_or_after_the_end():
    assert work() == 7
    tracker = start_memory_tracking()
    assert work() == 7
    assert tracker.summary()["variables"] == {"x": 24}
    assert set(tracker.operations) == {"decorated", "block"}
    stop_memory_tracking()
    count = len(tracker.snapshots)
    work()
    assert len(tracker.snapshots) == count


def test_operations_add_up_even_when_they_fail():
    tracker, kept = start_memory_tracking(), []
    for _ in range(2):
        with track_operation_memory("load"):
            kept.append(jnp.ones((250,), jnp.float32))
    with pytest.raises(KeyError), track_operation_memory("break"):
        raise KeyError
    summary = json.loads(json.dumps(tracker.summary()))
    load = summary["operations"]["load"]
    assert (load["calls"], load["device_growth_bytes"]) == (2, 2000)
    assert load["seconds"] > 0
    assert summary["operations"]["break"]["calls"] == 1
    assert sum(summary["peak_device_bytes"].values()) >= 2000


def test_values_under_a_trace_have_sizes():
    tracker = start_memory_tracking()

    @jax.jit
    def double(x):
        track_memory("inside", "traced", x)
        return 2 * x

    double(np.ones(4, np.float32))
    assert tracker.summary()["variables"] == {"traced": 16}


def test_importing_configuring_and_tracking_open_no_device():
    program = """
import os
import jax, jaxtrace as jt
from jaxrig.devices import devices_are_open
from jaxtrace.utils import start_memory_tracking, track_memory
assert not jax.config.values["jax_enable_x64"]
start_memory_tracking()
track_memory("start")
jt.configure(memory_limit_gb=3.0)
assert not devices_are_open()
assert os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "true"
jt.configure(memory_limit_gb=2.0)
assert os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] == "true"
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
