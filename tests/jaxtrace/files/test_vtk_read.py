import numpy as np
import pytest

from jaxtrace.files.snapshot import Cells, GridAxes
from jaxtrace.files.vtk_read import StatedTime, peek_time, read_snapshot
from trace_files import (
    MODES,
    hexahedra,
    image,
    linear,
    unpack_vessels,
    write_legacy,
    write_xml,
)

pyvista = pytest.importorskip("pyvista")


def curvilinear():
    x, y, z = np.meshgrid([0.0, 1, 3], [0.0, 2], [0.0, 1, 5, 6], indexing="ij")
    grid = pyvista.StructuredGrid(x + 0.1 * y, y, z)
    grid["velocity"] = linear(grid.points)
    return grid


def rectilinear():
    grid = pyvista.RectilinearGrid([0.0, 1, 5], [0.0, 2, 3, 9], [1.0, 7])
    grid["velocity"] = linear(grid.points)
    return grid


def surface():
    sphere = pyvista.Sphere(theta_resolution=6, phi_resolution=6)
    sphere["velocity"] = linear(sphere.points)
    return sphere


KINDS = {
    "vti": image,
    "vtr": rectilinear,
    "vts": curvilinear,
    "vtu": hexahedra,
    "vtp": surface,
}


def nodes_of(geometry) -> np.ndarray:
    return geometry.points if isinstance(geometry, Cells) else geometry.points()


def check(snapshot, data, rtol=1e-12):
    points = nodes_of(snapshot.geometry)
    np.testing.assert_allclose(points, data.points, rtol=rtol)
    values = snapshot.arrays["velocity"]
    if isinstance(snapshot.geometry, GridAxes):
        values = values.transpose(2, 1, 0, 3).reshape(-1, 3)
    np.testing.assert_allclose(values, linear(points), rtol=rtol, atol=rtol)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_xml_format_in_every_encoding(tmp_path, kind, mode):
    data = KINDS[kind]()
    path = write_xml(data, tmp_path / f"a.{kind}", mode, time=1.5)
    snapshot = read_snapshot(path)
    check(snapshot, data, 1e-6 if kind == "vtp" else 1e-12)
    assert snapshot.time == 1.5
    assert snapshot.source == str(path)
    assert peek_time(path) == StatedTime(field=1.5)


