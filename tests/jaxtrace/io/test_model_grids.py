"""Files of ocean models: curvilinear positions, staggered points, separate files."""

import numpy as np
import pytest
from scipy.interpolate import RegularGridInterpolator
from typer.testing import CliRunner

from jaxtrace.cli import app
from jaxtrace.fields.curved_grid import CurvilinearGrid
from jaxtrace.fields.interpolation import TensorGrid
from jaxtrace.fields.quads import grid_angles
from jaxtrace.fields.terrain import Stretching
from jaxtrace.io.loader import load_field, load_variable
from jaxtrace.io.netcdf import GridSlices
from jaxtrace.types import ParticleStatus
from jaxtrace.workflow.case import load_case
from jaxtrace.workflow.prepare import make_plan
from trace_ocean import follow, solid, tilted

xarray = pytest.importorskip("xarray")
EAST, NORTH = {"units": "degrees_east"}, {"units": "degrees_north"}
SPEED, METERS = {"units": "m/s"}, {"units": "m"}


def pop(lon, lat, u, v, **more):
    """Return a dataset in the layout of POP: positions are data variables, cm/s."""
    dims = ("time", "nlat", "nlon")
    along = {"units": "centimeter/s", "long_name": "Velocity in grid-x direction"}
    return xarray.Dataset(
        {
            "UVEL": (dims, 100 * u[None], along),
            "VVEL": (dims, 100 * v[None], along),
            "ULONG": (dims[1:], lon, EAST),
            "ULAT": (dims[1:], lat, NORTH),
            **more,
        },
        {"time": ("time", [0.0], {"units": "days since 2001-01-01"})},
    )


def test_positions_may_be_data_and_velocities_along_the_grid():
    lon, lat = tilted(12, closed=False)
    u, v = solid(lon, lat)
    angle = grid_angles(lon, lat)
    cos, sin = np.cos(angle), np.sin(angle)
    data = pop(lon, lat, u * cos + v * sin, v * cos - u * sin)
    data["UVEL"][0, 3, 4] = np.nan
    slices = GridSlices(data, dtype="float64")
    assert isinstance(slices.geometry, CurvilinearGrid)
    assert slices.geometry.shape == (13, 25, 1)
    values = slices.read(0)
    expected = np.stack([u, v], -1)
    expected[3, 4] = 0
    np.testing.assert_allclose(values[:, :24, 0, :2], expected, atol=1e-12)
    np.testing.assert_array_equal(values[:, 24], values[:, 0])
    notes = " ".join(slices.notes())
    for words in ("curvilinear grid of 13 x 25 x 1", "turned", "1 of 325 nodes masked"):
        assert words in notes
    stored = data.assign(ANGLE=(("nlat", "nlon"), np.degrees(angle), {"units": "deg"}))
    again = GridSlices(stored, dtype="float64").read(0)
    np.testing.assert_allclose(again, values, atol=1e-12)
    named = GridSlices(data.rename(UVEL="u_eastward", VVEL="v_northward"))
    assert not any("turned" in note for note in named.notes())


def test_scalars_of_a_curvilinear_grid_are_not_turned():
    lon, lat = tilted(12)
    warm = 20 + lat / 10
    data = pop(lon, lat, *solid(lon, lat), TEMP=(("nlat", "nlon"), warm))
    data["TEMP"][5, 5] = np.nan
    field = load_variable(data, "TEMP").field
    beside = [(a[5, 4] * 0.7 + a[5, 5] * 0.3) for a in (lon, lat)]
    points = np.array([[lon[6, 12] + 1e-3, lat[6, 12], 0.0], [*beside, 0.0]])
    value, sea, _ = np.asarray(field(points)).T
    assert sea[1] < sea[0] == 1
    # Beside the masked node only the nodes at sea count.
    np.testing.assert_allclose(value / sea, [warm[6, 12], warm[5, 4]], atol=0.05)


