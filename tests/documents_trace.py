"""The guide for jaxtrace: what its reader has, and checks of what it claims."""

import contextlib
import dataclasses
import inspect
import warnings
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxtrace.tracking.time_loop
from documents import Guide
from jaxrig import compile_once
from jaxtrace.config import reset_config
from jaxtrace.io.vtk_export import write_grid

SHAPE = (9, 7, 5)


def write_flow(folder: Path) -> str:
    """Forty-five slices of a swirling flow in a box of 2 x 1 x 1."""
    axes = [np.linspace(0, s, n) for s, n in zip((2, 1, 1), SHAPE, strict=True)]
    x, y, z = np.meshgrid(*axes, indexing="ij")
    for step in range(45):
        swirl = np.cos(0.1 * step)
        u = np.sin(np.pi * x / 2) * np.cos(np.pi * y) * swirl
        v = -0.5 * np.cos(np.pi * x / 2) * np.sin(np.pi * y) * swirl
        field = np.stack([u, v, 0.1 * np.sin(np.pi * z)], -1).astype(np.float32)
        write_grid(folder / f"flow_{step:03d}.vti", axes, field)
    return str(folder / "flow_*.vti")


def numbers() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "numpy_data": rng.random((3, 8, 3)).astype(np.float32),
        "times": np.arange(3.0),
        "positions": np.array(np.meshgrid([0, 1], [0, 1], [0, 1])).reshape(3, -1).T,
    }


def check_loaded(names):
    field = names["field"]
    assert field.T == 40
    assert isinstance(field.data, jax.Array)
    np.testing.assert_allclose(float(field.times[0]), 0)
    assert field.get_spatial_bounds()[1].tolist() == [2, 1, 1]
    names["bounds_min"], names["bounds_max"] = field.get_spatial_bounds()


def check_tracked(names):
    trajectory = names["trajectory"]
    assert trajectory.positions.shape == (1500, 7500, 3)
    assert trajectory.times[-1] == 4.0
    assert trajectory.metadata["jit_scan"]
    low, high = names["field"].get_spatial_bounds()
    assert np.all((trajectory.positions >= low) & (trajectory.positions <= high))


def check_assigned(names):
    np.testing.assert_array_equal(names["field"].data, names["numpy_data"])


def check_compiled(names):
    assert names["tracker"]._compiled_simulate is not None
    assert dataclasses.is_dataclass(names["tracker"].options)


def optimize(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the one long computation the optimizing back that conftest spares."""
    options = {"xla_backend_optimization_level": 2, "xla_cpu_use_fusion_emitters": True}
    run = jaxtrace.tracking.time_loop
    plain = inspect.unwrap(run._advance)
    quick = compile_once(plain, max_traces=None, compiler_options=options)
    monkeypatch.setattr(run, "_advance", quick)


@contextlib.contextmanager
def tracking_guide(folder: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("XLA_PYTHON_CLIENT_PREALLOCATE", "XLA_PYTHON_CLIENT_MEM_FRACTION"):
        monkeypatch.setenv(name, "set by the document")
    optimize(monkeypatch)
    names = {
        "pattern": write_flow(folder),
        **{"bounds": [[0, 0, 0], [2, 1, 1]]},
        **{"bounds_min": [0, 0, 0], "bounds_max": [2, 1, 1]},
        "seeds": np.zeros((7500, 3), np.float32),
        **numbers(),
    }
    checks = {
        "max_time_steps=40, dtype": check_loaded,
        "tracker.track_particles(": check_tracked,
        "# ✅ Update!": check_assigned,
        "assert tracker._compiled_step is not None\n": check_compiled,
    }
    with warnings.catch_warnings():
        # It asks for a GPU, and for a dt that its own clock does not have.
        warnings.filterwarnings("ignore", "no gpu device", RuntimeWarning)
        warnings.filterwarnings("ignore", "dt=0.005 is larger", UserWarning)
        yield Guide(names, checks)
    reset_config()


GUIDES = {"004": tracking_guide}
