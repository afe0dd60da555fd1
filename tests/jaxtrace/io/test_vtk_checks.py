"""Files that VTK reads without a word although they are cut or turned."""

from typing import Any

import numpy as np
import pytest

from jaxtrace.io.formats import open_slices
from jaxtrace.io.solver_cases import check_dump, find_dumps
from jaxtrace.io.vtk_read import StatedTime, peek_time, read_snapshot
from trace_files import (
    MODES,
    data_folder,
    hexahedra,
    image,
    unpack_vessels,
    write_legacy,
    write_xml,
)

pytest.importorskip("vtkmodules")


def grid(time_name="TimeValue"):
    data = hexahedra()
    data.field_data[time_name] = np.array([0.125])
    data["pressure"] = np.arange(60.0)
    data.cell_data["mark"] = np.arange(24)
    return data


@pytest.mark.parametrize("text", [True, False])
def test_the_time_of_a_legacy_file_is_found_in_both_forms(tmp_path, text):
    stated = {"TimeValue": StatedTime(0.125), "TIME": StatedTime(0.125)}
    stated["Time"] = StatedTime(array=0.125)
    for name, expected in stated.items():
        path = write_legacy(grid(name), tmp_path / f"{name}.vtk", text)
        assert peek_time(path) == expected
    data = hexahedra()
    assert peek_time(write_legacy(data, tmp_path / "a.vtk", text)) == StatedTime()
    data["Time"] = np.full(60, 2.5)
    path = write_legacy(data, tmp_path / "b.vtk", text)
    assert peek_time(path) == StatedTime(array=2.5)


def test_a_text_that_lacks_values_is_refused(tmp_path):
    path = write_legacy(grid(), tmp_path / "a.vtk", text=True)
    whole = path.read_text()
    faults = [whole[: whole.index(n) + 60] for n in ("mark", "velocity", "pressure")]
    faults.append(whole.replace("9 10 11 12 13 14 15 16 17 \n", "", 1))
    for text in faults:
        path.write_text(text)
        with pytest.raises(ValueError, match=r"a\.vtk: .* mismatch of datasize"):
            read_snapshot(path)


@pytest.mark.parametrize("last", ["1.5", "1", "2 "])
def test_points_that_end_early_are_noticed(tmp_path, last):
    path = tmp_path / "a.vtk"
    head = "# vtk DataFile Version 3.0\nx\nASCII\nDATASET UNSTRUCTURED_GRID\n"
    path.write_text(f"{head}POINTS 2 float\n0 0 0 1 {last}")
    with pytest.raises(ValueError, match=r"a\.vtk: .* mismatch of datasize"):
        read_snapshot(path)
    titled = head.replace("x", "\xb5m", 1)  # as others write it, in Latin-1
    path.write_text(f"{titled}POINTS 2 float\n0 0 0 1 1 {last}", encoding="latin-1")
    found: Any = read_snapshot(path).geometry
    assert found.points[1, 2] == float(last)


GRIDS = {
    "vti": image,
    "vtr": lambda: image().cast_to_rectilinear_grid(),
    "vts": lambda: image().cast_to_structured_grid(),
    "vtu": hexahedra,
}


def test_bytes_of_anything_are_refused_by_name(tmp_path):
    path = tmp_path / "a.vtk"
    path.write_bytes(np.random.default_rng(1).bytes(4000))
    with pytest.raises(ValueError, match=r"a\.vtk: VTK cannot read the file"):
        read_snapshot(path)


def test_a_cut_piece_is_named(tmp_path):
    path = unpack_vessels(tmp_path)
    piece = path.parent / "T0000000500" / "002.vtu"
    piece.write_bytes(piece.read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"002\.vtu: the file is truncated"):
        read_snapshot(path)


@pytest.mark.parametrize("kind", GRIDS)
@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "ascii"])
def test_bytes_in_another_order_than_declared_are_refused(tmp_path, kind, mode):
    path = write_xml(GRIDS[kind](), tmp_path / f"a.{kind}", mode)
    orders = [b'"LittleEndian"', b'"BigEndian"']
    order = orders[MODES[mode][2] == "Big"]
    other = orders[MODES[mode][2] == "Little"]
    path.write_bytes(path.read_bytes().replace(order, other))
    with pytest.raises(ValueError, match=rf"a\.{kind}: "):
        open_slices(path).read_slice(0)


def write_case(folder, text="filetemplate: a%01d.f%05d\nfirsttimestep: 3\n", count=2):
    for index in (3, 4):
        (folder / f"a0.f{index:05d}").write_bytes(dump())
    path = folder / "a.nek5000"
    path.write_text(text + f"numtimesteps: {count}\n")
    return path


def dump(fields="XUP", nz=1, components=5, word=4):
    """Two elements of 3 x 3 nodes."""
    head = f"#std {word} 3 3 {nz} 2 2 0.5 1 0 1 {fields}".ljust(132)
    return head.encode() + bytes(4 + 4 * 2 + word * 9 * nz * 2 * components)


def test_the_dumps_of_a_case_are_found(tmp_path):
    dumps = find_dumps(write_case(tmp_path))
    assert [path.name for path in dumps] == ["a0.f00003", "a0.f00004"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense\n", "unknown line 'nonsense'"),
        ("color: red\n", "unknown line 'color: red'"),
        ("", "needs filetemplate"),
        ("filetemplate: a%01d.f%05d\nfirsttimestep: x\n", "needs filetemplate.*'x'"),
        ("filetemplate: a\nfirsttimestep: 1\n", "not like name%01d"),
    ],
)
def test_a_wrong_case_is_refused_by_name(tmp_path, text, message):
    with pytest.raises(ValueError, match=rf"(?s)a\.nek5000: .*{message}"):
        find_dumps(write_case(tmp_path, text))


def test_missing_dumps_and_empty_series_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"a\.nek5000 refers to 'a0\.f00005'"):
        find_dumps(write_case(tmp_path, count=3))
    with pytest.raises(ValueError, match="numtimesteps must be at least 1"):
        find_dumps(write_case(tmp_path, count=0))


@pytest.mark.parametrize(
    "content",
    [dump(), dump("XUPT", components=6), dump("US02", 3, 5), dump("XU", components=4)],
)
def test_the_size_of_a_dump_is_that_of_its_fields(tmp_path, content):
    path = tmp_path / "a0.f00001"
    path.write_bytes(content)
    check_dump(path)
    path.write_bytes(content[:-1])
    with pytest.raises(ValueError, match=r"a0\.f00001: .* truncated"):
        check_dump(path)


def test_a_dump_without_header_is_refused(tmp_path):
    path = tmp_path / "a0.f00001"
    path.write_bytes(b"hello")
    with pytest.raises(ValueError, match=r"a0\.f00001: not a Nek5000 dump"):
        check_dump(path)


def test_the_real_dumps_pass():
    dumps = find_dumps(data_folder("nek5000_eddy") / "eddy_uv.nek5000")
    assert len(dumps) == 11
    for path in dumps:
        check_dump(path)
