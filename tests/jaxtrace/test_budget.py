"""A field five times the memory budget is read, tracked and recorded within it."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SHAPE = (192, 128, 128)  # 36 MiB a slice in single precision
COUNT = 60
BUDGET = COUNT * int(np.prod(SHAPE)) * 12 // 5

CHILD = """
import json, resource, sys
import numpy as np
import jaxtrace as jt

path, budget = sys.argv[1], int(sys.argv[2])
seeds = np.random.default_rng(0).uniform(0.2, 0.8, (2000, 3)).astype(np.float32)
walls = jt.reflective_boundary([[0, 0, 0], [1, 1, 1]])
axis = np.linspace(0, 1, 3)
still = np.zeros((9, 3, 3, 3, 3), np.float32)


def track(field):
    tracker = jt.create_tracker("rk4", field, walls)
    last = field.frozen.time_bounds()[1]
    return tracker.track_particles(seeds, (0.0, last), 2 * round(last) + 1)


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


# What JAX itself takes to start and to compile is not the field's.
track(jt.StructuredGridSampler(still, axis, axis, axis, times=np.arange(9.0)))
before = peak()
jt.configure(memory_limit_gb=budget / 2**30)
found = track(jt.load_optimized_dataset(path))
print(json.dumps([found.positions.shape, peak() - before]))
"""


def write_series(path):
    """A turning flow in a unit box; few different slices, each many times."""
    h5py = pytest.importorskip("h5py")
    axes = [np.linspace(0, 1, n, dtype=np.float32) for n in SHAPE]
    x, y, z = np.meshgrid(*axes, indexing="ij")
    swirl = np.stack([0.5 - y, x - 0.5, 0.1 * np.sin(6 * z)], -1)
    with h5py.File(path, "w") as file:
        steps = file.create_group("velocity")
        for index in range(COUNT):
            if index < 3:
                steps[f"t{index:04d}"] = swirl * np.float32(0.1 + 0.1 * index)
            else:
                steps[f"t{index:04d}"] = steps[f"t{index % 3:04d}"]
        file["times"] = np.arange(COUNT, dtype=float)
        for name, axis in zip("xyz", axes, strict=True):
            file[name] = axis
    return path


@pytest.mark.slow
def test_a_field_five_times_the_budget(tmp_path):
    path = write_series(tmp_path / "flow.h5")
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(path), str(BUDGET)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    shape, taken = json.loads(done.stdout)
    assert shape == [2 * COUNT - 1, 2000, 3]
    assert taken <= BUDGET
