"""Meshes in labeled files, as UGRID and models lay them out, flat and on the sphere."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial import ConvexHull, Delaunay
from typer.testing import CliRunner

import jaxtrace as jt
from jaxtrace.cli import app
from jaxtrace.fields.curved_grid import CurvilinearGrid
from jaxtrace.fields.quads import unit_vectors
from jaxtrace.fields.triangles import make_triangles
from jaxtrace.io.convert import read_recorded
from jaxtrace.io.formats import open_slices
from jaxtrace.io.geometry import Cells
from jaxtrace.io.mesh_part import directions, find_topology
from jaxtrace.plot.inputs import land_of
from jaxtrace.sphere import great_circle
from jaxtrace.types import ParticleStatus
from jaxtrace.workflow.case import load_case
from jaxtrace.workflow.run import run_case
from trace_cases import bare
from trace_ocean import follow

xarray = pytest.importorskip("xarray")

DAYS = {"units": "days since 1858-11-17 00:00:00"}


def triangles(columns=9, rows=5, length=1000.0):
    """Points (N, 2) of a channel and its triangles (M, 3)."""
    axes = np.linspace(0, 2 * length, columns), np.linspace(0, length, rows)
    x, y = np.meshgrid(*axes)
    node = np.arange(x.size).reshape(x.shape)
    low = np.stack([node[:-1, :-1], node[:-1, 1:], node[1:, 1:]], -1).reshape(-1, 3)
    high = np.stack([node[:-1, :-1], node[1:, 1:], node[1:, :-1]], -1).reshape(-1, 3)
    return np.stack([x.ravel(), y.ravel()], -1), np.concatenate([low, high])


def write_ugrid(path, quads=False, names=None):
    """A file in the layout of UGRID: linear velocity at nodes, one-based, padded."""
    points, faces = triangles()
    numbers = faces + 1.0
    if quads:
        numbers = np.column_stack([numbers, np.full(len(faces), np.nan)])
    u = points[:, 0] * 1e-4 + 0.5
    fill = {"start_index": 1, "cf_role": "face_node_connectivity"}
    names = names or {"mesh_x": {"units": "m"}, "mesh_y": {"units": "m"}}
    data = xarray.Dataset(
        {
            "mesh": ((), 0, {
                "cf_role": "mesh_topology", "topology_dimension": 2,
                "node_coordinates": " ".join(names),
                "face_node_connectivity": "mesh_faces",
            }),
            "mesh_faces": (("face", "corner"), numbers, fill),
            "ucx": (("time", "node"), np.stack([u, 2 * u]),
                    {"standard_name": "sea_water_x_velocity", "mesh": "mesh"}),
            "ucy": (("time", "node"), np.zeros((2, len(u))),
                    {"standard_name": "sea_water_y_velocity", "mesh": "mesh"}),
            **{name: ("node", points[:, axis], attributes)
               for axis, (name, attributes) in enumerate(names.items())},
        },
        {"time": ("time", [0.0, 600.0], {"units": "seconds since 2020-01-01"})},
    )  # fmt: skip
    encoding = {"mesh_faces": {"dtype": "int32", "_FillValue": -999}}
    data.to_netcdf(path, engine="h5netcdf", encoding=encoding)
    return points, faces, u


def write_fvcom(path, levels=1):
    """A file in the layout of FVCOM: uniform velocity on elements, single precision."""
    points, faces = triangles()
    speed = np.array([[0.5], [1.0]], np.float32)
    u = np.broadcast_to(speed[:, None], (2, levels, len(faces)))
    days = np.array([58849, 58849], np.int32)
    msec = np.array([43_200_000, 43_800_000], np.int32)
    data = xarray.Dataset(
        {
            "nv": (("three", "nele"), (faces + 1).T.astype(np.int32)),
            "x": ("node", points[:, 0], {"units": "meters"}),
            "y": ("node", points[:, 1], {"units": "meters"}),
            "lon": ("node", 10 + points[:, 0] / 1e5, {"units": "degrees_east"}),
            "lat": ("node", 50 + points[:, 1] / 1e5, {"units": "degrees_north"}),
            "u": (("time", "siglay", "nele"), u, {"units": "meters s-1"}),
            "v": (("time", "siglay", "nele"), 0 * u, {"units": "meters s-1"}),
            "ua": (("time", "nele"), u[:, 0], {"units": "meters s-1"}),
            "va": (("time", "nele"), 0 * u[:, 0], {"units": "meters s-1"}),
            "siglay": (("siglay", "node"), np.full((levels, len(points)), -0.5)),
            "Itime": ("time", days, DAYS),
            "Itime2": ("time", msec, {"units": "msec since 00:00:00"}),
        },
        {"time": ("time", (days + msec / 864e5).astype(np.float32), DAYS)},
    )
    data.to_netcdf(path, engine="h5netcdf")
    return points, faces


@pytest.mark.parametrize("quads", [False, True])
def test_ugrid_gives_its_nodes_cells_and_values(tmp_path, quads):
    points, faces, u = write_ugrid(tmp_path / "a.nc", quads)
    slices = open_slices(tmp_path / "a.nc", dtype="float64")
    mesh, values = slices.read_slice(1)
    assert isinstance(mesh, Cells)
    np.testing.assert_array_equal(mesh.points[:, :2], points)
    np.testing.assert_array_equal(mesh.connectivity.reshape(-1, 3), faces)
    assert set(mesh.types.tolist()) == {5}
    np.testing.assert_allclose(values[:, 0], 2 * u)
    assert slices.times.tolist() == [0.0, 600.0]
    assert "mesh by UGRID" in " ".join(slices.notes())


def test_fvcom_elements_are_averaged_and_its_days_are_exact(tmp_path):
    points, _ = write_fvcom(tmp_path / "a.nc")
    slices = open_slices(tmp_path / "a.nc")
    mesh, values = slices.read_slice(0)
    assert isinstance(mesh, Cells)
    np.testing.assert_array_equal(mesh.points[:, :2], points)
    np.testing.assert_allclose(values, np.tile([0.5, 0, 0], (len(points), 1)))
    # In single precision the days themselves are off by minutes.
    assert slices.times.tolist() == [0.0, 600.0]
    assert slices.time_units == "seconds since 2020-01-01 12:00:00"
    assert "positions: x, y" in slices.notes()


def test_faces_without_a_value_do_not_count(tmp_path):
    write_fvcom(tmp_path / "a.nc")
    with xarray.open_dataset(tmp_path / "a.nc", decode_times=False) as data:
        dry = data.load()
    dry["u"][:, :, :3] = np.nan
    values = open_slices(dry).read_slice(0)[1]
    np.testing.assert_allclose(values[:, 0], 0.5)


def test_levels_of_a_flat_mesh_are_refused_with_the_remedy(tmp_path):
    write_fvcom(tmp_path / "a.nc", levels=3)
    with pytest.raises(ValueError, match=r"levels 'siglay'.*\(.ua., .va.\)"):
        open_slices(tmp_path / "a.nc")
    chosen = open_slices(tmp_path / "a.nc", velocity_field_name=("ua", "va"))
    assert chosen.read_slice(0)[1][0, 0] == 0.5
    degrees = {"lon": {"units": "degrees_east"}, "lat": {"units": "degrees_north"}}
    write_ugrid(tmp_path / "b.nc", names=degrees)
    flat = open_slices(tmp_path / "b.nc", geometry="flat")
    assert isinstance(flat.read_slice(0)[0], Cells)
    write_ugrid(tmp_path / "c.nc", names=dict(reversed(degrees.items())))
    with xarray.open_dataset(tmp_path / "c.nc", decode_times=False) as data:
        assert find_topology(data).coordinates == (("lon", "lat"),)


def test_a_mesh_of_lines_beside_one_of_faces_is_passed_over(tmp_path):
    points, faces, _ = write_ugrid(tmp_path / "a.nc")
    with xarray.open_dataset(tmp_path / "a.nc", decode_times=False) as data:
        both = data.load()
    lines = {"cf_role": "mesh_topology", "edge_node_connectivity": "channels"}
    both = xarray.Dataset({"network": ((), 0, lines)}).merge(both)
    mesh, _ = open_slices(both).read_slice(0)
    assert isinstance(mesh, Cells)
    np.testing.assert_array_equal(mesh.connectivity.reshape(-1, 3), faces)
    np.testing.assert_array_equal(mesh.points[:, :2], points)


def test_polygons_of_mpas_are_in_radians_and_filled_up():
    lon, lat, faces = region(9, hole=False)
    full = np.concatenate([faces + 1, faces[:, :1] + 1], 1)  # filled with any number
    values, dims = np.full((2, len(faces), 1), 0.5), ("Time", "nCells", "nVertLevels")
    dates = [b"0001-01-01_00:00:00", b"0001-01-01_06:00:00"]
    data = xarray.Dataset(
        {
            "uReconstructZonal": (dims, values),
            "uReconstructMeridional": (dims, 0 * values),
            "xtime": ("Time", dates),
            "verticesOnCell": (("nCells", "maxEdges"), full),
            "nEdgesOnCell": ("nCells", np.full(len(faces), 3)),
            "lonVertex": ("nVertices", np.radians(lon)),
            "latVertex": ("nVertices", np.radians(lat)),
        }
    )
    slices = open_slices(data)
    assert slices.times.tolist() == [0, 21600]
    assert slices.time_units == "seconds since 0001-01-01 00:00:00"
    with pytest.raises(ValueError, match="is on the edges of the mesh"):
        open_slices(
            data.assign(dict.fromkeys("uv", (("Time", "nEdges"), values[..., 0])))
        )
    mesh, found = slices.read_slice(0)
    assert isinstance(mesh, CurvilinearGrid)
    np.testing.assert_allclose(mesh.x[:, 0], lon)
    np.testing.assert_array_equal(mesh.triangles, faces)
    np.testing.assert_allclose(found[:, 0, 0, 0], 0.5, rtol=2e-3)


@pytest.mark.parametrize("write", [write_ugrid, write_fvcom])
def test_a_new_case_runs_as_it_is(tmp_path, monkeypatch, write):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "sea.nc")
    made = CliRunner().invoke(app, ["new", "case.toml", "sea.nc"])
    assert made.exit_code == 0, made.exception
    case = bare(load_case("case.toml"))
    time = dataclasses.replace(case.time, n_timesteps=6)
    fewer = dataclasses.replace(case.particles, concentrations=(20, 8, 1))
    case = dataclasses.replace(case, time=time, particles=fewer)
    found = run_case(case).trajectory
    stayed = found.alive[-1]
    start, end = found.positions[0, stayed, 0], found.positions[-1, stayed, 0]
    if write is write_fvcom:  # x' = (1 + t / 600) / 2
        exact = start + 0.5 * (600 + 300)
    else:  # x' = (1 + t / 600) (a x + b): the way along the flow is 600 + 300
        exact = (start + 5000) * np.exp(1e-4 * 900) - 5000
    np.testing.assert_allclose(end, exact, rtol=2e-5)
    assert 0.2 < stayed.mean() < 1
    np.testing.assert_array_equal(
        read_recorded(case.folder / "trajectory.zarr").positions, found.positions
    )


RADIUS = 6_371_008.8
METERS = np.radians(RADIUS)  # per degree


def globe(count):
    """Nodes all over the sphere (lon, lat) and the triangles between them."""
    k = np.arange(count)
    lat = np.degrees(np.arcsin((2 * k + 1) / count - 1))
    lon = np.mod(k * 137.50776405003785, 360) - 180
    return lon, lat, ConvexHull(unit_vectors(lon, lat)).simplices


def spin(lon, lat, alpha=1.2, speed=38.6):
    """The velocity east and north of a rotation about an axis alpha from the pole."""
    x, y = np.radians(lon), np.radians(lat)
    u = np.cos(y) * np.cos(alpha) + np.sin(y) * np.cos(x) * np.sin(alpha)
    return speed * u, -speed * np.sin(x) * np.sin(alpha)


def on_sphere(lon, lat, faces, u, v, levels=None, **more):
    """A dataset of steady velocities at nodes or on faces, named as UGRID has it."""
    place = "node" if u.shape[-1] == len(lon) else "face"
    dims = (place,) if u.ndim == 1 else ("level", place)
    units = {"units": "m s-1"}
    topology = {
        "cf_role": "mesh_topology",
        "node_coordinates": "lon lat",
        "face_node_connectivity": "faces",
    }
    return xarray.Dataset(
        {
            "mesh": ((), 0, topology),
            "faces": (("face", "corner"), np.asarray(faces)),
            "lon": ("node", lon, {"units": "degrees_east"}),
            "lat": ("node", lat, {"units": "degrees_north"}),
            "u": (dims, u, units),
            "v": (dims, v, units),
            **more,
        },
        {} if levels is None else {"level": levels},
    )


def chord_values(lon, lat, faces, values, places):
    """Values (N, 3) in space where rays to places meet triangles, by brute force."""
    nodes = unit_vectors(lon, lat)[faces]
    found = []
    for ray in unit_vectors(*places.T):
        shares = np.linalg.solve(
            nodes.transpose(0, 2, 1), np.tile(ray, (len(faces), 1))[..., None]
        )[..., 0]
        shares /= shares.sum(1, keepdims=True)
        at = int(np.argmax(np.where(nodes.mean(1) @ ray > 0, shares.min(1), -np.inf)))
        found.append(shares[at] @ values[faces[at]])
    return np.array(found)


def test_degrees_are_a_sphere_and_velocities_linear_on_chords():
    lon, lat, faces = globe(300)
    data = on_sphere(lon, lat, faces, *spin(lon, lat))
    field = jt.load_optimized_dataset(data, dtype="float32")
    places = np.random.default_rng(1).uniform([-180, -90], [180, 90], (40, 2))
    places = np.concatenate([places, [[0, 90], [50, -90], [180, 3], [-180, 3]]])
    east, north = directions(unit_vectors(lon, lat))
    u, v = spin(lon, lat)
    there = chord_values(
        lon, lat, faces, u[:, None] * east + v[:, None] * north, places
    )
    turn = np.radians(places[:, 0])
    east = np.stack([-np.sin(turn), np.cos(turn), 0 * turn], -1)
    north = np.cross(unit_vectors(*places.T), east)
    exact = np.stack([(there * east).sum(1), (there * north).sum(1)], -1)
    found = np.asarray(field.sample_at_positions(places))
    np.testing.assert_allclose(found[:, :2], exact, atol=2e-4)
    notes = " ".join(open_slices(data).notes())
    assert "sphere: mesh of 300 nodes and 596 triangles" in notes
    assert "all of the rim" in notes


def test_a_rotation_over_the_pole_comes_back():
    lon, lat, faces = globe(1600)
    field = jt.load_optimized_dataset(on_sphere(lon, lat, faces, *spin(lon, lat)))
    seeds = np.array([[0.0, 0.0], [179.0, 40.0], [-90.0, 10.0], [0.0, 89.9]])
    period = 2 * np.pi * RADIUS / 38.6
    clock = np.linspace(0, period, 9)
    positions, status = follow(field, seeds.astype("float32"), clock, 36)
    assert (status == ParticleStatus.ACTIVE).all()
    # Chords lie below the sphere, by the square of the spacing: 0.3 % here. That is a
    # lag, and nobody leaves the circle about the axis.
    assert great_circle(positions[-1], seeds).max() < 0.003 * 38.6 * period
    axis = np.array([-np.sin(1.2), 0, np.cos(1.2)])
    heights = unit_vectors(*np.moveaxis(positions, -1, 0)[:2]) @ axis
    assert np.abs(heights - heights[0]).max() < 2e-3


def test_faces_are_averaged_as_vectors_around_a_pole():
    lon, lat, faces = globe(4000)
    middle = unit_vectors(lon, lat)[faces].mean(1)
    x, y, z = middle.T
    at = np.degrees(np.arctan2(y, x)), np.degrees(np.arctan2(z, np.hypot(x, y)))
    values = open_slices(on_sphere(lon, lat, faces, *spin(*at))).read_slice(0)[1]
    exact = np.stack(spin(lon, lat), -1)
    assert np.abs(values[:, 0, 0, :2] - exact).max() < 0.05 * 38.6


def region(size=21, hole=True):
    """A mesh of 10 x 10 degrees about 60 N, with a hole in its middle."""
    points, faces = triangles(size, size, 10.0)
    lon, lat = points[:, 0] / 2, 55 + points[:, 1]
    middle = points[faces].mean(1) * [0.5, 1] - 5
    gone = np.abs(middle).max(1) < 1.0
    return lon, lat, faces[~gone] if hole else faces


@pytest.mark.parametrize("land", [None, pytest.param("slide", marks=pytest.mark.slow)])
def test_the_rim_is_open_and_islands_are_not_unless_land_is_given(land):
    lon, lat, faces = region()
    data = on_sphere(lon, lat, faces, np.full(lon.shape, 1.0), np.zeros(lon.shape))
    field = jt.load_optimized_dataset(data, land=land)
    found = land_of(field)
    assert found is not None
    across, _, drawn = found
    assert (across[0], across[-1]) == (0, 10)
    assert abs(drawn.mean() - 0.04) < 0.002  # 2 x 2 of 10 x 10 degrees
    seeds = np.stack([np.full(41, 1.0), np.linspace(55.1, 64.9, 41)], -1)
    starts, times = np.pad(seeds, ((0, 0), (0, 1))), np.linspace(0, 7e5, 8)
    paths, status = follow(field, starts.astype("float32"), times, 40, "euler")
    behind = np.abs(seeds[:, 1] - 60) < 0.8
    before = np.abs(seeds[:, 1] - 60) > 1.2
    there = paths[-1, :, 0]
    if land is None:
        assert (status[before] == ParticleStatus.ABSORBED).all()
        assert (status[behind] == ParticleStatus.BEACHED).all()
    else:
        assert (status == ParticleStatus.ACTIVE).all()
        np.testing.assert_allclose(there[before], 10, atol=1e-4)
    np.testing.assert_allclose(there[behind], 4, atol=0.05)
    way = paths[2, before, 0] - 1.0  # along circles of latitude
    exact = times[2] / (METERS * np.cos(np.radians(seeds[before, 1])))
    np.testing.assert_allclose(way, exact, rtol=2e-3)


def test_sigma_levels_of_fvcom_follow_the_depth():
    lon, lat, faces = region(9, hole=False)
    depth = 20.0 + 10 * lon
    share = np.array([-0.125, -0.375, -0.625, -0.875])
    middle = lon[faces].mean(1)
    u = np.broadcast_to(1 + share[:, None], (4, len(faces)))
    data = xarray.Dataset(
        {
            "nv": (("three", "nele"), (faces + 1).T),
            "lon": ("node", lon, {"units": "degrees_east"}),
            "lat": ("node", lat, {"units": "degrees_north"}),
            "h": ("node", depth, {"units": "m"}),
            "siglay": (("siglay", "node"), np.tile(share[:, None], (1, len(lon)))),
            "u": (("siglay", "nele"), u, {"units": "meters s-1"}),
            "v": (("siglay", "nele"), 0 * u, {"units": "meters s-1"}),
            "ww": (("siglay", "nele"), 0 * u - 1e-3 * middle, {"units": "meters s-1"}),
        }
    )
    field = jt.load_optimized_dataset(data)
    places = np.array([[3.0, 58, -5], [3, 58, -25], [3, 58, -45], [8, 61, -60]])
    found = np.asarray(field.sample_at_positions(places))
    sigma = places[:, 2] / (20 + 10 * places[:, 0])
    np.testing.assert_allclose(
        found[:, 0], 1 + np.clip(sigma, -0.875, -0.125), rtol=3e-3
    )
    np.testing.assert_allclose(found[:, 2], -1e-3 * places[:, 0], rtol=0.2)
    deep = jnp.asarray(np.array([[3.0, 58, -90], [3, 58, 2], [3, 58, -10]]), "float32")
    frozen = field.frozen
    settled = jax.jit(lambda field, x: field.settle(x, field.start(x))[0])(frozen, deep)
    np.testing.assert_allclose(settled[:, 2], [-50, 0, -10], atol=0.2)
    with pytest.raises(ValueError, match="there is no h"):
        open_slices(data.drop_vars("h"))


def test_depth_levels_of_fesom_and_polygons():
    lon, lat, _ = region(9, hole=False)
    depths = ("level", [5.0, 50.0], {"units": "m", "positive": "down"})
    quads = np.full((16, 4), -1)
    node = np.arange(81).reshape(9, 9)[::2, ::2]
    quads[:, 0], quads[:, 1] = node[:-1, :-1].ravel(), node[:-1, 1:].ravel()
    quads[:, 2], quads[:, 3] = node[1:, 1:].ravel(), node[1:, :-1].ravel()
    u = np.stack([np.full(81, 1.0), np.full(81, 0.5)])
    field = jt.load_optimized_dataset(on_sphere(lon, lat, quads, u, 0 * u, depths))
    places = np.array([[3.0, 58, -5], [3, 58, -27.5], [3, 58, -60], [3, 58, 0]])
    found = np.asarray(field.sample_at_positions(places))[:, 0]
    np.testing.assert_allclose(found, [1, 0.75, 0.5, 1], rtol=2e-4)


@pytest.mark.slow
def test_walks_on_a_ragged_mesh_end_where_a_search_does():
    rng = np.random.default_rng(3)
    lon, lat = rng.uniform(0, 10, 400), rng.uniform(50, 60, 400)
    faces = Delaunay(np.stack([lon, lat], -1)).simplices
    edges = np.stack([lon, lat], -1)[faces]
    edges = edges[:, 1:] - edges[:, :1]
    thick = np.abs(np.linalg.det(edges)) > 0.05  # those at the hull turn over
    faces = faces[thick & (rng.uniform(size=len(faces)) < 0.9)]  # holes, a ragged rim
    mesh = make_triangles(unit_vectors(lon, lat), faces, np.float64, coast=False)
    ends = rng.uniform([0, 50, 0], [10, 60, 0], (2000, 3))
    begin = ends + rng.normal(0, 0.15, ends.shape) * [1, 1, 0]
    way = begin + np.linspace(0, 1, 41)[:, None, None] * (ends - begin)

    @jax.jit
    def walk(mesh, way, ends):
        cells = mesh.start(way.reshape(-1, 3)).reshape(way.shape[:2])
        place, hint = mesh.locate(mesh.sight(ends), cells[0])
        return cells, *mesh.look_again(ends, place, hint)

    with jax.enable_x64():
        cells, place, hint = walk(mesh, jnp.asarray(way), jnp.asarray(ends))
    cells = np.asarray(cells)
    within = (cells >= 0).all(0)
    assert within.sum() > 1000
    hint, reached = np.asarray(hint), (cells[0] >= 0) & np.asarray(place.held)
    np.testing.assert_array_equal(hint[reached], cells[-1, reached])
    assert reached[within].all()


def test_icon_has_radians_and_times_as_dates():
    lon, lat, faces = region(9, hole=False)
    u = np.ones((2, 1, len(faces)))
    radians = {"units": "radian"}
    data = xarray.Dataset(
        {
            "u": (("time", "height", "ncells"), u, {"units": "m s-1"}),
            "v": (("time", "height", "ncells"), 0 * u, {"units": "m s-1"}),
            "vertex_of_cell": (("nv", "ncells"), (faces + 1).T),
            "vlon": ("vertex", np.radians(lon), radians),
            "vlat": ("vertex", np.radians(lat), radians),
        },
        {"time": ("time", [20200228.0, 20200229.25], {"units": "day as %Y%m%d.%f"})},
    )
    slices = open_slices(data)
    mesh = slices.read_slice(0)[0]
    assert isinstance(mesh, CurvilinearGrid)
    np.testing.assert_allclose(mesh.x[:, 0], lon)
    assert slices.times.tolist() == [0, 1.25 * 86400]
    assert slices.time_units == "seconds since 2020-02-28 00:00:00"
