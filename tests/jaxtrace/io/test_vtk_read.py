import logging
import os
import shutil
import sys

import numpy as np
import pytest

from jaxtrace.fields.interpolation import TensorGrid
from jaxtrace.io.geometry import Cells, grid_points, storage_order
from jaxtrace.io.solver_cases import CaseSteps
from jaxtrace.io.vtk_read import (
    StatedTime,
    axes_of,
    chatter_logged,
    curvilinear_mesh,
    find_failures,
    is_tensor,
    leaves,
    mesh_of,
    peek_time,
    read_snapshot,
    reporting,
    snapshot_of,
    vtk_class,
)
from trace_files import (
    MODES,
    data_folder,
    hexahedra,
    image,
    linear,
    unpack_vessels,
    write_legacy,
    write_xml,
)
from trace_solvers import write_ensight

pytest.importorskip("vtkmodules")


def failing_reader(tmp_path):
    from vtkmodules.vtkIOXML import vtkXMLUnstructuredGridReader

    path = tmp_path / "bad.vtu"
    path.write_text("not xml")
    reader = vtkXMLUnstructuredGridReader()
    reader.SetFileName(str(path))
    return reader


def test_errors_are_captured_and_nothing_is_printed(tmp_path, capfd):
    reader = failing_reader(tmp_path)
    with (
        pytest.raises(ValueError, match=r"a\.vtu: VTK cannot .*syntax error"),
        reporting(tmp_path / "a.vtu", reader),
    ):
        reader.Update()
    assert capfd.readouterr() == ("", "")


def test_vtk_speaks_as_before_afterwards(tmp_path, capfd):
    from vtkmodules.vtkCommonCore import vtkLogger, vtkOutputWindow

    before = vtkOutputWindow.GetInstance(), vtkLogger.GetCurrentVerbosityCutoff()
    with reporting(tmp_path, failing_reader(tmp_path)):
        pass
    after = vtkOutputWindow.GetInstance(), vtkLogger.GetCurrentVerbosityCutoff()
    assert before == after
    failing_reader(tmp_path).Update()
    assert "syntax error" in capfd.readouterr().err


def test_failures_are_short_and_each_said_once():
    line = "ERROR: In vtkA.cxx, line 3\nvtkA (0x12ab): Cannot read\n  the points.\n\n"
    others = [
        "Warning: In vtkB.cxx, line 1\nvtkB (0x1): never mind\n\n",
        "Generic Warning: In vtkC.cxx, line 1\nError reading binary data!\n",
        "ERROR: In x, line 1\nvtkP (0x1): returned failure for request: z\n",
    ]
    assert find_failures("".join([line, line, *others])) == [
        "Cannot read the points.",
        "Error reading binary data!",
    ]


def test_what_c_code_prints_goes_to_the_log(capfd, caplog):
    with caplog.at_level(logging.DEBUG, "jaxtrace"), chatter_logged():
        os.write(1, b"2D-Mesh found")
    assert capfd.readouterr().out == ""
    assert "2D-Mesh found" in caplog.text
    os.write(1, b"loud again")
    assert capfd.readouterr().out == "loud again"


def test_without_vtk_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "vtkmodules.vtkIOXML", None)
    with pytest.raises(ImportError, match=r"pip install .*\[trace\]"):
        vtk_class("vtkIOXML", "vtkXMLUnstructuredGridReader")


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


def check(snapshot, data, rtol=1e-12):
    geometry, values = snapshot.geometry, snapshot.arrays["velocity"]
    if isinstance(geometry, TensorGrid):
        points, values = grid_points(geometry.axes), storage_order(values)
    else:
        points = geometry.points
    np.testing.assert_allclose(points, data.points, rtol=rtol)
    np.testing.assert_allclose(values, linear(points), rtol=rtol, atol=rtol)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_xml_format_in_every_encoding(tmp_path, kind, mode):
    data = KINDS[kind]()
    path = write_xml(data, tmp_path / f"a.{kind}", mode, time=1.5)
    snapshot = read_snapshot(path)
    check(snapshot, data, 1e-6 if kind == "vtp" else 1e-12)
    assert snapshot.source == str(path)
    assert peek_time(path) == StatedTime(field=1.5)


