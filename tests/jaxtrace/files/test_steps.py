import numpy as np
import pytest

from jaxtrace.files.snapshot import Cells
from jaxtrace.files.steps import FileSteps, open_steps
from trace_files import hexahedra, write_ensight, write_xml

pytest.importorskip("vtkmodules")


def test_files_come_in_order_of_their_own_time(tmp_path):
    for name, time in [("a_1.vtu", 5.0), ("a_2.vtu", 1.0), ("a_10.vtu", 9.0)]:
        write_xml(hexahedra(), tmp_path / name, time=time)
    steps = open_steps(tmp_path / "a_*.vtu")
    assert isinstance(steps, FileSteps)
    assert steps.times.tolist() == [1.0, 5.0, 9.0]
    assert "TimeValue" in steps.time_source
    assert [label[-8:] for label in steps.labels][:2] == ["/a_2.vtu", "/a_1.vtu"]
    assert steps.read(0).time == 1.0


def test_numbers_of_names_and_indices_serve_without_times(tmp_path):
    for name in ("a_2.vtu", "a_10.vtu"):
        write_xml(hexahedra(), tmp_path / name)
    assert open_steps(tmp_path).times.tolist() == [2.0, 10.0]
    assert open_steps(tmp_path, "index").times.tolist() == [0.0, 1.0]


def test_a_collection_gives_times_and_parts(tmp_path):
    for name in ("a.vtu", "b.vtu", "c.vtu"):
        write_xml(hexahedra((2, 2, 2)), tmp_path / name)
    (tmp_path / "run.pvd").write_text(
        '<VTKFile><DataSet timestep="0.5" part="0" file="a.vtu"/>'
        '<DataSet timestep="0.5" part="1" file="b.vtu"/>'
        '<DataSet timestep="0.75" file="c.vtu"/></VTKFile>'
    )
    steps = open_steps(tmp_path / "run.pvd")
    assert steps.times.tolist() == [0.5, 0.75]
    assert steps.time_source == "the timestep of the collection"
    parts, whole = steps.read(0).geometry, steps.read(1).geometry
    assert isinstance(parts, Cells)
    assert isinstance(whole, Cells)
    assert (parts.n_cells, whole.n_cells) == (2, 1)


def test_a_case_is_its_own_source(tmp_path):
    case = write_ensight(tmp_path)
    steps = open_steps(case)
    with pytest.raises(ValueError, match="its own times, leave out time_source='name'"):
        open_steps(case, "name")
    assert steps.time_source == "the solver's case"
    np.testing.assert_array_equal(steps.times, [0.5, 1.5, 4.0])
