"""Exponents from a case, from files and from a flow by name."""

import numpy as np
import pytest
from typer.testing import CliRunner

from jaxtrace.cli.app import app
from trace_cases import write_slices, write_small

pytest.importorskip("matplotlib")


def call(*words):
    return CliRunner().invoke(app, ["ftle", *map(str, words), "--resolution", "5"])


def exponents(folder):
    with np.load(folder / "ftle.npz") as found:
        return found["ftle"]


def test_a_case(tmp_path):
    text = '[flow]\nname = "saddle"\n[particles]\nbounds = [0, 1, 0, 1]\n'
    text += '[ftle]\ndt = 0.05\n[output]\nfolder = "here"'
    done = call(write_small(tmp_path, text), "-T", "1.0")
    assert done.exit_code == 0, done.output
    np.testing.assert_allclose(exponents(tmp_path / "here"), 1.0, rtol=1e-4)
    assert call(tmp_path / "case.toml", "--out", tmp_path / "there").exit_code == 0
    assert (tmp_path / "there" / "ftle.png").exists()


@pytest.mark.slow
def test_files(tmp_path):
    done = call(write_slices(tmp_path), "--t0", "0", "-T", "0.5", "--out", tmp_path)
    assert done.exit_code == 0, done.output
    # The same velocity everywhere parts no particles.
    np.testing.assert_allclose(exponents(tmp_path), 0, atol=1e-6)


def test_a_flow_by_name(tmp_path):
    done = call("double_gyre", "-T", "0.5", "--out", tmp_path)
    assert done.exit_code == 0, done.output
    assert exponents(tmp_path).shape == (5, 3)