@pytest.mark.parametrize("model", ["POP", "MOM"])
def test_layers_of_b_grids_are_constant_and_rise_linearly(model):
    lon, lat = np.meshgrid(np.arange(-60.0, -50), np.arange(20.0, 28))
    middle, edges = np.array([5.0, 15, 30]), np.array([0.0, 10, 20, 40])
    down = {"positive": "down", "units": "centimeters" if model == "POP" else "m"}
    kept = slice(0, 3) if model == "POP" else slice(1, 4)  # tops, or bottoms
    scale, speed = (100.0, "cm/s") if model == "POP" else (1.0, "m/s")
    corner, center = ("nlat", "nlon"), ("nlat", "nlon")
    if model == "MOM":
        corner, center = ("yu_ocean", "xu_ocean"), ("yt_ocean", "xt_ocean")
    shape, units = (3, *lon.shape), {"units": speed}
    u = scale * np.broadcast_to(np.array([0.3, 0.2, 0.1])[:, None, None], shape)
    # w = -z / 1e6 below, 0 at the surface; MOM leaves that one out, POP the bottom.
    # A cell to the north-east counts for nothing here, so its corner is marked.
    w = scale * -1e-6 * np.broadcast_to(-edges[kept][:, None, None], shape).copy()
    w[:, 4, 5] = 0
    data = xarray.Dataset(
        {
            "UVEL": (("z_t", *corner), u, {**units, "long_name": "zonal velocity"}),
            "VVEL": (("z_t", *corner), 0 * u, units),
            "WVEL": (("z_w", *center), w, units),
        },
        {
            "z_t": ("z_t", scale * middle, down),
            "z_w": ("z_w", scale * edges[kept], down),
        },
    )
    if model == "MOM":
        data = data.assign_coords(
            xu_ocean=("xu_ocean", lon[0], EAST), yu_ocean=("yu_ocean", lat[:, 0], NORTH)
        )
    else:
        data["ULONG"], data["ULAT"] = (corner, lon, EAST), (corner, lat, NORTH)
    field = load_field(data).field
    z = np.array([-1.0, -9.9, -10.1, -19, -25, -30])
    places = np.stack([np.full(6, -58.3), np.full(6, 21.7), z], 1)
    still = [[-55.5, 23.5, -9.0], [-54.5, 24.5, -9.0]]  # cells [4, 5] and [5, 6]
    sampled = np.asarray(field.sample_at_positions([*places, *still]))
    found, still = sampled[:6], sampled[6:, 2]
    np.testing.assert_allclose(found[:, 0], [0.3, 0.3, 0.2, 0.2, 0.1, 0.1], rtol=1e-3)
    rise = np.array([1, 9.9, 10.1, 19, 25, 30]) * 1e-6
    if model == "POP":  # closed at a bottom of 40 m
        rise[4:] = 20e-6 * np.array([15, 10]) / 20
    np.testing.assert_allclose(found[:, 2], rise, rtol=1e-4)
    np.testing.assert_allclose(still, [0, 9e-6], rtol=1e-4)


def test_dimensions_are_placed_by_coordinates_of_other_names():
    lon, lat = np.arange(0.0, 360, 30), np.arange(80.0, -81, -20)
    x, y = np.meshgrid(lon, lat, indexing="ij")
    u, v = (100 * part[:, None] for part in solid(x, y))
    dims, units = ("longitude", "time", "latitude"), {"units": "cm/s"}
    data = xarray.Dataset(
        {"u": (dims, u, units), "v": (dims, v, units)},
        {
            "lat": ("latitude", lat, NORTH),
            "lon": ("longitude", lon, EAST),
        },
    )
    field = load_field(data).field
    places = np.stack([x.ravel(), y.ravel()], 1)
    found = np.asarray(field.sample_at_positions(places))[:, :2]
    np.testing.assert_allclose(
        found, np.stack(solid(x, y), -1).reshape(-1, 2), atol=1e-5
    )
    with pytest.raises(ValueError, match="no coordinates for"):
        load_field(data.drop_vars(["lat", "lon"]))
    line = data.isel(latitude=0).rename(longitude="ncells")
    flat = line.assign_coords(lat=("ncells", lon / 9, NORTH))
    with pytest.raises(ValueError, match="no cells between them: add the file of the"):
        load_field(flat)


def test_wrf_repeats_its_positions_at_every_instant():
    lon, lat = turned_corners(6, 7)
    dims = ("Time", "south_north", "west_east")
    twice = lambda a: (dims, np.stack([a, a]))
    u = 0 * lon + 1
    data = xarray.Dataset(
        {
            "U10": (*twice(u), {"units": "m s-1"}),
            "V10": (*twice(u), {"units": "m s-1"}),
        },
        {
            "XLONG": (*twice(lon), {"units": "degree_east"}),
            "XLAT": (*twice(lat), {"units": "degree_north"}),
            "XTIME": ("Time", [0.0, 60.0], {"units": "minutes since 2020-01-01"}),
        },
    )
    slices = GridSlices(data)
    assert isinstance(slices.geometry, CurvilinearGrid)
    np.testing.assert_array_equal(slices.geometry.x, lon)
    assert slices.times.tolist() == [0, 3600]
    texts = np.array([b"2020-01-01_00:00:00", b"2020-01-01_06:00:00"])
    dated = data.drop_vars("XTIME").assign(Times=("Time", texts))
    assert GridSlices(dated).times.tolist() == [0, 21600]
    assert GridSlices(dated).time_units == "seconds since 2020-01-01 00:00:00"
    with pytest.raises(ValueError, match="'Time' of 'U10' has no times: give it a"):
        GridSlices(data.drop_vars("XTIME"))
    data["XLONG"][1] += 1  # a nest that moves
    with pytest.raises(ValueError, match="cannot tell"):
        GridSlices(data)


