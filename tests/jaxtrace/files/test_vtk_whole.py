"""Files that VTK reads without a word although they are cut or turned."""

import pytest

from jaxtrace.files.vtk_read import read_snapshot
from jaxtrace.files.vtk_whole import check_whole
from trace_files import MODES, hexahedra, image, unpack_vessels, write_xml

GRIDS = {
    "vti": image,
    "vtr": lambda: image().cast_to_rectilinear_grid(),
    "vts": lambda: image().cast_to_structured_grid(),
    "vtu": hexahedra,
}


@pytest.mark.parametrize("kind", GRIDS)
@pytest.mark.parametrize("mode", MODES)
def test_whole_files_pass(tmp_path, kind, mode):
    check_whole(write_xml(GRIDS[kind](), tmp_path / f"w.{kind}", mode))


@pytest.mark.parametrize("kind", GRIDS)
@pytest.mark.parametrize("mode", ["appended", "appended compressed"])
def test_a_cut_file_is_refused_by_name(tmp_path, kind, mode, capfd):
    whole = write_xml(GRIDS[kind](), tmp_path / f"w.{kind}", mode).read_bytes()
    path = tmp_path / f"cut.{kind}"
    for share in (0.2, 0.4, 0.55, 0.7, 0.85, 0.95, 0.995):
        path.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(ValueError, match=rf"cut\.{kind}: "):
            read_snapshot(path)
    assert capfd.readouterr() == ("", "")


def test_a_cut_piece_is_named(tmp_path):
    path = unpack_vessels(tmp_path)
    check_whole(path)
    piece = path.parent / "T0000000500" / "002.vtu"
    piece.write_bytes(piece.read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"002\.vtu: the file is cut short"):
        read_snapshot(path)


@pytest.mark.parametrize("kind", GRIDS)
@pytest.mark.parametrize("mode", MODES)
def test_bytes_in_another_order_than_declared_are_refused(tmp_path, kind, mode):
    path = write_xml(GRIDS[kind](), tmp_path / f"a.{kind}", mode)
    if mode == "ascii":
        return
    orders = [b'"LittleEndian"', b'"BigEndian"']
    order = orders[MODES[mode][2] == "Big"]
    other = orders[MODES[mode][2] == "Little"]
    path.write_bytes(path.read_bytes().replace(order, other))
    with pytest.raises(ValueError, match=rf"a\.{kind}: "):
        read_snapshot(path)