@pytest.mark.parametrize("text", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_in_the_legacy_format(tmp_path, kind, text):
    data = KINDS[kind]()
    data.field_data["TIME"] = np.array([0.75])
    path = write_legacy(data, tmp_path / "a.vtk", text)
    check(read_snapshot(path), data, 2e-5 if text or kind == "vtp" else 1e-12)
    assert peek_time(path) == StatedTime(field=0.75)


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
    assert peek_time(write_xml(hexahedra(), tmp_path / "b.vtu")) == StatedTime()


def test_several_arrays_of_a_kind_are_all_read_from_legacy_files(tmp_path):
    data = hexahedra()
    data["U"] = 2 * linear(data.points)
    snapshot = read_snapshot(write_legacy(data, tmp_path / "a.vtk"))
    assert {"U", "velocity"} <= set(snapshot.arrays)


def test_arrays_not_asked_for_are_known_but_not_read(tmp_path):
    data = hexahedra()
    data["pressure"] = np.zeros(60)
    snapshot = read_snapshot(write_xml(data, tmp_path / "a.vtu"), names=("velocity",))
    assert list(snapshot.arrays) == ["velocity"]
    assert set(snapshot.available) == {"velocity", "pressure"}


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
    with pytest.raises(ValueError, match=r"unknown extension '\.xyz'.*\.vtu"):
        read_snapshot(tmp_path / "a.xyz")
    path = unpack_vessels(tmp_path)
    (path.parent / "T0000000500" / "002.vtu").unlink()
    with pytest.raises(ValueError, match=r"T0000000500\.pvtu: .*piece 2"):
        read_snapshot(path)


def test_pieces_come_as_stored(tmp_path):
    snapshot = read_snapshot(unpack_vessels(tmp_path))
    assert isinstance(snapshot.geometry, Cells)
    assert snapshot.assembled
    assert (snapshot.geometry.n_points, snapshot.geometry.n_cells) == (48_823, 39_353)
    assert snapshot.cell_arrays["velocity"].shape == (39_353, 3)


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
    with pytest.raises(ValueError, match=r"eddy_uv0\.f00003: .* truncated"):
        steps.read(2)
    assert capfd.readouterr() == ("", "")


def test_cases_that_cannot_be_read_are_named(tmp_path, capfd):
    for name in ("a.case", "a.nek5000", "a.foam"):
        with pytest.raises(FileNotFoundError, match=rf"{name}: no such file"):
            CaseSteps(tmp_path / name)
        (tmp_path / name).write_text("nonsense\n")
        with pytest.raises(ValueError, match=name):
            CaseSteps(tmp_path / name).read(0)
    (tmp_path / "processors2").mkdir()
    with pytest.raises(ValueError, match=r"processors2: .* collated"):
        CaseSteps(tmp_path / "a.foam")
    assert capfd.readouterr() == ("", "")


def test_a_missing_variable_file_is_refused(tmp_path):
    case = write_ensight(tmp_path)
    (tmp_path / "box.vel001").unlink()
    steps = CaseSteps(case)
    with pytest.raises(ValueError, match=r"box\.case"):
        steps.read(1)


def test_axes_of_an_image_start_at_its_extent():
    grid = image((3, 4, 5))
    grid.SetExtent(2, 4, 0, 3, -1, 3)
    x, y, z = axes_of(grid)
    assert x.tolist() == [2.0, 2.5, 3.0]
    assert y.tolist() == [2.0, 2.25, 2.5, 2.75]
    assert z.tolist() == [1.0, 3.0, 5.0, 7.0, 9.0]


def test_a_turned_image_is_a_mesh_at_the_points_vtk_gives():
    grid = image((3, 4, 2))
    assert is_tensor(grid)
    grid.direction_matrix = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
    assert not is_tensor(grid)
    mesh = curvilinear_mesh(grid)
    np.testing.assert_allclose(mesh.points, grid.points, rtol=1e-14)


def test_cells_that_point_outside_are_refused_by_name():
    grid = hexahedra()
    connectivity = grid.GetCells().GetConnectivityArray()
    connectivity.SetTuple1(3, 999)
    with pytest.raises(ValueError, match=r"somewhere\.vtu: .*999 of 60"):
        mesh_of(grid, "somewhere.vtu")


def test_a_cloud_has_points_and_no_cells():
    cloud = pyvista.UnstructuredGrid()
    cloud.points = np.array([[1.0, 2, 3]])
    mesh = mesh_of(cloud, "cloud")
    assert (mesh.n_points, mesh.n_cells) == (1, 0)


def volume(mesh):
    tets = mesh.points[mesh.connectivity.reshape(-1, 4)]
    return np.abs(np.linalg.det(tets[:, 1:] - tets[:, :1])).sum() / 6


def test_polyhedra_are_split_and_keep_nodes_and_volume():
    corners = np.array(list(np.ndindex(2, 2, 2)), float)[:, ::-1]
    faces = [[0, 2, 3, 1], [4, 5, 7, 6], [0, 1, 5, 4], [2, 6, 7, 3], [0, 4, 6, 2]]
    faces.append([1, 3, 7, 5])
    stream = [6, *(n for face in faces for n in (4, *face))]
    grid = pyvista.UnstructuredGrid([len(stream), *stream], [42], corners)
    mesh = snapshot_of(grid, name="p").geometry
    assert isinstance(mesh, Cells)
    assert set(mesh.types.tolist()) == {10}
    np.testing.assert_array_equal(mesh.points, corners)
    assert volume(mesh) == pytest.approx(1.0)


def test_polygons_are_split_into_triangles_and_known_cells_are_not():
    angles = np.arange(5) * 2 * np.pi / 5
    ring = np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=-1)
    pentagon = pyvista.PolyData(ring, faces=[5, 0, 1, 2, 3, 4])
    for grid, kinds in ((pentagon, [5, 5, 5]), (hexahedra(), [11] * 24)):
        mesh = snapshot_of(grid, name="a").geometry
        assert isinstance(mesh, Cells)
        assert mesh.types.tolist() == kinds