def test_straight_positions_in_two_dimensions_are_a_plain_grid():
    x, y = np.arange(0, 360, 10.0), np.arange(-80, 81, 10.0)
    lon, lat = np.meshgrid(x, y)
    u, v = solid(lon, lat)
    dims = ("y", "x")
    of = lambda way: {"standard_name": f"{way}_sea_water_velocity", "units": "m s-1"}
    data = {"uo": (dims, u, of("eastward")), "vo": (dims, v, of("northward"))}
    curved = xarray.Dataset(
        data, {"nav_lon": (dims, lon, EAST), "nav_lat": (dims, lat, NORTH)}
    )
    plain = xarray.Dataset(data, {"y": ("y", y, NORTH), "x": ("x", x, EAST)})
    slices = GridSlices(curved)
    assert isinstance(slices.geometry, TensorGrid)
    points = np.random.default_rng(0).uniform([-180, -85, 0], [180, 85, 0], (50, 3))
    one, other = (np.asarray(load_field(d).field(points)) for d in (curved, plain))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("left_out", [np.nan, 0.0])
def test_processors_that_were_left_out_have_no_cells(left_out):
    lon, lat = turned_corners(8, 9)
    u = np.ones_like(lon)
    lon[:3, :3] = lat[:3, :3] = left_out
    u[:3, :3] = np.nan
    data = xarray.Dataset(
        {
            "uo": (("y", "x"), u, {"standard_name": "eastward_sea_water_velocity"}),
            "vo": (
                ("y", "x"),
                0 * u,
                {"standard_name": "northward_sea_water_velocity"},
            ),
        },
        {"nav_lon": (("y", "x"), lon, EAST), "nav_lat": (("y", "x"), lat, NORTH)},
    )
    grid = GridSlices(data).geometry
    assert not grid.faces
    assert np.isnan(grid.x[:3, :3]).all()
    assert np.isnan(grid.x).sum() == 9


def swirl(lon, lat):
    """Return a stream function in m2/s that vanishes beyond a basin."""
    x, y = (lon - 10) / 8, (lat - 45) / 6
    inside = (np.abs(x) < 1) & (np.abs(y) < 1)
    return np.where(inside, 2e5 * np.cos(np.pi * x / 2) * np.cos(np.pi * y / 2), 0.0)


def turned_corners(rows, columns):
    """Return a grid around 10 E, 45 N whose rows run north of east."""
    i, j = np.meshgrid(np.linspace(-10, 10, columns), np.linspace(-8, 8, rows))
    return 10 + i * 0.9 - j * 0.4, 45 + i * 0.3 + j * 0.8


def transports(lon, lat):
    """Return speeds through the faces between corners, with fill values on land."""
    psi = swirl(lon, lat)
    grid = CurvilinearGrid(lon, lat, np.zeros(1), 6371008.8, faces=True)
    columns, rows = grid.spacing()
    u = -np.diff(psi, axis=0) / rows[:-1]
    v = np.diff(psi, axis=1) / columns[:, :-1]
    still = lambda a, b: (a == 0) & (b == 0)
    u[still(psi[:-1], psi[1:])] = np.nan
    v[still(psi[:, :-1], psi[:, 1:])] = np.nan
    return u, v


TIMES = {"units": "seconds since 1900-01-01 00:00:00", "calendar": "gregorian"}
FILL = {"_FillValue": 1e20}


