"""The users' document on tracking (004): every block runs, and does what it says."""

import dataclasses

import jax
import numpy as np
import pytest

import jaxtrace
from documents import Guide, blocks_of, pages, run, title
from jaxtrace.config import reset_config
from jaxtrace.files.vtk_write import write_vti
from jaxtrace.tracking.boundary import (
    clamping_boundary,
    continuous_inlet_boundary_factory,
    inlet_outlet_boundary_factory,
    periodic_boundary,
)

pytestmark = [
    pytest.mark.skipif(not pages("004"), reason="the users' documents are not here"),
    # The document asks for a GPU, and for a dt that its own clock does not have.
    pytest.mark.filterwarnings("ignore:no gpu device:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:dt=0.005 is longer:UserWarning"),
]
SHAPE = (9, 7, 5)


@pytest.fixture(autouse=True)
def _configuration(monkeypatch):
    for name in ("XLA_PYTHON_CLIENT_PREALLOCATE", "XLA_PYTHON_CLIENT_MEM_FRACTION"):
        monkeypatch.setenv(name, "set by the document")
    yield
    reset_config()


@pytest.fixture
def pattern(tmp_path):
    """Forty-five slices of a swirling flow in a box of 2 x 1 x 1."""
    axes = [np.linspace(0, s, n) for s, n in zip((2, 1, 1), SHAPE, strict=True)]
    x, y, z = np.meshgrid(*axes, indexing="ij")
    spacing = tuple(float(a[1]) for a in axes)
    for step in range(45):
        swirl = np.cos(0.1 * step)
        u = np.sin(np.pi * x / 2) * np.cos(np.pi * y) * swirl
        v = -0.5 * np.cos(np.pi * x / 2) * np.sin(np.pi * y) * swirl
        field = np.stack([u, v, 0.1 * np.sin(np.pi * z)], -1).astype(np.float32)
        write_vti(
            tmp_path / f"flow_{step:03d}.vti",
            SHAPE,
            origin=(0, 0, 0),
            spacing=spacing,
            point_data={"velocity": field.transpose(2, 1, 0, 3).reshape(-1, 3)},
        )
    return str(tmp_path / "flow_*.vti")


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


@pytest.mark.parametrize("number", ["004"], ids=title)
def test_the_document_runs(number, pattern):
    guide = Guide(
        names={
            "pattern": pattern,
            "load_optimized_dataset": jaxtrace.load_optimized_dataset,
            "bounds": [[0, 0, 0], [2, 1, 1]],
            "periodic_boundary": periodic_boundary,
            "clamping_boundary": clamping_boundary,
            "continuous_inlet_boundary_factory": continuous_inlet_boundary_factory,
            "inlet_outlet_boundary_factory": inlet_outlet_boundary_factory,
            "create_tracker": jaxtrace.create_tracker,
            "uniform_grid_seeds": jaxtrace.uniform_grid_seeds,
            "TimeSeriesField": jaxtrace.TimeSeriesField,
            "bounds_min": [0, 0, 0],
            "bounds_max": [2, 1, 1],
            "seeds": np.zeros((7500, 3), np.float32),
            **numbers(),
        },
        corrections=[
            (
                "data=numpy_data, ...)",
                "data=numpy_data, times=times, positions=positions)",
                "an ellipsis stands for the other two arrays",
            ),
            (
                "continuous_inlet_boundary_factory(...)  # Slow!",
                "continuous_inlet_boundary_factory(bounds)",
                "an ellipsis stands for the bounds",
            ),
        ],
        checks={
            "max_time_steps=40, dtype": check_loaded,
            "tracker.track_particles(": check_tracked,
            "# ✅ Update!": check_assigned,
        },
    )
    names = run(number, guide)
    assert names["tracker"]._compiled_simulate is not None
    assert dataclasses.is_dataclass(names["tracker"].options)
    assert len(blocks_of(number)) >= 18
