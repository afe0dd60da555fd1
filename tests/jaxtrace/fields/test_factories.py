"""Fields from arrays, functions, dictionaries and files."""

import numpy as np
import pytest

from jaxtrace.fields.changing import ChangingMeshField
from jaxtrace.fields.factories import (
    create_field_from_data,
    create_field_from_vtk,
    create_time_series_from_arrays,
    create_time_series_from_function,
    create_time_series_from_vtk_files,
    detect_field_type,
)
from jaxtrace.fields.structured import StructuredGridSampler
from jaxtrace.fields.time_series import TimeSeriesField
from jaxtrace.fields.unstructured import UnstructuredField
from trace_meshes import lattice
from trace_series import TIMES, cloud, grid_points, growing, linear, places, tetra_mesh

pytestmark = pytest.mark.slow  # compiles many programs

AXES = (np.linspace(0, 2, 4), np.linspace(0, 1, 3), np.linspace(0, 0.5, 2))
GRID = np.stack(np.meshgrid(*AXES, indexing="ij"), -1)


def test_snapshots_may_be_a_list():
    points = grid_points()
    field = create_time_series_from_arrays(list(growing(points)), TIMES, points)
    assert np.allclose(field.data, growing(points), atol=1e-5)
    cubic = create_time_series_from_arrays(
        growing(points), TIMES, points, interpolation="cubic"
    )
    assert cubic.interpolation == "cubic"


@pytest.mark.slow
def test_a_function_is_sampled_at_nodes_and_instants():
    points = cloud()
    field = create_time_series_from_function(
        points, TIMES, lambda x, t: (1 + t) * linear(x), extrapolation="linear"
    )
    found = field.evaluate(places(), 4.0)
    assert np.allclose(found, 5 * linear(places()), atol=1e-4)


POINTS, TETS = tetra_mesh()
DATA = {
    "time_series": {
        "velocity_data": growing(POINTS),
        "times": TIMES,
        "positions": POINTS,
    },
    "structured": {
        "velocity_data": linear(GRID),
        "grid_x": AXES[0],
        "grid_y": AXES[1],
        "grid_z": AXES[2],
    },
    "unstructured": {
        "points": POINTS,
        "connectivity": TETS,
        "velocity_data": linear(POINTS),
    },
}
TYPES = {
    "time_series": TimeSeriesField,
    "structured": StructuredGridSampler,
    "unstructured": UnstructuredField,
}


@pytest.mark.parametrize("kind", DATA)
@pytest.mark.slow
def test_dictionaries_are_told_by_their_keys(kind):
    assert detect_field_type(DATA[kind]) == kind
    for asked in ("auto", kind):
        field = create_field_from_data(DATA[kind], asked)
        assert type(field) is TYPES[kind]
        assert np.allclose(field.sample(places()), linear(places()), atol=1e-4)


def test_images_are_structured():
    rows = linear(GRID).transpose(2, 1, 0, 3).reshape(-1, 3)
    steps = [axis[1] for axis in AXES]
    stored = {"dimensions": (4, 3, 2), "origin": (0, 0, 0), "spacing": steps}
    for name in ("velocity", "velocity_data"):
        field = create_field_from_data(stored | {name: rows})
        assert isinstance(field, StructuredGridSampler)
        assert np.allclose(field.sample(places()), linear(places()), atol=1e-4)


def test_arrays_are_told_by_their_axes():
    series = create_field_from_data(growing(POINTS), positions=POINTS, times=TIMES)
    assert isinstance(series, TimeSeriesField)
    x, y, z = AXES
    steady = create_field_from_data(linear(GRID), x_coords=x, y_coords=y, z_coords=z)
    assert np.allclose(steady.sample(places()), linear(places()), atol=1e-4)
    layers = np.stack([linear(GRID), 2 * linear(GRID)])
    moving = create_field_from_data(
        layers, x_coords=x, y_coords=y, z_coords=z, times=[0.0, 1.0]
    )
    found = moving.sample_at_positions(places(), 0.5)
    assert np.allclose(found, 1.5 * linear(places()), atol=1e-4)


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (np.zeros((4, 3)), {}, "an array of 2 axes is no field"),
        ({"velocity": 1}, {}, "data with velocity are no field"),
        (np.zeros((2, 4, 3)), {}, "times is missing"),
        (np.zeros((2, 4, 3)), {"times": [0, 1]}, "positions is missing"),
        (np.zeros((2, 2, 4, 3)), {}, "x_coords is missing"),
        (
            np.zeros((2, 4, 3)),
            {"field_type": "wavy"},
            "choose one of auto, time_series",
        ),
    ],
)
def test_incomplete_data_are_refused(data, options, message):
    with pytest.raises(ValueError, match=message):
        create_field_from_data(data, **options)


pyvista = pytest.importorskip("pyvista")


def write_mesh(path, points, cells, kind, values, name="velocity"):
    rows = np.concatenate([np.full((len(cells), 1), cells.shape[1]), cells], 1)
    grid = pyvista.UnstructuredGrid(rows.ravel(), np.full(len(cells), kind), points)
    grid[name] = values
    grid.save(path)