def write_nemo(folder, levels=3):
    """Write NEMO's files: u, v, w and the mesh apart, positions all called nav_lon."""
    lon, lat = turned_corners(25, 30)
    u, v = transports(lon, lat)
    shape = (2, levels, 25, 30)
    full = {n: np.full(shape, np.nan) for n in "UVW"}
    full["U"][:, :, 1:], full["V"][:, :, :, 1:] = u, v
    full["W"][:, :, 1:, 1:] = 0.0
    depth = 10.0 * np.arange(levels)
    names = {"U": ("vozocrtx", "sea_water_x_velocity", 5.0),
             "V": ("vomecrty", "sea_water_y_velocity", 5.0),
             "W": ("vovecrtz", "upward_sea_water_velocity", 0.0)}  # fmt: skip
    for point, (name, standard, shift) in names.items():
        level = f"depth{point.lower()}"
        dims = ("time_counter", level, "y", "x")
        half = 0.01 * "UVW".index(point)  # somewhere beside the corners
        data = xarray.Dataset(
            {name: (dims, full[point], {"standard_name": standard, "units": "m/s"})},
            {
                "nav_lon": (("y", "x"), lon - half, EAST),
                "nav_lat": (("y", "x"), lat - half, NORTH),
                level: (level, depth + shift, {"units": "m", "positive": "down"}),
                "time_counter": ("time_counter", [0.0, 864000.0], TIMES),
            },
        )
        path = folder / f"run_grid_{point}.nc"
        data.to_netcdf(path, engine="scipy", encoding={name: FILL})
    mesh = {
        "glamf": (("t", "y", "x"), lon[None]),
        "gphif": (("t", "y", "x"), lat[None]),
    }
    xarray.Dataset(mesh).to_netcdf(folder / "mesh_mask.nc", engine="scipy")
    return lon, lat, u, v


def write_roms(folder):
    """Write a file of ROMS: a ring of boundary cells, and dimensions of their own."""
    lon, lat = turned_corners(25, 30)
    u, v = transports(lon, lat)
    whole = np.full((2, 26, 30), np.nan), np.full((2, 25, 31), np.nan)
    whole[0][:, 1:-1], whole[1][:, :, 1:-1] = u, v
    speed = {"units": "meter second-1"}
    data = xarray.Dataset(
        {
            "u": (("ocean_time", "eta_u", "xi_u"), whole[0], speed),
            "v": (("ocean_time", "eta_v", "xi_v"), whole[1], speed),
            "lon_psi": (("eta_psi", "xi_psi"), lon, EAST),
            "lat_psi": (("eta_psi", "xi_psi"), lat, NORTH),
        },
        {"ocean_time": ("ocean_time", [0.0, 864000.0], TIMES)},
    )
    data.to_netcdf(folder / "ocean_his.nc", engine="scipy", encoding={"u": FILL})
    return lon, lat, u, v


def write_sgrid(folder):
    """Write the file of ROMS as SGRID states it, with names that no model has."""
    found, path = write_roms(folder), folder / "ocean_his.nc"
    with xarray.open_dataset(path, decode_times=False) as data:
        stored = data.load().rename(lon_psi="x_node", lat_psi="y_node")
    topology = {
        "cf_role": "grid_topology",
        "node_coordinates": "y_node x_node",
        "face_dimensions": "a: xi_psi (padding: both) b: eta_psi (padding: both)",
    }
    stored.assign(grid=((), 0, topology)).to_netcdf(path, engine="scipy")
    return found


def write_mitgcm(folder):
    """Write a global file of MITgcm as xmitgcm names it: faces before their centers."""
    x, y = np.arange(0, 360, 15.0), np.arange(-60, 61, 10.0)
    shift = {"c_grid_axis_shift": -0.5}
    u = np.broadcast_to(np.cos(np.radians(y + 5))[:, None], (13, 24))
    data = xarray.Dataset(
        {
            "UVEL": (("YC", "XG"), u, {"units": "m/s"}),
            "VVEL": (("YG", "XC"), 0 * u, {"units": "m/s"}),
        },
        {
            "XG": ("XG", x, {**EAST, **shift}),
            "XC": ("XC", x + 7.5, EAST),
            "YG": ("YG", y, {**NORTH, **shift}),
            "YC": ("YC", y + 5, NORTH),
        },
    )
    data.to_netcdf(folder / "state.nc", engine="scipy")


def write_ridge(folder, levels=6):
    """Write a file of ROMS with a flow over a ridge that stays on its levels."""
    lon, lat = np.meshgrid(np.arange(0, 4.01, 0.1), np.arange(0, 1.01, 0.1))
    h = lambda x: 1000 - 700 * np.exp(-(((x - 2) / 0.5) ** 2))
    rho = np.broadcast_to(h(np.arange(-0.05, 4.06, 0.1)), (12, 42))
    s = np.linspace(-1, 0, levels + 1)
    corners = (rho[1:, 1:] + rho[1:, :-1] + rho[:-1, 1:] + rho[:-1, :-1]) / 4
    # The same transport through every face of a column: nothing passes the levels.
    u = np.broadcast_to(500 / corners[0], (1, levels, 12, 41)).copy()
    dims = ("ocean_time", "s_rho")
    data = xarray.Dataset(
        {
            "u": ((*dims, "eta_u", "xi_u"), u, {"units": "m/s"}),
            "v": ((*dims, "eta_v", "xi_v"), np.zeros((1, levels, 11, 42)),
                  {"units": "m/s"}),
            "h": (("eta_rho", "xi_rho"), rho),
            "lon_psi": (("eta_psi", "xi_psi"), lon, EAST),
            "lat_psi": (("eta_psi", "xi_psi"), lat, NORTH),
            "Cs_w": ("s_w", s),
            "hc": ((), 0.0),
            "Vtransform": ((), 2),
        },
        {
            "ocean_time": ("ocean_time", [0.0], TIMES),
            "s_w": ("s_w", s),
            "s_rho": ("s_rho", (s[1:] + s[:-1]) / 2,
                      {"standard_name": "ocean_s_coordinate_g2", "positive": "up"}),
        },
    )  # fmt: skip
    data.to_netcdf(folder / "ridge.nc", engine="scipy")
    return lon[0], corners[0]


