"""Files become fields: exact where they are linear, streamed where they are large."""

import jax
import numpy as np
import pytest
from scipy.interpolate import RegularGridInterpolator

import trace_files as files
from jaxtrace.config import configure, reset_config
from jaxtrace.fields.changing_mesh import ChangingMeshField
from jaxtrace.fields.grid import GridField
from jaxtrace.fields.interpolation import TensorGrid
from jaxtrace.fields.streamed import StreamedField
from jaxtrace.fields.time_series import TimeSeriesField
from jaxtrace.io import loader as module
from jaxtrace.io.loader import (
    load_field,
    load_optimized_dataset,
)
from jaxtrace.io.vtk_export import write_points
from jaxtrace.tracking.simulation import simulate
from jaxtrace.tracking.tracker import create_tracker


def whole(*args, **options) -> TimeSeriesField:
    field = load_optimized_dataset(*args, **options)
    assert isinstance(field, TimeSeriesField)
    return field


def write(folder, make=lambda i: files.hexahedra(), count=5):
    """A series at t = 0, 0.1, ...: linear in space, growing in time."""
    for i in range(count):
        mesh = make(i)
        mesh["velocity"] = files.linear(mesh.points) * (i + 1)
        files.write_xml(mesh, folder / f"flow_{i}.vtu", time=0.1 * i)
    return str(folder / "flow_*.vtu")


@pytest.fixture
def pattern(tmp_path):
    return write(tmp_path)


@pytest.fixture
def limit():
    """Sets the memory limit in bytes, for this test only."""
    yield lambda size: configure(memory_limit_gb=size / 2**30)
    reset_config()


PLACES = np.array([[1.1, 2.6, 3.5], [1.9, 2.1, 10.0], [1.5, 2.5, 7.0]])


def test_the_documented_call(pattern):
    field = whole(pattern, max_time_steps=40, dtype="float32")
    np.testing.assert_allclose(field.times, [0.0, 0.1, 0.2, 0.3, 0.4], rtol=1e-6)
    assert field.data.dtype == np.float32
    found = field.sample_at_positions(PLACES, 0.25)
    np.testing.assert_allclose(found, files.linear(PLACES) * 3.5, rtol=1e-5)


def test_where_the_field_comes_from(pattern):
    info = whole(pattern)._source_info
    assert info["time_source"] == "field data (TimeValue or TIME)"
    assert info["notes"][0] == "velocity: velocity"
    assert (info["source"], info["velocity_field_name"]) == ("vtk", "velocity")
    assert len(info["files"]) == 5


def test_a_grid_stays_a_grid(tmp_path, monkeypatch):
    def never(*_):
        raise AssertionError("the nodes of a grid are not listed")

    monkeypatch.setattr(TensorGrid, "points", never)
    file = files.write_xml(files.image((5, 4, 3)), tmp_path / "a.vti")
    loaded = load_field(file, outside="nearest_element")
    places = np.random.default_rng(0).uniform([1, 2, 3], [3, 2.75, 7], (20, 3))
    found = loaded.field.sample_at_positions(places, 0.0)
    np.testing.assert_allclose(found, files.linear(places), rtol=1e-4, atol=1e-3)
    assert isinstance(loaded.field.frozen, GridField)


def test_points_without_cells_are_interpolated_between(tmp_path):
    points = np.random.default_rng(0).uniform(size=(40, 3))
    file = write_points(tmp_path / "cloud.vtu", points, files.linear(points))
    loaded = load_field(file)
    assert loaded.scheme == "delaunay"
    inside = points[:8].mean(0, keepdims=True)
    found = loaded.field.sample_at_positions(inside, 0.0)
    np.testing.assert_allclose(found, files.linear(inside), rtol=1e-4)


def test_rules_are_passed_to_the_field(pattern):
    rules = {"extrapolation": "zero", "interpolation": "nearest", "outside": "nan"}
    field = whole(pattern, **rules)
    assert (field.interpolation, field.extrapolation) == ("nearest", "zero")
    np.testing.assert_array_equal(field.sample_at_positions(PLACES, 9.0), 0 * PLACES)
    far = field.sample_at_positions(PLACES + 100, 0.1)
    assert np.isnan(np.asarray(far)).all()


def test_walls_stay(tmp_path):
    def make(i):
        mesh = files.hexahedra()
        mesh["still"] = np.where(mesh.points[:, :1] > 1.2, 1.0, 0.0) * [[1.0, 0.0, 0.0]]
        return mesh

    pattern = write(tmp_path, make, 2)
    field = whole(pattern, velocity_field_name="still")
    assert field.N == 60
    halfway = field.sample_at_positions([[1.25, 2.5, 5.0]] * 3, 0.0)
    np.testing.assert_allclose(halfway, [[0.5, 0.0, 0.0]] * 3, atol=1e-6)
    cut = whole(pattern, velocity_field_name="still", discard_boundary_layers=True)
    assert cut.data.shape[1] == cut.N == 40
    assert float(np.asarray(cut.positions)[:, 0].min()) == 1.5
    assert cut._source_info["notes"][-1] == "nodes without motion left out"


