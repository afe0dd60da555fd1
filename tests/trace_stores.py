"""Frames to store, and a process that dies at its n-th file operation."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest


class Killed(BaseException):
    """The process ends here."""


def frames(count, particles=5, start=0, dtype=np.float32):
    """Times and arrays of `count` frames that begin with frame `start`."""
    rng = np.random.default_rng(7)
    every = rng.normal(size=(start + count, particles, 3)).astype(dtype)
    times = 0.25 * np.arange(start, start + count)
    arrays = {
        "positions": every[start:],
        "velocities": -every[start:],
        "alive": every[start:, :, 0] < 10,
        "generation": np.floor(every[start:, :, 1]).astype(np.int32),
    }
    return times, arrays


def assert_frames(store, count, **options):
    """The store holds the first `count` frames, exactly."""
    times, arrays = frames(count, **options)
    assert store.frames == count
    found_times, found = store.read()
    np.testing.assert_array_equal(found_times, times)
    assert set(found) == set(arrays)
    for name, values in arrays.items():
        np.testing.assert_array_equal(found[name], values)
        assert found[name].dtype == values.dtype


_WRITER = """
import os, sys
from trace_stores import frames
from jaxtrace.io.store import open_store

limit, count = int(sys.argv[2]), 0

def watch(event, arguments):
    global count
    if event in ("os.rename", "os.replace", "os.truncate", "os.remove") or (
        event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR)
    ):
        count += 1
        if count > limit:
            os._exit(9)

store = open_store(sys.argv[1], "a")
for start in range(0, 9, 3):
    if start == 3:
        sys.addaudithook(watch)
    store.append(*frames(3, start=start))
"""


def kill_while_writing(path, operations):
    """Append 3 x 3 frames in a process killed after so many changes of files.

    Counting begins with the second append; whether the process was killed is said.
    """
    command = [sys.executable, "-c", _WRITER, str(path), str(operations)]
    done = subprocess.run(
        command,
        cwd=Path(__file__).parent,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        check=False,
    )
    assert done.returncode in (0, 9), done.stderr.decode()
    return done.returncode == 9


pytest.importorskip("zarr")