def test_terrain_following_levels_are_kept(tmp_path):
    x, depth = write_ridge(tmp_path)
    loaded = load_field(str(tmp_path / "ridge.nc"))
    assert "levels of transform 2" in " ".join(loaded.notes)
    shares = np.linspace(-0.99, -0.01, 9)
    seeds = np.stack([np.full(9, 0.73), np.full(9, 0.52), 0 * shares], 1)
    seeds[:, 2] = shares * np.interp(0.73, x, depth)
    seeds = seeds.astype("float32")
    ends = follow(loaded.field, seeds, np.linspace(0, 345600, 9), 144)[0].astype(float)
    assert ends[-1, 0, 0] > 2.2  # beyond the ridge
    found = ends[..., 2] / np.interp(ends[..., 0], x, depth)
    np.testing.assert_allclose(found, np.broadcast_to(shares, found.shape), atol=4e-3)
    assert (found >= -1 - 1e-6).all()
    data = xarray.open_dataset(tmp_path / "ridge.nc", decode_times=False)
    later = data.assign_coords(ocean_time=("ocean_time", [86400.0], TIMES))
    later.to_netcdf(tmp_path / "later.nc", engine="scipy")
    assert GridSlices(tmp_path).times.tolist() == [0, 86400]
    with pytest.raises(ValueError, match=r"needs h, s_w, .* \(Cs_w not found\)"):
        GridSlices(data.drop_vars("Cs_w"))


@pytest.mark.parametrize("kind", ["ROMS", "sigma"])
def test_tracers_are_sampled_on_levels_that_follow_the_terrain(kind):
    """A tracer that is the height itself, on levels whose heights are linear in h."""
    lon, lat = np.arange(5.0, 12), np.arange(40.0, 45)
    h = 200 + 30 * lon + 10 * lat[:, None]
    s = np.linspace(-0.9, -0.1, 5)
    z = h * s[:, None, None] ** 3
    named = {"Cs_r": ("s_rho", s**3), "hc": 0.0, "Vtransform": 2}
    levels = {"standard_name": "ocean_s_coordinate_g2"}
    dims = ("s_rho", "y", "x")
    if kind == "sigma":  # downward, straight axes, and a depth by its own name
        s = np.linspace(-0.1, -0.9, 5)
        z, dims, named = s[:, None, None] * h, ("lev", "y", "x"), {}
        terms = "sigma: lev eta: el depth: topo"
        levels = {"standard_name": "ocean_sigma_coordinate", "formula_terms": terms}
    data = xarray.Dataset(
        {"temp": (dims, z), "h": (dims[1:], h), **named},
        {
            "x": ("x", lon, EAST),
            "y": ("y", lat, NORTH),
            dims[0]: (dims[0], s, levels),
        },
    )
    data = data.rename(h="topo") if kind == "sigma" else data
    field = load_variable(data, "temp").field
    x, y, share = np.random.default_rng(2).uniform([6, 41, -1], [10, 43, 0], (40, 3)).T
    depth = 200 + 30 * x + 10 * y
    ends = [depth * (e if kind == "sigma" else e**3) for e in (-0.9, -0.1)]
    found = np.asarray(field.sample_at_positions(np.stack([x, y, share * depth], 1)))
    # Beyond the lowest and the highest level their values hold.
    np.testing.assert_allclose(found[:, 0], np.clip(share * depth, *ends), atol=0.02)
    with pytest.raises(ValueError, match=r"follow the terrain, which needs .* not fou"):
        load_variable(data.drop_vars("topo" if kind == "sigma" else "h"), "temp")


