"""Tracking does nothing until it is initialized, and everything after."""

import subprocess
import sys

import jax
import numpy as np
import pytest

from jaxtrace.utils.memory import (
    configure_memory_optimization,
    get_memory_tracker,
    initialize_memory_tracking,
    memory_tracked,
    stop_memory_tracking,
    track_memory,
    track_operation_memory,
    track_variable_memory,
)


@pytest.fixture(autouse=True)
def stopped():
    yield
    stop_memory_tracking()


def work():
    track_memory("event", "x", np.ones(2))
    track_variable_memory("y", np.ones(3))
    with track_operation_memory("block"):
        return 7


@memory_tracked
def bare(x):
    """Adds one."""
    return x + 1


@memory_tracked("named")
def called(x):
    return x + 2


def test_before_it_is_initialized_nothing_happens():
    assert get_memory_tracker() is None
    assert work() == 7
    assert (bare(1), called(1)) == (2, 3)
    assert get_memory_tracker() is None


def test_after_it_everything_is_recorded():
    tracker = initialize_memory_tracking()
    assert get_memory_tracker() is tracker
    assert work() == 7
    assert (bare(1), called(1)) == (2, 3)
    assert tracker.variables == {"x": 16, "y": 24}
    assert set(tracker.operations) == {"block", "bare", "named"}
    assert bare.__doc__ == "Adds one."
    stop_memory_tracking()
    count = len(tracker.snapshots)
    work()
    assert len(tracker.snapshots) == count


def test_a_second_tracker_takes_over(tmp_path):
    first = initialize_memory_tracking(tmp_path / "log")
    second = initialize_memory_tracking(tmp_path / "other")
    work()
    assert get_memory_tracker() is second
    assert len(first.snapshots) == 1


def test_values_under_a_trace_have_sizes():
    tracker = initialize_memory_tracking()

    @jax.jit
    def double(x):
        track_variable_memory("traced", x)
        return 2 * x

    double(np.ones(4, np.float32))
    assert tracker.variables == {"traced": 16}


@pytest.mark.slow
def test_tracking_opens_no_device():
    program = """
from jaxrig.devices import devices_are_open
from jaxtrace.utils import configure_memory_optimization, initialize_memory_tracking
from jaxtrace.utils import track_memory
import os
initialize_memory_tracking()
track_memory("start")
assert not devices_are_open()
configure_memory_optimization()
assert os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_allocator_settings_that_come_too_late_are_refused():
    jax.devices()
    with pytest.raises(RuntimeError, match="before the first array"):
        configure_memory_optimization()
