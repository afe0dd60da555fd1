import numpy as np
import pytest

from jaxtrace.files.vtk_text import check_text, times_in_text
from trace_files import hexahedra, write_legacy

pytest.importorskip("vtkmodules")


def grid(time_name="TimeValue"):
    data = hexahedra()
    data.field_data[time_name] = np.array([0.125])
    data["pressure"] = np.arange(60.0)
    data.cell_data["mark"] = np.arange(24)
    return data


@pytest.mark.parametrize("text", [True, False])
@pytest.mark.parametrize("name", ["TimeValue", "TIME", "Time"])
def test_the_time_is_found_in_both_forms(tmp_path, text, name):
    path = write_legacy(grid(name), tmp_path / "a.vtk", text)
    assert times_in_text(path) == {name: 0.125}


@pytest.mark.parametrize("text", [True, False])
def test_a_time_on_the_nodes_is_found(tmp_path, text):
    data = hexahedra()
    data["Time"] = np.full(60, 2.5)
    path = write_legacy(data, tmp_path / "a.vtk", text)
    assert times_in_text(path) == {"Time": 2.5}


def test_a_file_without_time_states_none(tmp_path):
    assert times_in_text(write_legacy(hexahedra(), tmp_path / "a.vtk")) == {}


def test_whole_files_pass(tmp_path):
    check_text(write_legacy(grid(), tmp_path / "a.vtk", text=True))
    check_text(write_legacy(grid(), tmp_path / "b.vtk", text=False))


def test_a_text_that_ends_inside_an_array_is_refused(tmp_path):
    path = write_legacy(grid(), tmp_path / "a.vtk", text=True)
    whole = path.read_bytes()
    for name in (b"mark", b"velocity", b"pressure"):
        path.write_bytes(whole[: whole.index(name) + 60])
        with pytest.raises(ValueError, match=r"a\.vtk: array .* values; .* cut short"):
            check_text(path)


def test_values_missing_in_the_middle_are_noticed(tmp_path):
    path = write_legacy(grid(), tmp_path / "a.vtk", text=True)
    whole = path.read_text()
    path.write_text(whole.replace("9 10 11 12 13 14 15 16 17 \n", "", 1))
    with pytest.raises(ValueError, match="'mark' has"):
        check_text(path)


def test_other_kinds_of_attributes_are_counted(tmp_path):
    path = tmp_path / "a.vtk"
    head = "# vtk DataFile Version 3.0\nx\nASCII\nDATASET STRUCTURED_POINTS\n"
    head += "DIMENSIONS 2 1 1\nORIGIN 0 0 0\nSPACING 1 1 1\nPOINT_DATA 2\n"
    for name, count in [("VECTORS v float", 6), ("TENSORS t float", 18)]:
        values = ["1"] * count
        path.write_text(head + name + "\n" + " ".join(values) + "\n")
        check_text(path)
        path.write_text(head + name + "\n" + " ".join(values[1:]) + "\n")
        with pytest.raises(ValueError, match=f"{count - 1} of its {count}"):
            check_text(path)


@pytest.mark.parametrize("last", ["1.5", "1", "2 "])
def test_points_that_end_early_are_noticed(tmp_path, last):
    path = tmp_path / "a.vtk"
    head = "# vtk DataFile Version 3.0\nx\nASCII\nDATASET UNSTRUCTURED_GRID\n"
    path.write_text(f"{head}POINTS 2 float\n0 0 0 1 {last}")
    with pytest.raises(ValueError, match="'POINTS' has 5 of its 6 values"):
        check_text(path)