def test_a_c_grid_in_kilometers_is_flat_and_closed():
    edges, middle = np.linspace(0, 30, 13), np.linspace(1.25, 28.75, 12)
    stream = 4e3 * np.prod(np.sin(np.pi / 30 * np.stack(np.meshgrid(edges, edges))), 0)
    stream[3:6, 3:6] = 0  # an island of four cells
    u, v = -np.diff(stream, axis=0) / 25, np.diff(stream, axis=1) / 25
    named = {"U": (("Y", "Xp1"), u), "V": (("Yp1", "X"), v)}
    axes = {"Xp1": edges, "X": middle, "Yp1": edges, "Y": middle}
    data = xarray.Dataset(named, axes)
    for name in data.variables:
        data[name].attrs["units"] = "km" if name in axes else "cm/s"
    loaded = load_field(data)
    assert "land: 4 of 144 cells without any flow; particles there: beach" in (
        loaded.notes
    )
    assert "velocity in units of the axes per second" in loaded.notes
    seeds = np.random.default_rng(0).uniform(0, 30, (400, 2))
    places = np.pad(seeds, ((0, 0), (0, 1))).astype("float32")
    paths, status = follow(loaded.field, places, (0.0, 4e4), 400)
    island = (np.abs(seeds - 10) < 2.5).all(1)
    np.testing.assert_array_equal(status == ParticleStatus.BEACHED, island)
    ends = paths[-1, :, :2].astype(float)
    assert ((ends > -1e-5) & (ends < 30 + 1e-5)).all()
    assert not (np.abs(ends[~island] - 10) < 2.5 - 1e-5).all(1).any()
    own = RegularGridInterpolator((edges, edges), stream.T)  # bilinear in a cell
    kept = own(ends[~island].clip(0, 30)) - own(seeds[~island])
    assert np.quantile(np.abs(kept), 0.9) < 0.01 * 4e3  # kinks at the island
    assert np.median(np.linalg.norm(ends - seeds, axis=1)) > 3


@pytest.mark.parametrize("transform", [1, 2])
def test_heights_of_levels_are_those_of_cf(transform):
    s, curve = np.linspace(-1, 0, 5), -(np.linspace(1, 0, 5) ** 3)
    z = Stretching(s, curve, 20.0, transform).heights(np.array([100.0, -3]), 1.5)
    rest = 20 * s + (100 - 20) * curve
    expected = rest + 1.5 * (1 + rest / 100)
    if transform == 2:
        rest = (20 * s + 100 * curve) / (20 + 100)
        expected = 1.5 + (1.5 + 100) * rest
    np.testing.assert_allclose(z[0], expected)
    # A flat that is dry lies 3 m above zero, with 0.1 m of water left on it.
    np.testing.assert_allclose(z[1, [0, -1]], [3, 3.1])


@pytest.mark.parametrize("write", [write_nemo, write_roms, write_sgrid])
def test_faces_of_models_are_brought_to_their_cells(tmp_path, write):
    lon, lat, u, v = write(tmp_path)
    slices = GridSlices(sorted(tmp_path.glob("*.nc")), dtype="float64")
    grid = slices.geometry
    assert isinstance(grid, CurvilinearGrid)
    assert grid.faces
    np.testing.assert_array_equal(grid.x, lon)
    np.testing.assert_array_equal(grid.y, lat)
    values = slices.read(1)
    level = max(grid.z.size - 2, 0)
    np.testing.assert_allclose(values[:-1, :, level, 0], np.nan_to_num(u), atol=1e-12)
    np.testing.assert_allclose(values[:, :-1, level, 1], np.nan_to_num(v), atol=1e-12)
    assert slices.times.tolist() == [0.0, 864000.0]
    assert grid.z.tolist() == ([-30, -20, -10, 0] if write is write_nemo else [0])
    closed = np.isnan(u[:, 1:]) & np.isnan(u[:, :-1]) & np.isnan(v[1:] + v[:-1])
    assert grid.land is not None
    assert (grid.land[:-1, :-1, level] == closed).all()
    assert any("C-grid" in note for note in slices.notes())


def test_corners_lie_between_the_centers_that_croco_gives(tmp_path):
    lon, lat, *_ = write_roms(tmp_path)
    with xarray.open_dataset(tmp_path / "ocean_his.nc", decode_times=False) as data:
        croco = data.load().drop_vars(["lon_psi", "lat_psi"])
    half = 10 / 29, 8 / 24  # of a cell: centers are one more each way
    i, j = np.meshgrid(*(np.linspace(-n - h, n + h, c) for n, h, c in
                         zip((10, 8), half, (31, 26), strict=True)))  # fmt: skip
    croco["lon_rho"] = ("eta_rho", "xi_rho"), 10 + i * 0.9 - j * 0.4, EAST
    croco["lat_rho"] = ("eta_rho", "xi_rho"), 45 + i * 0.3 + j * 0.8, NORTH
    slices = GridSlices(croco)
    geometry = slices.geometry
    assert isinstance(geometry, CurvilinearGrid)
    np.testing.assert_allclose(geometry.x, lon, atol=0.005)
    np.testing.assert_allclose(geometry.y, lat, atol=0.005)
    assert "corners taken between the positions in the file" in slices.notes()