def write_series(folder, points, cells, kind):
    for step, values in enumerate(growing(points)):
        write_mesh(folder / f"flow_{step}.vtu", points, cells, kind, values)
    return str(folder / "flow_*.vtu")


def test_files_of_one_mesh_make_a_time_series(tmp_path):
    pattern = write_series(tmp_path, POINTS, TETS, 10)
    for make in (create_time_series_from_vtk_files, create_field_from_vtk):
        field = make(pattern)
        assert isinstance(field, TimeSeriesField)
        assert field.interpolation_scheme == "tetrahedra"
        assert len(field._source_info["files"]) == 4
        found = field.sample_at_time(float(field.times[2]))
        assert np.allclose(found, growing(POINTS)[2], atol=1e-4)


def test_options_go_to_the_reader_and_to_the_field(tmp_path):
    pattern = write_series(tmp_path, POINTS, TETS, 10)
    field = create_time_series_from_vtk_files(
        pattern, "velocity", 2, interpolation="nearest", outside="nan", skip_initial=1
    )
    assert isinstance(field, TimeSeriesField)
    assert field.T == 2
    assert field.interpolation == "nearest"
    assert np.isnan(field.evaluate(0.0, [[9.0, 9, 9]])).all()
    with pytest.raises(TypeError, match="wavelength"):
        create_time_series_from_vtk_files(pattern, wavelength=3)


def test_hexahedra_that_fill_a_grid_are_trilinear(tmp_path):
    points, cells = lattice((4, 3, 3), (2.0, 1.0, 0.5))
    field = create_time_series_from_vtk_files(write_series(tmp_path, points, cells, 12))
    assert isinstance(field, TimeSeriesField)
    assert field.interpolation_scheme == "trilinear"
    assert np.allclose(field.evaluate(0.0, places()), linear(places()), atol=1e-4)


def test_one_file_makes_a_steady_field_of_its_kind(tmp_path):
    write_mesh(tmp_path / "mesh.vtu", POINTS, TETS, 10, linear(POINTS), "U")
    mesh = create_field_from_vtk(tmp_path / "mesh.vtu")
    assert isinstance(mesh, UnstructuredField)
    assert np.allclose(mesh.sample(places()), linear(places()), atol=1e-4)
    image = pyvista.ImageData(dimensions=(4, 3, 2), spacing=(2 / 3, 0.5, 0.5))
    image["velocity"] = linear(image.points)
    image.save(tmp_path / "grid.vti")
    grid = create_field_from_vtk(tmp_path / "grid.vti", outside="zero")
    assert isinstance(grid, StructuredGridSampler)
    assert grid.bounds_handling == "zero"
    assert np.allclose(grid.sample(places()), linear(places()), atol=1e-4)
    series = create_field_from_vtk(tmp_path / "grid.vti", "time_series")
    assert isinstance(series, TimeSeriesField)
    assert series.interpolation_scheme == "trilinear"
    assert np.allclose(series.sample(places()), linear(places()), atol=1e-4)


def test_the_wrong_kind_for_a_file_is_refused(tmp_path):
    write_mesh(tmp_path / "mesh.vtu", POINTS, TETS, 10, linear(POINTS))
    with pytest.raises(ValueError, match="holds a mesh, not a grid"):
        create_field_from_vtk(tmp_path / "mesh.vtu", "structured")
    image = pyvista.ImageData(dimensions=(4, 3, 2))
    image["velocity"] = linear(image.points)
    image.save(tmp_path / "grid.vti")
    with pytest.raises(ValueError, match="holds a grid, not one mesh"):
        create_field_from_vtk(tmp_path / "grid.vti", "unstructured")
    with pytest.raises(ValueError, match="choose one of auto"):
        create_field_from_vtk(tmp_path / "grid.vti", "wavy")
    with pytest.raises(FileNotFoundError):
        create_field_from_vtk(str(tmp_path / "none_*.vtu"))


@pytest.mark.slow
def test_meshes_that_change_are_each_asked_on_their_own(tmp_path):
    write_mesh(tmp_path / "flow_0.vtu", POINTS, TETS, 10, linear(POINTS))
    points, cells = lattice((3, 3, 3), (2.0, 1.0, 0.5))
    write_mesh(tmp_path / "flow_1.vtu", points, cells, 12, 3 * linear(points))
    field = create_time_series_from_vtk_files(str(tmp_path / "flow_*.vtu"))
    assert isinstance(field, ChangingMeshField)
    first, last = field.get_time_bounds()
    found = field.sample_at_positions(places(), (first + last) / 2)
    assert np.allclose(found, 2 * linear(places()), atol=1e-4)


def test_points_without_cells_are_a_cloud(tmp_path):
    points = cloud()
    vertices = np.arange(len(points))[:, None]
    write_mesh(tmp_path / "cloud.vtu", points, vertices, 1, linear(points))
    field = create_field_from_vtk(tmp_path / "cloud.vtu", "time_series")
    assert isinstance(field, TimeSeriesField)
    assert field.interpolation_scheme == "delaunay"
    nearest = create_field_from_vtk(
        tmp_path / "cloud.vtu", spatial_interpolation="nearest"
    )
    assert np.allclose(nearest.sample(points), linear(points), atol=1e-4)
