import numpy as np
import pytest

from jaxtrace.files.series import (
    GridSeries,
    MeshSeries,
    in_range,
    load,
    open_series,
    read_series,
)
from jaxtrace.files.snapshot import Cells
from trace_files import (
    data_folder,
    hexahedra,
    image,
    linear,
    unpack_vessels,
    write_legacy,
    write_openfoam,
    write_xml,
)

pyvista = pytest.importorskip("pyvista")


def write_meshes(folder, count=5, shapes=None):
    for index in range(count):
        data = hexahedra(shapes[index] if shapes else (3, 4, 5))
        data["velocity"] = (index + 1) * linear(data.points)
        write_xml(data, folder / f"a_{index}.vtu", time=0.5 * index)
    return folder


def test_a_mesh_series_holds_its_mesh_once(tmp_path):
    series = read_series(write_meshes(tmp_path))
    assert isinstance(series, MeshSeries)
    assert isinstance(series.geometry, Cells)
    assert isinstance(series.velocities, np.ndarray)
    assert not series.changes
    assert series.times.tolist() == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert series.velocities.shape == (5, 60, 3)
    assert series.velocities.dtype == np.float32
    expected = np.arange(1, 6)[:, None, None] * linear(series.geometry.points)
    np.testing.assert_allclose(series.velocities, expected, rtol=1e-6)
    assert [name[-7:] for name in series.files] == [f"a_{i}.vtu" for i in range(5)]


def test_a_grid_series_keeps_axes_and_order(tmp_path):
    for index in range(2):
        write_xml(image((3, 4, 5)), tmp_path / f"a_{index}.vti")
    series = read_series(tmp_path, dtype="float64")
    assert isinstance(series, GridSeries)
    assert series.velocities.shape == (2, 3, 4, 5, 3)
    x, y, z = np.meshgrid(
        series.geometry.x, series.geometry.y, series.geometry.z, indexing="ij"
    )
    expected = linear(np.stack([x, y, z], axis=-1).reshape(-1, 3)).reshape(3, 4, 5, 3)
    np.testing.assert_allclose(series.velocities[1], expected, rtol=1e-12)


def test_steps_are_chosen_by_range_start_and_number(tmp_path):
    write_meshes(tmp_path)

    def times(**options):
        return open_series(tmp_path, **options).times.tolist()

    assert times(max_time_steps=3) == [0.0, 1.0, 2.0]
    assert times(time_range=(0.5, 1.5)) == [0.5, 1.0, 1.5]
    assert times(time_range=(0.5, 2.0), max_time_steps=2) == [0.5, 2.0]
    assert times(skip_initial=3) == [1.5, 2.0]
    assert times(time_source="index", skip_initial=4) == [4.0]
    with pytest.raises(ValueError, match=r"no slices left of 5 from t = 0 to 2"):
        times(time_range=(7.0, 8.0))
    with pytest.raises(ValueError, match="not be negative"):
        times(skip_initial=-1)


def test_a_mesh_that_changes_gives_a_mesh_per_slice(tmp_path):
    shapes = [(2, 2, 2), (3, 4, 5), (3, 4, 5), (3, 4, 6)]
    series = read_series(write_meshes(tmp_path, 4, shapes), dtype="float64")
    assert isinstance(series, MeshSeries)
    assert series.changes
    assert isinstance(series.geometry, tuple)
    assert [mesh.n_points for mesh in series.geometry] == [8, 60, 60, 72]
    assert series.geometry[1] is series.geometry[2]
    for index, mesh in enumerate(series.geometry):
        expected = (index + 1) * linear(mesh.points)
        np.testing.assert_allclose(series.velocities[index], expected, rtol=1e-12)


def test_a_grid_that_changes_is_a_mesh_per_slice(tmp_path):
    for index, shape in enumerate([(3, 4, 5), (3, 4, 6)]):
        write_xml(image(shape), tmp_path / f"a_{index}.vti")
    series = read_series(tmp_path, dtype="float64")
    assert isinstance(series, MeshSeries)
    assert isinstance(series.geometry, tuple)
    for mesh, values in zip(series.geometry, series.velocities, strict=True):
        np.testing.assert_allclose(values, linear(mesh.points), rtol=1e-12)


def test_the_commonest_mesh_can_be_kept_alone(tmp_path):
    shapes = [(2, 2, 2), (3, 4, 5), (3, 4, 5), (3, 4, 6), (3, 4, 5)]
    write_meshes(tmp_path, 5, shapes)
    series = read_series(tmp_path, stable_mesh_only=True)
    assert isinstance(series, MeshSeries)
    assert not series.changes
    assert series.times.tolist() == [0.5, 1.0, 2.0]
    left = [note for note in series.notes if note.startswith("left out")]
    assert [note[-7:] for note in left] == ["a_0.vtu", "a_3.vtu"]


