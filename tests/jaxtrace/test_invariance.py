"""The same bits for any batches, devices and interruptions, with chance at work."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import jaxtrace as jt
from jaxtrace import tracking
from trace_meshes import SIX, lattice, split, warp

SIZE = np.array([2.0, 1.0, 1.0])
BOX = [[0.0, 0.0, 0.0], SIZE.tolist()]
TIMES = np.linspace(0, 2, 5)
COUNT = 45


def flow(points):
    """Rough, and towards larger x on the whole."""
    rng = np.random.default_rng(0)
    values = rng.normal(scale=0.5, size=(len(TIMES), len(points), 3))
    return values + np.array([1.5, 0.0, 0.0])


def grid():
    points, _ = lattice((5, 4, 4), SIZE)
    return jt.TimeSeriesField(flow(points), TIMES, points)


def mesh():
    points, cells = lattice((5, 4, 4), SIZE)
    points = warp(points, 0.05)
    cells = split(cells, SIX)
    return jt.TimeSeriesField(flow(points), TIMES, points, connectivity=cells)


def inlet(**options):
    return jt.continuous_inlet_boundary_factory(BOX, "x", seed=4, **options)


def refilled():
    make = lambda u: u * np.float32(0.5)
    return jt.inlet_outlet_boundary_factory(BOX, inlet_particle_generator=make)


CASES = {
    "grid, uniform inlet": (grid, inlet),
    "grid, refilled": (grid, refilled),
    "mesh, gaussian inlet": (mesh, lambda: inlet(inlet_distribution="gaussian")),
    "mesh, walls": (mesh, tracking.wall_boundary),
}


def seeds():
    rng = np.random.default_rng(2)
    return (rng.uniform(0.05, 0.95, (COUNT, 3)) * SIZE).astype(np.float32)


def run(name, output=None, resume=False, **options):
    field, boundary = CASES[name]
    tracker = jt.create_tracker(
        options.pop("integrator", "rk2"),
        field(),
        boundary(),
        motion=tracking.Diffusion(0.02),
        seed=3,
        record_velocities=True,
        **options,
    )
    return tracker.track_particles(
        seeds(), (0.0, 2.0), 41, dt=0.03, output=output, resume=resume
    )


def assert_same(found, expected):
    for name in ("positions", "velocities", "times", "alive", "generation", "status"):
        values = [np.asarray(getattr(part, name)) for part in (found, expected)]
        np.testing.assert_array_equal(*values, err_msg=name)
    np.testing.assert_array_equal(found.exit_time, expected.exit_time)


SPLITS: list[dict[str, Any]] = [{"batch_size": b} for b in (500, COUNT, 7)]
SPLITS += [{"devices": 8}, {"devices": 8, "batch_size": 2}]


def test_devices_change_nothing():
    name, one_stage = "grid, uniform inlet", {"integrator": "euler"}
    expected = run(name, **one_stage)
    assert_same(run(name, devices=3, **one_stage), expected)
    assert expected.generation[-1].max() >= 1


@pytest.mark.bitwise
@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize(
    "name",
    ["grid, uniform inlet", pytest.param("mesh, walls", marks=pytest.mark.slow)],
)
def test_a_run_goes_on_with_other_cores(name, tmp_path):
    jt.configure(cores=1)
    expected, output = run(name, tmp_path / "whole.zarr"), tmp_path / "run.zarr"
    with pytest.raises(Stopped):
        run(name, output, progress_callback=stop_halfway)
    jt.configure(cores=3)
    assert_same(run(name, output, resume=True), expected)


@pytest.mark.slow  # dozens of programs
@pytest.mark.parametrize("name", CASES)
def test_batches_devices_and_memory(name):
    expected = run(name)
    for options in SPLITS:
        assert_same(run(name, **options), expected)
    assert_same(run(name, max_memory_gb=COUNT * 24 * 3 / 2**30), expected)


CHILD = """
import json, os, signal, sys, threading, time
import jax
jax.config.update("jax_num_cpu_devices", 8)
from tests.jaxtrace import test_invariance as here

output, at, options = json.loads(sys.argv[1])
told = []

def count(fraction):
    told.append(time.monotonic())
    if len(told) == int(at):
        length = told[-1] - told[-2]
        kill = lambda: os.kill(os.getpid(), signal.SIGKILL)
        threading.Timer((at % 1) * length, kill).start()

here.run("grid, uniform inlet", output, True, progress_callback=count, **options)
threading.Event().wait()  # the end came first: be killed now
"""


def kill_run(output, at, **options):
    """A run in a process of its own, killed so many chunks and a part of one on."""
    root = Path(__file__).parents[2]
    cache = jax.config.values["jax_compilation_cache_dir"]
    done = subprocess.run(
        [sys.executable, "-c", CHILD, json.dumps([str(output), at, options])],
        cwd=root,
        env=os.environ
        | {
            "PYTHONPATH": f"{root}{os.pathsep}{root / 'tests'}",
            "JAX_COMPILATION_CACHE_DIR": str(cache),
        },
        capture_output=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()


@pytest.mark.slow  # processes of their own
@pytest.mark.parametrize("suffix", ["zarr", "h5", "pvd"])
def test_a_killed_run_goes_on_bit_for_bit(tmp_path, suffix):
    """Killed three times while it counts, writes or keeps its particles."""
    output = tmp_path / f"run.{suffix}"
    rng = np.random.default_rng(len(suffix))
    every = {"progress_update_every": 0.025}
    for at in rng.uniform(3, 12, 3):
        kill_run(output, at, **every)
    found = run("grid, uniform inlet", output, resume=True, **every)
    assert_same(found, run("grid, uniform inlet"))


class Stopped(Exception):
    """Stands for a process that ends here."""


def stop_halfway(fraction):
    if fraction > 0.5:
        raise Stopped


@pytest.mark.parametrize("later", [{"batch_size": 7}, {"devices": 8}], ids=str)
@pytest.mark.slow  # many programs
def test_a_run_goes_on_with_other_batches_and_devices(tmp_path, later):
    name, output = "grid, uniform inlet", tmp_path / "run.zarr"
    with pytest.raises(Stopped):
        run(name, output, batch_size=13, progress_callback=stop_halfway)
    assert_same(run(name, output, resume=True, **later), run(name))