def test_a_slice_above_its_limit_is_refused(pattern):
    size = 60 * 3 * 4 / 2**20
    whole(pattern, max_memory_per_timestep_mb=1.01 * size)
    message = r"flow_0\.vtu: a slice of .* dtype=.float32"
    with pytest.raises(ValueError, match=message):
        load_optimized_dataset(pattern, max_memory_per_timestep_mb=0.99 * size)


@pytest.mark.parametrize("kind", ["mesh", "grid"])
@pytest.mark.slow
def test_a_series_above_the_memory_limit_is_streamed(kind, tmp_path, limit):
    if kind == "mesh":
        spec = write(tmp_path, count=8)
    else:
        for i in range(8):
            image = files.image()
            image["velocity"] = files.linear(image.points) * (i + 1)
            files.write_xml(image, tmp_path / f"flow_{i}.vti", time=0.1 * i)
        spec = str(tmp_path)
    in_memory = load_optimized_dataset(spec)
    limit(8 * 60 * 12 * 1.5)  # two copies of all slices do not fit, windows do
    streamed = load_optimized_dataset(spec, outside="clamp")
    assert isinstance(streamed, StreamedField)
    assert streamed.window < 8
    info = vars(streamed)["_source_info"]
    assert info["streamed"]
    for t in (0.0, 0.33, 0.7, 0.05):
        found = streamed.sample_at_positions(PLACES, t)
        expected = in_memory.sample_at_positions(PLACES, t)
        np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.slow
def test_a_tracker_runs_through_a_streamed_field(tmp_path, limit):
    def make(i):
        mesh = files.hexahedra()
        mesh["push"] = np.full((60, 3), 0.1 * i) * [[1.0, 0.5, 2.0]]
        return mesh

    pattern = write(tmp_path, make, 8)
    found = {}
    for name, size in (("memory", 2**30), ("streamed", 8 * 60 * 12 * 1.5)):
        limit(size)
        field = load_optimized_dataset(pattern, velocity_field_name="push")
        assert isinstance(field, StreamedField) == (name == "streamed")
        limit(2**30)
        tracker = create_tracker("rk4", field, None)
        found[name] = tracker.track_particles(PLACES, (0.0, 0.7), 15).positions
    np.testing.assert_allclose(found["streamed"], found["memory"], rtol=1e-6)
    # The push grows by 0.1 in every 0.1: it is t, and its integral t^2 / 2.
    moved = found["memory"][-1] - PLACES
    np.testing.assert_allclose(moved, [[0.245, 0.1225, 0.49]] * 3, rtol=1e-4)


def test_other_formats_make_fields_too(tmp_path):
    xarray, h5py = pytest.importorskip("xarray"), pytest.importorskip("h5py")
    x, y = np.linspace(0, 2, 5), np.linspace(0, 1, 4)
    u = x[:, None] + 10 * y[None] + np.arange(3.0)[:, None, None]
    names = ("time", "x", "y")
    data = xarray.Dataset(
        {"u": (names, u), "v": (names, -u)},
        coords={"time": [0.0, 1.0, 2.0], "x": x, "y": y},
    )
    with h5py.File(tmp_path / "a.h5", "w") as root:
        root["velocity"] = np.stack([u, -u], -1)[:, :, :, None]
        root["times"], root["x"], root["y"] = [0.0, 1.0, 2.0], x, y
    for source in (data, tmp_path / "a.h5"):
        field = whole(source)
        assert field.interpolation_scheme == "trilinear"
        found = field.sample_at_positions([[0.7, 0.4]], 1.5)
        np.testing.assert_allclose(found, [[6.2, -6.2, 0.0]], rtol=1e-5)