def test_a_global_c_grid_closes(tmp_path):
    write_mitgcm(tmp_path)
    field = load_field(str(tmp_path / "state.nc")).field
    points = np.array([[359.0, 2.0], [352.5, 45.0], [7.5, -30.0]])
    found = np.asarray(field(points))
    near = np.cos(np.radians(np.floor(points[:, 1] / 10) * 10 + 5))
    np.testing.assert_allclose(found[:, 0], near, rtol=0.02)


@pytest.mark.parametrize("model", ["xmitgcm", "MOM6"])
def test_levels_are_depths_although_a_dimension_counts(model):
    x, y, z = np.arange(10.0, 16), np.arange(30.0, 36), np.array([5.0, 20, 50])
    faces, one = np.array([0.0, 10, 30, 70]), np.ones((3, 5, 5))
    u, v, speed = one * np.array([3, 2, 1])[:, None, None], 0 * one, {"units": "m/s"}
    if model == "xmitgcm":  # heights below 0 that are called positive downward
        depth = {"units": "m", "positive": "down", "standard_name": "depth"}
        corners = np.meshgrid(x[:-1], y[:-1])
        coordinates = {
            "k": ("k", np.arange(3), {"axis": "Z", "standard_name": "z_grid_index"}),
            "Z": ("k", -z, depth),
            "Zp1": ("k_p1", -faces, {**depth, "standard_name": "depth_at_w_location"}),
            "XG": (("j_g", "i_g"), corners[0], EAST),
            "YG": (("j_g", "i_g"), corners[1], NORTH),
        }
        dims, named = (
            (("k", "j", "i_g"), ("k", "j_g", "i")),
            "faces between levels: Zp1",
        )
    else:
        down = {"units": "meter", "positive": "down"}
        coordinates = {
            "zl": ("zl", z, {**down, "edges": "zi", "long_name": "Layer depth, -z*"}),
            "zi": ("zi", faces, down),
            "xq": ("xq", x[1:], EAST),
            "xh": ("xh", x[1:] - 0.5, EAST),
            "yq": ("yq", y[1:], NORTH),
            "yh": ("yh", y[1:] - 0.5, NORTH),
        }
        dims, named = (
            (("zl", "yh", "xq"), ("zl", "yq", "xh")),
            "faces between levels: zi",
        )
    data = {"UVEL": (dims[0], u, speed), "VVEL": (dims[1], v, speed)}
    slices = GridSlices(xarray.Dataset(data, coordinates))
    assert isinstance(slices.geometry, CurvilinearGrid)
    np.testing.assert_array_equal(slices.geometry.z, -faces[::-1])
    np.testing.assert_array_equal(slices.read(0)[0, 0, :3, 0], [1, 2, 3])
    assert named in slices.notes()
    words = "free surface" if model == "MOM6" else "below 0, so it is not taken"
    assert words in slices.notes()[0]


def write_component(path, name, days, east=0.0, north=0.0, since=1):
    """Write a tenth of the day as u or v, from another day on in hours."""
    table = np.broadcast_to(np.array(days)[:, None, None], (len(days), 4, 5))
    unit, scale = ("days", 1) if since == 1 else ("hours", 24)
    clock = {"units": f"{unit} since 2001-01-{since:02}"}
    xarray.Dataset(
        {name: (("time", "lat", "lon"), table / 10.0, {"units": "m/s"})},
        {
            "time": ("time", scale * (np.array(days, float) + 1 - since), clock),
            "lat": ("lat", np.arange(4.0) + north, NORTH),
            "lon": ("lon", np.arange(5.0) + east, EAST),
        },
    ).to_netcdf(path, engine="scipy")


def test_series_of_components_are_paired_by_their_times(tmp_path):
    for name, runs in {"u": [[2, 3], [0, 1]], "v": [[3], [0, 1, 2]]}.items():
        for number, days in enumerate(runs):
            since = 3 if name == "v" else 1
            write_component(tmp_path / f"{name}_{number}.nc", name, days, since=since)
    slices = GridSlices(tmp_path)
    assert (slices.times / 86400).tolist() == [0, 1, 2, 3]
    for day in range(4):
        np.testing.assert_allclose(slices.read(day)[1, 1, 0, :2], day / 10, rtol=1e-6)
    write_component(tmp_path / "v_0.nc", "v", [4], since=3)
    with pytest.raises(ValueError, match=r"its times differ"):
        GridSlices(tmp_path)


