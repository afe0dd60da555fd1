"""VTK 9.3.1's tracers, in an environment of their own, end where ours do."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from trace_files import DATA, data_folder

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "trace_vtk.py"
PYTHON = "JAXRIG_VTK931_PYTHON"


def run(*arguments):
    command = [sys.executable, str(SCRIPT), *arguments, "--data", str(DATA)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["ramp", "pulse", "eddy", "vessels"])
def test_ends_of_both_agree(case):
    """VTK stores points in single precision, so that each coordinate is half a spacing
    off; two spacings leave room for the roundings on its way.
    """
    if PYTHON not in os.environ:
        pytest.skip(f"{PYTHON} names no Python of an environment with vtk==9.3.1")
    if case in ("eddy", "vessels"):
        data_folder({"eddy": "nek5000_eddy", "vessels": "blood_vessels"}[case])
    done = run(os.environ[PYTHON], case)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)[case]
    assert found["both kept"] > 100
    assert found["longest path"] > 0.2
    assert found["largest distance"] < 2 * found["spacing of VTK's single precision"]
    assert found["only ours kept"] == 0
    # Of `ramp` VTK has two inside the grid that by the closed form have left it.
    assert found["only VTK kept"] <= 2


@pytest.mark.slow
def test_other_versions_are_refused():
    vtk = pytest.importorskip("vtk")
    version = vtk.vtkVersion.GetVTKVersion()
    if version == "9.3.1":
        pytest.skip("this environment has VTK 9.3.1, which is not refused")
    done = run(sys.executable, "ramp")
    assert done.returncode != 0
    assert f"VTK {version} is no oracle" in done.stderr