@pytest.mark.parametrize("text", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_in_the_legacy_format(tmp_path, kind, text):
    data = KINDS[kind]()
    data.field_data["TIME"] = np.array([0.75])
    path = write_legacy(data, tmp_path / "a.vtk", text)
    check(read_snapshot(path), data, 2e-5 if text or kind == "vtp" else 1e-12)
    assert read_snapshot(path).time == 0.75
    assert peek_time(path) == StatedTime(field=0.75)


def test_curvilinear_cells_are_hexahedra(tmp_path):
    geometry = read_snapshot(write_xml(curvilinear(), tmp_path / "a.vts")).geometry
    assert isinstance(geometry, Cells)
    assert set(geometry.types.tolist()) == {12}
    assert geometry.n_cells == 2 * 1 * 3


def test_rectilinear_axes_are_kept(tmp_path):
    axes = read_snapshot(write_xml(rectilinear(), tmp_path / "a.vtr")).geometry
    assert isinstance(axes, GridAxes)
    assert axes.y.tolist() == [0, 2, 3, 9]


@pytest.mark.parametrize(
    ("name", "stated"),
    [("TIME", StatedTime(field=4.0)), ("Time", StatedTime(array=4.0))],
)
def test_other_names_of_the_time_in_xml(tmp_path, name, stated):
    data = hexahedra()
    data.field_data[name] = np.array([4.0])
    assert peek_time(write_xml(data, tmp_path / "a.vtu")) == stated


def test_a_time_on_the_nodes_counts_as_an_array(tmp_path):
    data = hexahedra()
    data["Time"] = np.full(60, 0.5)
    path = write_xml(data, tmp_path / "a.vtu")
    assert peek_time(path) == StatedTime(array=0.5)
    assert read_snapshot(path).time == 0.5
    assert peek_time(write_xml(hexahedra(), tmp_path / "b.vtu")) == StatedTime()


def test_several_arrays_of_a_kind_are_all_read_from_legacy_files(tmp_path):
    data = hexahedra()
    data["U"] = 2 * linear(data.points)
    snapshot = read_snapshot(write_legacy(data, tmp_path / "a.vtk"))
    assert {"U", "velocity"} <= set(snapshot.arrays)


def test_arrays_not_asked_for_are_known_but_not_read(tmp_path):
    data = hexahedra()
    data["pressure"] = np.zeros(60)
    snapshot = read_snapshot(write_xml(data, tmp_path / "a.vtu"), ("velocity",))
    assert list(snapshot.arrays) == ["velocity"]
    assert set(snapshot.available) == {"velocity", "pressure"}


def test_multiblock_files_are_one_mesh(tmp_path):
    path = tmp_path / "a.vtm"
    pyvista.MultiBlock([hexahedra((2, 2, 2)), hexahedra((3, 2, 2))]).save(path)
    snapshot = read_snapshot(path)
    assert isinstance(snapshot.geometry, Cells)
    assert snapshot.geometry.n_cells == 3


CUTS = [0.02, 0.2, 0.4, 0.55, 0.7, 0.85, 0.95]


@pytest.mark.parametrize("mode", MODES)
def test_a_cut_xml_file_is_refused_by_name(tmp_path, mode, capfd):
    whole = write_xml(hexahedra(), tmp_path / "w.vtu", mode).read_bytes()
    path = tmp_path / "cut.vtu"
    for share in CUTS:
        path.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(ValueError, match=r"cut\.vtu: "):
            read_snapshot(path)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("text", [True, False])
def test_a_cut_legacy_file_is_refused_by_name(tmp_path, text, capfd):
    whole = write_legacy(hexahedra(), tmp_path / "w.vtk", text).read_bytes()
    path = tmp_path / "cut.vtk"
    for share in (*CUTS, 0.99):
        path.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(ValueError, match=r"cut\.vtk: "):
            read_snapshot(path)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("suffix", ["vti", "vtr", "vts", "vtu", "vtp", "pvtu", "vtk"])
@pytest.mark.parametrize("content", [b"", b"hello\n" * 20, bytes(range(256)) * 4])
def test_empty_files_and_garbage_are_refused_by_name(tmp_path, suffix, content, capfd):
    path = tmp_path / f"junk.{suffix}"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"junk\.{suffix}: "):
        read_snapshot(path)
    with pytest.raises(ValueError, match=rf"junk\.{suffix}: "):
        peek_time(path)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("mode", ["inline", "appended", "appended compressed"])
def test_a_wrongly_declared_byte_order_is_refused(tmp_path, mode):
    path = write_xml(hexahedra(), tmp_path / "a.vtu", mode)
    text = path.read_bytes()
    path.write_bytes(text.replace(b'"LittleEndian"', b'"BigEndian"'))
    with pytest.raises(ValueError, match=r"a\.vtu: "):
        read_snapshot(path)


def test_a_count_of_points_that_does_not_fit_is_refused(tmp_path):
    path = write_xml(hexahedra(), tmp_path / "a.vtu", "ascii")
    text = path.read_text()
    for count in (59, 61):
        wrong = f'NumberOfPoints="{count}"'
        path.write_text(text.replace('NumberOfPoints="60"', wrong))
        with pytest.raises(ValueError, match=r"a\.vtu: "):
            read_snapshot(path)


def test_missing_files_and_pieces_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.vtu: no such file"):
        read_snapshot(tmp_path / "none.vtu")
    path = unpack_vessels(tmp_path)
    (path.parent / "T0000000500" / "002.vtu").unlink()
    with pytest.raises(ValueError, match=r"T0000000500\.pvtu: .*piece 2"):
        read_snapshot(path)


def test_an_unknown_extension_lists_the_known_ones(tmp_path):
    with pytest.raises(ValueError, match=r"unknown extension '\.xyz'.*\.vtu"):
        read_snapshot(tmp_path / "a.xyz")


def test_pieces_come_as_stored(tmp_path):
    snapshot = read_snapshot(unpack_vessels(tmp_path))
    assert isinstance(snapshot.geometry, Cells)
    assert snapshot.assembled
    assert (snapshot.geometry.n_points, snapshot.geometry.n_cells) == (48_823, 39_353)
    assert snapshot.cell_arrays["velocity"].shape == (39_353, 3)