def test_descending_rectilinear_axes_are_turned_with_points_and_cells():
    x, y, z = np.array([5.0, 2, 1]), np.array([0.0, 1]), np.array([3.0, 4])
    grid = pyvista.RectilinearGrid(x, y, z)
    grid["velocity"] = linear(grid.points)
    grid.cell_data["x"] = grid.cell_centers().points[:, 0]
    snapshot = snapshot_of(grid, name="a")
    axes = snapshot.geometry
    assert isinstance(axes, TensorGrid)
    assert axes.axes[0].tolist() == [1, 2, 5]
    expected = linear(np.array([[1.0, 0, 3]]))[0]
    np.testing.assert_allclose(snapshot.arrays["velocity"][0, 0, 0], expected)
    assert snapshot.cell_arrays["x"][:, 0, 0, 0].tolist() == [1.5, 3.5]


def test_ghost_cells_are_left_out_of_meshes_with_their_values():
    grid = hexahedra((4, 2, 2))
    grid.cell_data["id"] = [10.0, 11.0, 12.0]
    grid.cell_data["vtkGhostType"] = np.array([0, 1, 32], np.uint8)
    snapshot = snapshot_of(grid, name="a")
    assert isinstance(snapshot.geometry, Cells)
    assert snapshot.geometry.n_cells == 1
    assert snapshot.cell_arrays["id"].tolist() == [[10.0]]
    assert "vtkGhostType" not in snapshot.cell_arrays


def test_a_grid_with_hidden_cells_is_a_mesh_of_the_others():
    grid = image((4, 2, 2))
    grid.cell_data["vtkGhostType"] = np.array([0, 32, 0], np.uint8)
    snapshot = snapshot_of(grid, name="a")
    assert isinstance(snapshot.geometry, Cells)
    assert snapshot.geometry.n_cells == 2
    np.testing.assert_allclose(
        snapshot.arrays["velocity"], linear(snapshot.geometry.points)
    )


@pytest.mark.parametrize("make", [image, hexahedra])
def test_cells_of_hidden_points_are_left_out(make):
    """As solvers of overset grids blank holes: what is stored there is no velocity."""
    grid = make((5, 2, 2))
    grid.cell_data["id"] = [10.0, 11.0, 12.0, 13.0]
    hidden = np.isclose(grid.points[:, 0], np.unique(grid.points[:, 0])[1])
    grid.point_data["vtkGhostType"] = np.where(hidden, 2, 1).astype(np.uint8)
    snapshot = snapshot_of(grid, name="a")
    assert isinstance(snapshot.geometry, Cells)
    assert snapshot.cell_arrays["id"].tolist() == [[12.0], [13.0]]
    assert "vtkGhostType" not in snapshot.available


def test_blocks_are_one_mesh_with_the_arrays_they_share():
    low, high = hexahedra((3, 2, 2)), hexahedra((2, 2, 2))
    high["only"] = np.zeros(8)
    blocks = pyvista.MultiBlock([low, None, pyvista.MultiBlock([high])])
    assert len(leaves(blocks)) == 2
    snapshot = snapshot_of(blocks, name="a")
    assert isinstance(snapshot.geometry, Cells)
    assert snapshot.geometry.n_cells == 3
    assert snapshot.assembled
    assert list(snapshot.arrays) == ["velocity"]


def test_parts_of_an_instant_are_one_mesh():
    low, high = hexahedra((3, 2, 2)), image((2, 2, 2))
    high["velocity"] = 2 * linear(high.points)
    low["only"] = np.zeros(12)
    whole = snapshot_of(low, high, name="a.vtu, b.vti")
    assert isinstance(whole.geometry, Cells)
    assert whole.assembled
    assert whole.geometry.n_cells == 3
    assert list(whole.arrays) == ["velocity"]
    values = whole.arrays["velocity"]
    np.testing.assert_allclose(values[:12], linear(whole.geometry.points[:12]))
    np.testing.assert_allclose(values[12:], 2 * linear(whole.geometry.points[12:]))


def test_an_empty_data_set_is_refused_by_name():
    with pytest.raises(ValueError, match=r"void\.vtu: no points"):
        snapshot_of(pyvista.UnstructuredGrid(), name="void.vtu")
    with pytest.raises(ValueError, match=r"void\.vtm: no points"):
        snapshot_of(pyvista.MultiBlock(), name="void.vtm")


def test_an_array_of_another_length_is_refused_by_name():
    from vtkmodules.util.numpy_support import numpy_to_vtk

    grid = hexahedra()
    wrong = numpy_to_vtk(np.zeros((7, 3)))
    wrong.SetName("U")
    grid.GetPointData().AddArray(wrong)
    with pytest.raises(ValueError, match=r"bad\.vtu: array 'U' has 7 rows where 60"):
        snapshot_of(grid, name="bad.vtu")