def test_what_cannot_be_streamed_says_so(tmp_path, limit):
    pattern = write(tmp_path, lambda i: files.hexahedra((3, 4, 5 + i // 3)))
    limit(60 * 12 * 8)
    with pytest.raises(ValueError, match=r"flow_3\.vtu: its mesh differs"):
        load_optimized_dataset(pattern).sample_at_positions(PLACES, 0.4)
    with pytest.raises(ValueError, match="leave out discard_boundary_layers"):
        load_optimized_dataset(pattern, discard_boundary_layers=True)


@pytest.mark.slow  # compiles a program of its own
def test_a_mesh_that_changes_keeps_every_slice(tmp_path):
    pattern = write(tmp_path, lambda i: files.hexahedra((3, 4, 5 + i % 2)))
    field = load_optimized_dataset(pattern)
    assert isinstance(field, ChangingMeshField)
    found = field.sample_at_positions(PLACES, 0.25)
    np.testing.assert_allclose(found, files.linear(PLACES) * 3.5, rtol=1e-4)
    stable = whole(pattern, use_stable_mesh_only=True)
    np.testing.assert_allclose(stable.times, [0.0, 0.2, 0.4], rtol=1e-6)
    far = load_field(pattern, outside="nan", extrapolation="zero").field
    assert np.isnan(np.asarray(far.sample_at_positions(PLACES + 99, 0.0))).all()
    np.testing.assert_array_equal(far.sample_at_positions(PLACES, 9.0), 0 * PLACES)
    with pytest.raises(ValueError, match="not for meshes that change"):
        load_optimized_dataset(pattern, spatial_interpolation="nearest")


@pytest.mark.slow  # compiles a program of its own
def test_points_alone_cannot_change(tmp_path):
    for i in range(2):
        points = np.random.default_rng(i).uniform(size=(5 + i, 3))
        write_points(tmp_path / f"f_{i}.vtu", points, points, time=i)
    with pytest.raises(ValueError, match="slice 0 has points without cells"):
        load_optimized_dataset(str(tmp_path / "f_*.vtu"))


def test_double_precision_is_double_or_refused(pattern):
    with pytest.raises(ValueError, match=r"configure\(dtype=.float64.\)"):
        load_optimized_dataset(pattern, dtype="float64")
    configure(dtype="float64")
    try:
        field = whole(pattern, dtype="float64")
        found = field.sample_at_positions(PLACES, 0.25)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, files.linear(PLACES) * 3.5, rtol=1e-12)
    finally:
        reset_config()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "float16"}, "float32 or float64"),
        ({"max_memory_per_timestep_mb": 0}, "must be above 0"),
    ],
)
def test_options_are_checked(pattern, options, message):
    with pytest.raises(ValueError, match=message):
        load_optimized_dataset(pattern, **options)


def test_eddy_against_scipy():
    """Bilinear between the nodes of a real spectral-element series, linear in time."""
    field = whole(files.data_folder("nek5000_eddy") / "eddy_uv.nek5000")
    assert field.T == 11
    np.testing.assert_allclose(field.times, np.arange(11) * 0.01, atol=1e-6)
    points = np.asarray(field.positions, np.float64)
    data = np.asarray(field.data, np.float64)
    order = np.lexsort(np.round(points[:, :2], 4).T)
    side = round(len(points) ** 0.5)
    x = points[order, 0].reshape(side, side).mean(0)
    y = points[order, 1].reshape(side, side).mean(1)
    places = np.random.default_rng(0).uniform(0.01, 2 * np.pi - 0.01, (500, 2))
    slices = []
    for index in (3, 4):
        nodes = data[index, order].reshape(side, side, 3)
        slices.append(RegularGridInterpolator((y, x), nodes)(places[:, ::-1]))
    expected = 0.75 * slices[0] + 0.25 * slices[1]
    found = np.asarray(field.sample_at_positions(places, 0.0325))
    np.testing.assert_allclose(found, expected, atol=2e-5 * np.abs(data).max())


@pytest.mark.slow
def test_particles_ride_the_eddy():
    """The eddy is carried by a mean flow: particles stay in the box and move."""
    field = whole(files.data_folder("nek5000_eddy") / "eddy_uv.nek5000")
    seeds = np.random.default_rng(0).uniform(2, 4, (50, 2)).astype(np.float32)
    paths = jax.jit(lambda s: simulate(field, s, np.linspace(0, 0.1, 11)).positions)
    found = np.asarray(paths(seeds))
    start = np.asarray(field.sample_at_positions(seeds, 0.0))
    first = (found[1] - found[0]) / 0.01
    np.testing.assert_allclose(first, start, atol=0.05 * np.abs(start).max())


@pytest.mark.slow
def test_vessels_against_numpy(tmp_path):
    """Trilinear in every voxel of a real mesh in four pieces, and none is missed."""
    file = files.unpack_vessels(tmp_path)
    field = whole(file, outside="nan")
    assert "averaged from cells to nodes" in field._source_info["notes"]
    rng = np.random.default_rng(0)
    cells = np.asarray(field.connectivity).reshape(-1, 8)[rng.integers(0, 39_353, 5000)]
    share = rng.uniform(0, 1, (5000, 3))
    weights = np.ones((5000, 8))
    for corner in range(8):
        for axis in range(3):
            high = corner >> axis & 1
            weights[:, corner] *= share[:, axis] if high else 1 - share[:, axis]
    points = np.asarray(field.positions, np.float64)
    data = np.asarray(field.data, np.float64)[0]
    places = np.einsum("nk,nkc->nc", weights, points[cells])
    expected = np.einsum("nk,nkc->nc", weights, data[cells])
    found = np.asarray(field.sample_at_positions(places, 0.0))
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(data).max())


def test_the_whole_is_read_once(pattern, monkeypatch):
    read = []
    reader = module.load
    monkeypatch.setattr(
        module, "load", lambda s, *a: read.append(len(s)) or reader(s, *a)
    )
    whole(pattern)
    assert read == [5]
