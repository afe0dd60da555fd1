import shutil

import numpy as np
import pytest

from jaxtrace.files.snapshot import Cells
from jaxtrace.files.vtk_series import CaseSteps
from trace_files import data_folder, write_ensight, write_openfoam

pytest.importorskip("vtkmodules")


def test_nek5000_dumps_have_their_times_and_elements(capfd):
    steps = CaseSteps(data_folder("nek5000_eddy") / "eddy_uv.nek5000")
    np.testing.assert_allclose(steps.times, np.arange(11) / 100, rtol=1e-12)
    first, last = steps.read(0), steps.read(10)
    assert isinstance(first.geometry, Cells)
    assert first.geometry.points.shape == (16_384, 3)
    low, high = first.geometry.points.min(axis=0), first.geometry.points.max(axis=0)
    np.testing.assert_allclose(low, 0, atol=0)
    np.testing.assert_allclose(high, [2 * np.pi, 2 * np.pi, 0], rtol=1e-6)
    assert not np.array_equal(first.arrays["Velocity"], last.arrays["Velocity"])
    again = steps.read(0)
    np.testing.assert_array_equal(first.arrays["Velocity"], again.arrays["Velocity"])
    assert capfd.readouterr() == ("", "")


def test_a_cut_dump_is_refused_by_name(tmp_path, capfd):
    shutil.copytree(data_folder("nek5000_eddy"), tmp_path / "run")
    dump = tmp_path / "run" / "eddy_uv0.f00003"
    dump.chmod(0o644)
    dump.write_bytes(dump.read_bytes()[:100_000])
    steps = CaseSteps(tmp_path / "run" / "eddy_uv.nek5000")
    with pytest.raises(ValueError, match=r"eddy_uv0\.f00003: .* cut short"):
        steps.read(2)
    assert capfd.readouterr() == ("", "")


def test_ensight_parts_and_times(tmp_path):
    steps = CaseSteps(write_ensight(tmp_path, times=(0.5, 1.5, 4.0)))
    assert steps.times.tolist() == [0.5, 1.5, 4.0]
    for index, time in enumerate(steps.times):
        snapshot = steps.read(index)
        assert isinstance(snapshot.geometry, Cells)
        assert snapshot.geometry.types.tolist() == [12, 12]
        assert snapshot.assembled
        assert (snapshot.arrays["velocity"] == np.full((16, 3), time)).all()


def test_openfoam_cells_and_times(tmp_path):
    steps = CaseSteps(write_openfoam(tmp_path, times=(0.0, 0.25, 0.5)))
    assert steps.times.tolist() == [0.0, 0.25, 0.5]
    snapshot = steps.read(2)
    assert isinstance(snapshot.geometry, Cells)
    assert snapshot.geometry.n_points == 12
    np.testing.assert_allclose(snapshot.cell_arrays["U"], [[0.5, 0, 1], [0.5, 1, 1]])


def test_cases_that_cannot_be_read_are_named(tmp_path, capfd):
    for name in ("a.case", "a.nek5000", "a.foam"):
        with pytest.raises(FileNotFoundError, match=rf"{name}: no such file"):
            CaseSteps(tmp_path / name)
        (tmp_path / name).write_text("nonsense\n")
        with pytest.raises(ValueError, match=name):
            CaseSteps(tmp_path / name).read(0)
    assert capfd.readouterr() == ("", "")


def test_a_missing_variable_file_is_refused(tmp_path):
    case = write_ensight(tmp_path)
    (tmp_path / "box.vel001").unlink()
    steps = CaseSteps(case)
    with pytest.raises(ValueError, match=r"box\.case"):
        steps.read(1)