def test_axes_of_components_in_separate_files_are_their_own(tmp_path):
    u, v = tmp_path / "u.nc", tmp_path / "v.nc"
    write_component(u, "u", [0, 1], east=0.5)
    write_component(v, "v", [0, 1], north=0.5)
    grid = GridSlices([u, v]).geometry
    assert grid.faces
    np.testing.assert_array_equal(grid.x[0], np.arange(5) + 0.5)
    np.testing.assert_array_equal(grid.y[:, 0], np.arange(4) + 0.5)
    for shift, words in (((0.0, 0.5), "'lat_v'"), ((2.5, 0.5), "nor half a cell")):
        write_component(u, "u", [0, 1])
        write_component(v, "v", [0, 1], *shift)
        with pytest.raises(ValueError, match=words):
            GridSlices([u, v])


def new_case(folder):
    """Return a case that the command makes for the files in a folder."""
    case = folder / "case.toml"
    files = [str(f) for f in sorted(folder.glob("*.nc"))]
    result = CliRunner().invoke(app, ["new", str(case), *files])
    assert result.exit_code == 0, result.output
    return case


def test_files_of_nemo_make_a_case(tmp_path):
    write_nemo(tmp_path)
    plan = make_plan(load_case(new_case(tmp_path)))
    assert 500 < plan.particles < 5000
    notes = " ".join(plan.notes)
    for words in ("C-grid (NEMO: glamf, gphif)", "are on land: dropped", "transports"):
        assert words in notes


@pytest.mark.slow
@pytest.mark.parametrize("write", [write_nemo, write_roms])
def test_files_of_models_run_as_a_new_case_says(tmp_path, write):
    write(tmp_path)
    result = CliRunner().invoke(app, ["run", str(new_case(tmp_path))])
    assert result.exit_code == 0, result.output
    store = next(tmp_path.glob("out/**/*.zarr"))
    paths = xarray.open_zarr(store, consolidated=False)
    assert paths["lon"].shape[0] > 100


def test_a_case_far_from_the_origin_runs_as_its_twin_at_the_origin(tmp_path):
    """A vortex in UTM meters, where single precision rounds to half a meter."""
    paths = {}
    for name, east, north in (("twin", 0, 0), ("utm", 5e5, 4.2e6)):
        (tmp_path / name).mkdir()
        axis = np.linspace(0, 2e4, 41)
        x, y = np.meshgrid(axis - 1e4, axis - 1e4)
        data = xarray.Dataset(
            {"u": (("y", "x"), -2e-5 * y, SPEED), "v": (("y", "x"), 2e-5 * x, SPEED)},
            {"x": ("x", axis + east, METERS), "y": ("y", axis + north, METERS)},
        )
        data.to_netcdf(tmp_path / name / "flow.nc", engine="scipy")
        text = new_case(tmp_path / name).read_text()
        assert ('dtype = "float64"' in text) == (name == "utm")
        text = text.replace('dtype = "float32"', 'dtype = "float64"')
        (tmp_path / name / "case.toml").write_text(text)
        case = str(tmp_path / name / "case.toml")
        result = CliRunner().invoke(app, ["run", case])
        assert result.exit_code == 0, result.output
        store = next((tmp_path / name).glob("out/**/*.zarr"))
        found = xarray.open_zarr(store, consolidated=False)
        paths[name] = [found[c].values - o for c, o in (("x", east), ("y", north))]
    assert np.isfinite(paths["twin"]).mean() > 0.5
    np.testing.assert_allclose(paths["utm"], paths["twin"], atol=1e-6)


def test_what_is_not_a_whole_c_grid_is_refused(tmp_path):
    write_nemo(tmp_path)
    u, v = (str(tmp_path / f"run_grid_{p}.nc") for p in "UV")
    late = xarray.open_dataset(v, decode_times=False)
    late = late.assign_coords(time_counter=late["time_counter"] + 1)
    late.to_netcdf(tmp_path / "late.nc", engine="scipy")
    with pytest.raises(ValueError, match=r"late.nc: its times differ from those of"):
        GridSlices([u, str(tmp_path / "late.nc")])
    data = xarray.open_dataset(u, decode_times=False)
    data["vomecrty"] = data["vozocrtx"]
    data["depthu"].attrs = {"standard_name": "ocean_s_coordinate_g2"}
    with pytest.raises(ValueError, match="follow the terrain, which needs h"):
        GridSlices(data)
