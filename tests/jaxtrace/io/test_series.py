"""Velocity series: mesh prepared once, slices chosen, thinned, read whole."""

import numpy as np
import pytest

from jaxtrace.fields.interpolation import TensorGrid
from jaxtrace.io.formats import open_slices
from jaxtrace.io.geometry import Cells, grid_to_cells
from jaxtrace.io.loader import series_arrays
from jaxtrace.io.series import (
    Series,
    Slices,
    discard_still_nodes,
    load,
    select,
)
from jaxtrace.io.vtk_slices import prepare_mesh
from trace_files import (
    data_folder,
    hexahedra,
    image,
    linear,
    unpack_vessels,
    write_legacy,
    write_xml,
)
from trace_solvers import write_openfoam

pyvista = pytest.importorskip("pyvista")


def read_series(spec, **options) -> Series:
    return load(open_slices(spec, **options))


def two_lines(gap: float = 0.0) -> Cells:
    x = np.array([0.0, 1, 1 + gap, 2])
    points = np.stack([x, 0 * x, 0 * x], axis=-1)
    return Cells(points, np.arange(4), np.array([0, 2, 4]), np.array([3, 3]))


def test_cells_without_common_nodes_are_connected():
    assert prepare_mesh(two_lines(), False).cells.n_points == 3
    assert prepare_mesh(two_lines(gap=1e-12), False).cells.n_points == 4


def test_parts_are_connected_and_a_connected_mesh_keeps_its_copies():
    points = np.array([[0.0, 0, 0], [1, 0, 0], [2, 0, 0], [1, 0, 0]])
    lines = np.array([0, 1, 1, 2, 3, 2])
    mesh = Cells(points, lines, np.array([0, 2, 4, 6]), np.array([3, 3, 3]))
    assert prepare_mesh(mesh, False).weld is None
    prepared = prepare_mesh(mesh, True)
    assert prepared.cells.n_points == 3
    assert prepared.notes() == ("1 coincident nodes joined",)


def test_cell_values_skip_cells_of_lower_dimension():
    points = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [5, 5, 5]])
    offsets = np.array([0, 2, 5])
    mesh = Cells(points, np.array([0, 1, 0, 1, 2]), offsets, np.array([3, 5]))
    prepared = prepare_mesh(mesh, False)
    values = prepared.nodal(np.array([[100.0], [2.0]]), on_cells=True)
    assert values[:, 0].tolist() == [2, 2, 2, 0]
    assert prepared.notes() == (
        "1 cells of lower dimension left out",
        "1 nodes belong to no cell",
    )


def test_slices_of_a_grid_with_values_on_cells(tmp_path):
    data = image((3, 4, 5))
    del data.point_data["velocity"]
    data.cell_data["U"] = np.tile([1.0, 2.0], (24, 1))
    slices = open_slices(write_xml(data, tmp_path / "a.vti"), dtype="float64")
    axes, values = slices.read_slice(0)
    assert isinstance(axes, TensorGrid)
    assert slices.read_slice(0)[0] is axes
    np.testing.assert_array_equal(values, np.broadcast_to([1.0, 2, 0], (3, 4, 5, 3)))
    assert slices.size(0) == 60
    assert slices.describe()[2] == "averaged from cells to nodes"


def test_a_later_file_without_the_array_is_named(tmp_path):
    write_xml(hexahedra(), tmp_path / "a_1.vtu")
    other = hexahedra()
    other.rename_array("velocity", "U")
    write_xml(other, tmp_path / "a_2.vtu")
    slices = open_slices(tmp_path)
    slices.read(0)
    with pytest.raises(ValueError, match=r"a_2\.vtu: no 'velocity' array.* U"):
        slices.read(1)


def test_values_and_coordinates_must_be_finite(tmp_path):
    data = hexahedra()
    values = linear(data.points)
    values[3, 1] = np.nan
    data["velocity"] = values
    path = write_xml(data, tmp_path / "a.vtu")
    with pytest.raises(ValueError, match=r"a\.vtu: 1 of 180 values of velocity"):
        open_slices(path).read(0)
    assert np.isnan(open_slices(path, allow_nan=True).read(0)).sum() == 1
    data = hexahedra()
    data.points = np.where(np.arange(60)[:, None] == 7, np.inf, data.points)
    path = write_xml(data, tmp_path / "b.vtu")
    with pytest.raises(ValueError, match=r"b\.vtu: .* the coordinates are not finite"):
        open_slices(path, allow_nan=True).read(0)


def write_meshes(folder, count=5, shapes=None):
    for index in range(count):
        data = hexahedra(shapes[index] if shapes else (3, 4, 5))
        data["velocity"] = (index + 1) * linear(data.points)
        write_xml(data, folder / f"a_{index}.vtu", time=0.5 * index)
    return folder


def test_steps_are_chosen_by_range_start_and_number(tmp_path):
    write_meshes(tmp_path)

    def times(**options):
        return open_slices(tmp_path, **options).times.tolist()

    assert times(time_range=(0.5, 2.0), max_time_steps=2) == [0.5, 2.0]
    assert times(time_source="index", skip_initial_timesteps=4) == [4.0]
    scaled = times(time_source="index", time_scale=0.25)
    assert scaled == [0.0, 0.25, 0.5, 0.75, 1.0]
    counted = open_slices(tmp_path, time_source="index")
    assert "if these times count steps" in counted.notes()[0]
    with pytest.raises(ValueError, match=r"no slices left of 5 from t = 0 to 2"):
        times(time_range=(7.0, 8.0))
    with pytest.raises(ValueError, match="not be negative"):
        times(skip_initial_timesteps=-1)


