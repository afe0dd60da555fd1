"""Facts about series, stores and cases, as they are in the files."""

import numpy as np
from typer.testing import CliRunner

from jaxtrace.cli.app import app
from jaxtrace.cli.info import describe
from jaxtrace.files.stores import open_store
from trace_cases import write_slices, write_small


def test_a_series(tmp_path):
    facts = describe(str(write_slices(tmp_path)))
    assert facts["slices"] == 3
    assert facts["times"] == "0 to 1"
    assert facts["geometry"] == "grid of 4 x 3 x 2 nodes"
    assert facts["highest corner"] == "2, 1, 1"
    assert facts["speed of the first slice"] == "1 to 1, mean 1"


def test_a_store(tmp_path):
    with open_store(tmp_path / "run.zarr", "x", metadata={"seed": 3}) as store:
        store.append([0.0, 1.0], {"positions": np.zeros((2, 5, 3), np.float32)})
    facts = describe(str(tmp_path / "run.zarr"))
    assert facts["frames"] == 2
    assert facts["seed"] == "3"
    assert "(5, 3) float32" in facts["arrays"]


def test_a_case(tmp_path):
    facts = describe(str(write_small(tmp_path)))
    assert facts["flow.name"] == "rotation"
    assert facts["particles.concentrations"] == (4, 3, 1)
    assert facts["boundary.type"] == "reflective"


def test_several_at_once(tmp_path):
    words = [str(write_slices(tmp_path)), str(write_small(tmp_path))]
    shown = CliRunner().invoke(app, ["info", *words]).output
    assert "grid of 4 x 3 x 2 nodes" in shown
    assert "rotation" in shown