def test_a_bad_file_in_the_middle_is_named(tmp_path):
    write_meshes(tmp_path)
    bad = tmp_path / "a_2.vtu"
    bad.write_bytes(bad.read_bytes()[:-600])
    with pytest.raises(ValueError, match=r"a_2\.vtu: "):
        read_series(tmp_path)


def test_a_legacy_file_in_the_wrong_byte_order_is_refused(tmp_path):
    data = image((3, 4, 5))
    path = write_legacy(data, tmp_path / "a.vtk")
    right = np.asarray(data["velocity"], ">f8").tobytes()
    content = path.read_bytes()
    assert right in content
    swapped = np.asarray(data["velocity"], "<f8").tobytes()
    path.write_bytes(content.replace(right, swapped))
    with pytest.raises(ValueError, match=r"a\.vtk: velocity makes sense only"):
        read_series(path)


def test_nek5000_elements_share_nodes_and_values():
    path = data_folder("nek5000_eddy") / "eddy_uv.nek5000"
    series = read_series(path)
    assert isinstance(series, MeshSeries)
    assert isinstance(series.geometry, Cells)
    np.testing.assert_allclose(series.times, np.arange(11) / 100)
    # 16 x 16 elements of 8 x 8 points that share their edges.
    assert series.geometry.n_points == (16 * 7 + 1) ** 2
    assert series.geometry.n_cells == 256 * 49
    assert series.velocities[0].shape == (12_769, 3)
    lengths = np.diff(series.geometry.offsets)
    assert set(lengths.tolist()) == {4}
    assert "3,615 coincident nodes joined" in series.notes
    assert read_series(path, max_time_steps=3).times.tolist() == [0.0, 0.05, 0.1]
    apart = read_series(path, max_time_steps=1, merge_points=False)
    assert isinstance(apart.velocities, np.ndarray)
    assert apart.velocities.shape == (1, 16_384, 3)


def test_nek5000_velocity_is_periodic_like_the_flow_it_samples():
    series = read_series(data_folder("nek5000_eddy") / "eddy_uv.nek5000")
    assert isinstance(series.geometry, Cells)
    points, u = series.geometry.points, series.velocities[0][:, 0]
    left = points[:, 0] == points[:, 0].min()
    right = points[:, 0] == points[:, 0].max()
    order_l, order_r = np.argsort(points[left, 1]), np.argsort(points[right, 1])
    np.testing.assert_allclose(u[left][order_l], u[right][order_r], atol=1e-4)


def test_vessel_pieces_share_nodes_and_cells_are_averaged(tmp_path):
    path = unpack_vessels(tmp_path)
    series = read_series(path)
    assert isinstance(series, MeshSeries)
    mesh = series.geometry
    assert isinstance(mesh, Cells)
    assert (mesh.n_points, mesh.n_cells) == (47_441, 39_353)
    assert series.times.tolist() == [500.0]
    assert "averaged from cells to nodes" in series.notes[0]
    reference = pyvista.read(path).clean(tolerance=0.0).cell_data_to_point_data()
    theirs = {tuple(p): v for p, v in zip(reference.points, reference["velocity"])}  # noqa: B905
    expected = np.array([theirs[tuple(p)] for p in mesh.points])
    np.testing.assert_allclose(series.velocities[0], expected, rtol=1e-5, atol=1e-9)


def test_openfoam_cells_reach_their_nodes(tmp_path):
    series = read_series(write_openfoam(tmp_path))
    assert isinstance(series.geometry, Cells)
    assert series.times.tolist() == [0.0, 0.25, 0.5]
    middle = series.geometry.points[:, 0] == 1
    np.testing.assert_allclose(series.velocities[1][middle], [[0.25, 0.5, 1]] * 4)


def test_a_reader_can_be_loaded_later(tmp_path):
    reader = open_series(write_meshes(tmp_path), max_time_steps=2)
    assert load(reader).times.tolist() == [0.0, 2.0]


def test_ranges_include_their_ends_and_must_be_in_order():
    times = np.array([0.0, 1.0, 2.0])
    assert in_range(times, (1.0, 2.0)).tolist() == [1, 2]
    with pytest.raises(ValueError, match=r"\(first, last\), got \(2\.0, 1\.0\)"):
        in_range(times, (2.0, 1.0))