def test_a_mesh_that_changes_gives_a_mesh_per_slice(tmp_path):
    shapes = [(2, 2, 2), (3, 4, 5), (3, 4, 5), (3, 4, 6)]
    series = read_series(write_meshes(tmp_path, 4, shapes), dtype="float64")
    assert isinstance(series.geometry, tuple)
    assert [mesh.n_points for mesh in series.geometry] == [8, 60, 60, 72]
    assert series.geometry[1] is series.geometry[2]
    for index, mesh in enumerate(series.geometry):
        expected = (index + 1) * linear(mesh.points)
        np.testing.assert_allclose(series.velocities[index], expected, rtol=1e-12)
    arrays = series_arrays(series)
    assert [len(points) for points in arrays["positions"]] == [8, 60, 60, 72]
    assert [len(kinds) for kinds in arrays["cell_types"]] == [1, 24, 24, 30]


def test_a_grid_that_changes_is_a_mesh_per_slice(tmp_path):
    for index, shape in enumerate([(3, 4, 5), (3, 4, 6)]):
        write_xml(image(shape), tmp_path / f"a_{index}.vti")
    series = read_series(tmp_path, dtype="float64")
    assert isinstance(series.geometry, tuple)
    for mesh, values in zip(series.geometry, series.velocities, strict=True):
        np.testing.assert_allclose(values, linear(mesh.points), rtol=1e-12)


def test_the_commonest_mesh_can_be_kept_alone(tmp_path):
    shapes = [(2, 2, 2), (3, 4, 5), (3, 4, 5), (3, 4, 6), (3, 4, 5)]
    write_meshes(tmp_path, 5, shapes)
    series = read_series(tmp_path, use_stable_mesh_only=True)
    assert not isinstance(series.geometry, tuple)
    assert series.times.tolist() == [0.5, 1.0, 2.0]
    left = [note for note in series.notes if note.startswith("left out")]
    assert [note[-7:] for note in left] == ["a_0.vtu", "a_3.vtu"]


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
    mesh = series.geometry
    assert isinstance(mesh, Cells)
    assert (mesh.n_points, mesh.n_cells) == (47_441, 39_353)
    assert series.times.tolist() == [500.0]
    assert "averaged from cells to nodes" in series.notes
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


AXES = TensorGrid((np.arange(4.0), np.arange(3.0), np.arange(2.0)))


class Numbered(Slices):
    """Steps that each have their number as velocity."""

    time_source = "the index"

    def __init__(self, geometries, shape):
        self._geometries, self._shape = geometries, shape
        self.times = np.arange(len(geometries)) * 1.0
        self.labels = tuple(f"step {i}" for i in range(len(geometries)))

    @property
    def velocity_name(self):
        return "u"

    def read_slice(self, index):
        values = np.arange(np.prod(self._shape), dtype=np.float32)
        return self._geometries[index], values.reshape(self._shape) + index


def test_ranges_include_their_ends_and_must_be_in_order():
    slices = Numbered([AXES] * 3, (4, 3, 2, 3))
    assert select(slices, time_range=(1.0, 2.0)).times.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match=r"\(first, last\), got \(2\.0, 1\.0\)"):
        select(slices, time_range=(2.0, 1.0))


def test_cells_go_with_their_nodes():
    mesh = grid_to_cells(TensorGrid((np.arange(4.0), np.arange(2.0), np.zeros(1))))
    moving = (mesh.points[:, :1] > 0) * np.ones((1, 8, 3), np.float32)
    kept = discard_still_nodes(Series(np.zeros(1), moving, mesh, ())).geometry
    assert isinstance(kept, Cells)
    assert (kept.n_points, kept.n_cells) == (6, 2)
    corners = kept.points[kept.connectivity].reshape(2, 4, 3)
    np.testing.assert_array_equal(corners[:, :, 0].min(1), [1.0, 2.0])
    with pytest.raises(ValueError, match="zero everywhere"):
        discard_still_nodes(Series(np.zeros(1), 0 * moving, mesh, ()))


def test_nodes_that_ever_move_stay():
    values = np.zeros((2, 4, 3, 2, 3), np.float32)
    values[0, 1:] = 1.0
    values[1, 2:] = 1.0
    series = Series(np.arange(2.0), values, AXES, ("velocity: u",))
    kept = discard_still_nodes(series)
    assert isinstance(kept.geometry, Cells)
    assert kept.geometry.points[:, 0].min() == 1.0
    velocities = np.asarray(kept.velocities)
    assert velocities.shape == (2, 18, 3)
    moved = kept.geometry.points[:, 0] >= 2
    np.testing.assert_array_equal(velocities[1, :, 0], moved.astype(np.float32))
    assert kept.notes[-1] == "nodes without motion left out"


def test_meshes_that_change_are_cut_one_by_one():
    meshes = (grid_to_cells(AXES), grid_to_cells(AXES))
    rows = tuple(np.ones((24, 3), np.float32) for _ in meshes)
    rows[1][:6] = 0.0
    kept = discard_still_nodes(Series(np.arange(2.0), rows, meshes, ()))
    assert [len(row) for row in kept.velocities] == [24, 18]
    assert isinstance(kept.geometry, tuple)
    assert [mesh.n_points for mesh in kept.geometry] == [24, 18]
