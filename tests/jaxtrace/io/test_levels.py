"""Levels with heights of their own: below a free surface, and over thin cells."""

import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

import jaxtrace as jt
from jaxtrace.cli import app
from jaxtrace.fields.base import moment, sample
from jaxtrace.fields.curved_grid import CurvilinearGrid, cell_areas
from jaxtrace.io.loader import load_field
from jaxtrace.io.netcdf import GridSlices
from jaxtrace.tracking import create_tracker
from jaxtrace.workflow.case import load_case
from jaxtrace.workflow.prepare import make_plan
from trace_ocean import follow

xarray = pytest.importorskip("xarray")
EAST, NORTH = {"units": "degrees_east"}, {"units": "degrees_north"}
TIMES = {"units": "seconds since 2020-01-01"}
SPEED, METERS = {"units": "m/s"}, {"units": "m"}
HOURS = np.arange(0, 43201, 3600.0)
SHARES = np.linspace(-0.95, -0.02, 6)


def depth(x, y):
    return 100 + 30 * x + 10 * y


def surface(x, y, t):
    return 0.3 * x - 0.2 * y + 2e-4 * t


def at_shares(x=0.33, y=0.52):
    """Return seeds at shares of the water of the first instant."""
    x, y = np.full(6, x), np.full(6, y)
    zeta = surface(x, y, 0)
    return np.stack([x, y, zeta + SHARES * (depth(x, y) + zeta)], 1)


def shares_of(positions, t):
    x, y, z = np.moveaxis(positions, -1, 0)
    zeta = surface(x, y, t)
    return (z - zeta) / (depth(x, y) + zeta)


def roms(u=0.0, transform=2, levels=8):
    """Return a C-grid of ROMS in a rising tide, with the same speed everywhere."""
    lon, lat = np.meshgrid(np.arange(0, 1.01, 0.1), np.arange(0, 1.01, 0.1))
    x, y = np.meshgrid(np.arange(-0.05, 1.06, 0.1), np.arange(-0.05, 1.06, 0.1))
    s = np.linspace(-1, 0, levels + 1)
    dims = ("ocean_time", "s_rho")
    shape = (HOURS.size, levels, 12, 12)
    zeta = surface(x, y, HOURS[:, None, None])
    return xarray.Dataset(
        {
            "u": ((*dims, "eta_u", "xi_u"), np.full(shape, u)[..., 1:], SPEED),
            "v": ((*dims, "eta_v", "xi_v"), np.zeros(shape)[:, :, 1:], SPEED),
            "zeta": (("ocean_time", "eta_rho", "xi_rho"), zeta),
            "h": (("eta_rho", "xi_rho"), depth(x, y)),
            "lon_psi": (("eta_psi", "xi_psi"), lon, EAST),
            "lat_psi": (("eta_psi", "xi_psi"), lat, NORTH),
            "Cs_w": ("s_w", -(np.abs(s) ** 1.7)),
            "hc": ((), 20.0),
            "Vtransform": ((), transform),
        },
        {
            "ocean_time": ("ocean_time", HOURS, TIMES),
            "s_w": ("s_w", s),
            "s_rho": ("s_rho", (s[1:] + s[:-1]) / 2),
        },
    )


def mesh(sides=11):
    """Return nodes and triangles of a square degree."""
    axis = np.linspace(0, 1, sides)
    x, y = (a.ravel() for a in np.meshgrid(axis, axis))
    first = np.arange(sides**2).reshape(sides, sides)
    a, b, c, d = first[:-1, :-1], first[:-1, 1:], first[1:, :-1], first[1:, 1:]
    faces = np.stack([[a, b, c], [b, d, c]], -1).reshape(3, -1, 2)
    return x, y, faces.reshape(3, -1).T


def fvcom(u=0.0, rise=True, vary=0.1):
    x, y, faces = mesh()
    # Shares of the depth may differ from node to node.
    share = -(np.linspace(0.05, 0.95, 10)[:, None] ** (1 + vary * x))
    at_faces = share[:, faces].mean(-1)
    dims, whole = ("time", "siglay", "nele"), np.ones((HOURS.size, 10, len(faces)))
    data = {
        "nv": (("three", "nele"), (faces + 1).T),
        "lon": ("node", x, EAST),
        "lat": ("node", y, NORTH),
        "h": ("node", depth(x, y)),
        "zeta": (("time", "node"), surface(x, y, HOURS[:, None])),
        "siglay": (("siglay", "node"), share),
        "u": (dims, u * whole, SPEED),
        "v": (dims, 0 * whole, SPEED),
    }
    if rise:
        data["ww"] = (dims, 2e-4 * (1 + at_faces) * whole, SPEED)
    return xarray.Dataset(data, {"time": ("time", HOURS, TIMES)})


def schism(folder, new):
    """Write files of SCHISM whose upper levels move and whose lower ones do not.

    The old layout is one file in degrees, the new one a file per variable in meters.
    """
    x, y, faces = mesh()
    mid = -depth(x, y) / 2
    zeta = surface(x, y, HOURS[:, None])
    s = np.linspace(0, 1, 5)
    low = np.broadcast_to((mid[:, None] * (2 - s)), (HOURS.size, x.size, 5))
    high = mid[:, None] + s[1:] * (zeta - mid)[..., None]
    z = np.concatenate([low, high], -1)
    w = np.concatenate([0 * low, 2e-4 * s[1:] + 0 * high], -1)
    none = (x > 0.7)[:, None] & (np.arange(9) < 2)
    z, w = np.where(none, np.nan, z), np.where(none, np.nan, w)
    hgrid = "SCHISM_hgrid"
    node, face = f"n{hgrid}_node", f"n{hgrid}_face"
    places = {"axis": "X", "units": "degrees_E", "standard_name": "longitude"}
    scale = 111195.08 if new else 1
    said = [{}, {}] if new else [places, places | {"axis": "Y", "units": "degrees_N"}]
    said[1].pop("standard_name", None)
    base = {
        f"{hgrid}_node_x": (node, scale * x, said[0]),
        f"{hgrid}_node_y": (node, scale * y, said[1]),
        f"{hgrid}_face_nodes": ((face, "four"), np.pad(faces + 1, ((0, 0), (0, 1)))),
        "depth": (node, depth(x, y)),
    }
    dims = ("time", node, "nSCHISM_vgrid_layers")
    time = {"time": ("time", HOURS, TIMES)}
    if not new:
        vectors = {"hvel": ((*dims, "two"), np.zeros((*z.shape, 2)))}
        vectors |= {"vertical_velocity": (dims, w), "zcor": (dims, z)}
        flags = {"wetdry_elem": (("time", face), np.zeros((13, len(faces))))}
        data = xarray.Dataset({**base, **vectors, **flags}, time)
        data.to_netcdf(folder / "schout_1.nc", engine="scipy")
        return
    more = {
        "horizontalVelX": (dims, 0 * z),
        "horizontalVelY": (dims, 0 * z),
        "verticalVelocity": (dims, w),
        "zCoordinates": (dims, z),
        "out2d": (("time", node), zeta),
    }
    for name, one in more.items():
        own = base if name == "out2d" else {}
        data = xarray.Dataset({name.replace("out2d", "elevation"): one, **own}, time)
        data.to_netcdf(folder / f"{name}_1.nc", engine="scipy")


@pytest.mark.parametrize("new", [False, True])
def test_levels_of_schism_are_where_the_file_has_them(tmp_path, double, new):
    schism(tmp_path, new)
    loaded = load_field(tmp_path, dtype="float64", geometry="flat" if new else None)
    assert "levels at the heights z" in " ".join(loaded.notes)
    if new:  # files that only together are a flow
        files = sorted(map(str, tmp_path.glob("*.nc")))
        told = CliRunner().invoke(app, ["info", *files])
        assert told.exit_code == 0, told.output
        assert "velocity: horizontalVelX, horizontalVelY, verticalVelocity" in (
            " ".join(told.output.split())
        )
    x, y = 0.33, 0.52
    mid, zeta = -depth(x, y) / 2, surface(x, y, HOURS[[0, -1]])
    share = np.array([0.0, 0.2, 0.5, 0.99])
    before, after = (mid + share * (end - mid) for end in zeta)
    seeds = np.stack([np.full(5, x), np.full(5, y), [1.7 * mid, *before]], 1)
    seeds[:, :2] *= 111195.08 if new else 1
    ends = follow(loaded.field, seeds, HOURS, 2, "rk4")[0][-1]
    np.testing.assert_allclose(ends[:, 2], [1.7 * mid, *after], atol=1e-6)


def test_a_case_says_what_the_files_of_a_mesh_do_not(tmp_path):
    schism(tmp_path, False)
    data = xarray.open_dataset(tmp_path / "schout_1.nc", decode_times=False).load()
    for way in "xy":
        data[f"SCHISM_hgrid_node_{way}"].attrs.clear()
    data["hvel"].attrs["units"] = "furlongs"
    (tmp_path / "bare").mkdir()
    data.to_netcdf(tmp_path / "bare" / "schout_1.nc", engine="scipy")
    new = ["new", str(tmp_path / "case.toml"), str(tmp_path / "bare" / "schout_1.nc")]
    for rule, remedy in (("may be degrees", "--geometry sphere or flat"),
                         ("'furlongs' of", "--velocity-units one of m/s")):  # fmt: skip
        failed = CliRunner().invoke(app, new)
        assert rule in str(failed.exception)
        assert remedy in str(failed.exception)
        new += ["--geometry", "sphere"] if "degrees" in rule else []
    done = CliRunner().invoke(app, [*new, "--velocity-units", "cm/s"])
    assert done.exit_code == 0, done.output
    text = (tmp_path / "case.toml").read_text()
    assert '\ngeometry = "sphere"' in text
    assert '\nvelocity_units = "cm/s"' in text
    # Components of a vector are found again, and what is below the floor is left out.
    deep = text.replace("z = [0.999, 1.0]", "z = [0.15, 0.2]")
    (tmp_path / "case.toml").write_text(deep)
    notes = " ".join(make_plan(load_case(tmp_path / "case.toml")).notes)
    assert "hvel_x, hvel_y, vertical_velocity" in notes
    assert "particles are below the floor: dropped" in notes


def test_nothing_flows_where_elements_are_dry(tmp_path):
    schism(tmp_path, False)
    data = xarray.open_dataset(tmp_path / "schout_1.nc", decode_times=False)
    data["hvel"][:] = 1.0
    data["wetdry_elem"][3:, :100] = 1
    slices = GridSlices(data)
    speed = slices.read_slice(3)[1][:, 0, 4, 0].reshape(11, 11)
    np.testing.assert_array_equal(speed[:, 3], [0] * 5 + [1] * 6)
    assert (slices.read_slice(2)[1][..., 0] == 1).all()
    for way in "xy":
        data[f"SCHISM_hgrid_node_{way}"].attrs.clear()
    with pytest.raises(ValueError, match="no units, and may be degrees or meters"):
        GridSlices(data)
    sphere = GridSlices(data, geometry="sphere").read_slice(2)[1]
    np.testing.assert_array_equal(sphere, slices.read_slice(2)[1])


@pytest.mark.parametrize(
    ("data", "speed", "close"),
    [
        (roms(transform=1), 0, 1e-6),
        (roms(transform=2), 0, 1e-6),
        (roms(u=0.5), 0.5, 2e-5),
        (fvcom(rise=False), 0, 2e-6),
        (fvcom(u=0.5, rise=False, vary=0), 0.5, 2e-5),
        (fvcom(), 0, 2e-3),  # above the highest center its w holds
    ],
    ids=["ROMS 1", "ROMS 2", "over a slope", "FVCOM", "mesh over a slope", "FVCOM ww"],
)
def test_water_that_rises_with_the_tide_keeps_its_share_of_the_depth(
    double, data, speed, close
):
    """Levels are linear in time and nearly so in space, as the interpolant is."""
    field = load_field(data, dtype="float64").field
    paths, status = follow(field, at_shares(), HOURS[::4], 8, "rk4")
    assert not status.any()
    way = speed * HOURS[-1] / 111195.08
    np.testing.assert_allclose(paths[-1, :, 0] - 0.33, way, atol=4e-3 * way)
    for t, found in zip(HOURS[::4], paths, strict=True):
        np.testing.assert_allclose(shares_of(found, t), SHARES, atol=close)
    assert np.ptp(paths[:, -1, 2]) > 5  # the tide itself is 8.64 m


def test_nobody_is_above_the_moving_surface_or_below_the_floor(double):
    seeds = at_shares()
    seeds[:3, 2], seeds[3:, 2] = 50, -500
    ends = follow(load_field(roms(), dtype="float64").field, seeds, HOURS, 1)[0][-1]
    np.testing.assert_allclose(
        shares_of(ends, HOURS[-1]), [0] * 3 + [-1] * 3, atol=1e-9
    )


def test_a_record_in_parts_moves_its_levels_alike(small_parts):
    # The fixture resets the memory limit in the end.
    whole = load_field(roms(u=0.5))
    jt.configure(memory_limit_gb=5 * 4 * 4 * 11 * 11 * 9 * 4 / 2**30)
    parts = load_field(roms(u=0.5))
    assert (whole.streamed, parts.streamed) == (False, True)
    tracks = [
        create_tracker("rk2", x.field, None).track_particles(
            at_shares(), (0.0, HOURS[-1]), n_timesteps=7, dt=1800.0
        )
        for x in (whole, parts)
    ]
    np.testing.assert_array_equal(*(track.positions for track in tracks))


def test_slices_that_are_blended_at_once_move_alike(double):
    field = load_field(roms(u=0.5), dtype="float64").field.frozen
    instant = moment(field, 5000.0)
    one, now = field.at_instant(instant, 10**6)
    assert one.values.shape[0] == 1
    places = jnp.asarray(at_shares())
    found, expected = sample(one, places, now), sample(field, places, instant)
    assert np.asarray(expected)[-1, 2] > 1.9e-4
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("stated", ["depth", "bedlevel"])
def test_columns_on_faces_are_averaged_to_nodes(stated):
    """D-Flow FM has the surface and the depth on faces, and shares by a name."""
    x, y, faces = mesh()
    whole = np.ones((HOURS.size, len(faces), 4))
    zeta = 2e-4 * HOURS[:, None] * whole[..., 0]
    terms = f"sigma: shares eta: s1 {stated}: column"
    column = -30 * whole[0, :, 0] if stated == "bedlevel" else 30 + zeta
    dims = ("face",) if stated == "bedlevel" else ("time", "face")
    topology = {
        "cf_role": "mesh_topology",
        "node_coordinates": "nx ny",
        "face_node_connectivity": "corners",
        "face_dimension": "face",
    }
    shares = {"standard_name": "ocean_sigma_coordinate", "formula_terms": terms}
    data = xarray.Dataset(
        {
            "mesh": ((), 0, topology),
            **{"nx": ("node", 1e5 * x, METERS), "ny": ("node", 1e5 * y, METERS)},
            "corners": (("face", "three"), faces),
            "ucx": (("time", "face", "layer"), 0.1 * whole, SPEED),
            "ucy": (("time", "face", "layer"), 0.0 * whole, SPEED),
            **{"s1": (("time", "face"), zeta), "column": (dims, column)},
            "shares": ("layer", [-0.9, -0.6, -0.3, -0.1], shares),
        },
        {"time": ("time", HOURS, TIMES)},
    )
    z = GridSlices(data).read_slice(5)[1][..., 3].squeeze()
    expected = 3.6 + 33.6 * np.array([-1, -0.9, -0.6, -0.3, -0.1, 0])
    np.testing.assert_allclose(z, np.tile(expected, (x.size, 1)), rtol=1e-5)


def test_what_moves_the_levels_is_said():
    words = lambda data: "; ".join(GridSlices(data).notes())
    assert "levels follow the surface zeta" in words(roms())
    assert "levels at rest: there is no zeta" in words(roms().drop_vars("zeta"))
    other = roms().isel(eta_rho=slice(0, 5)).rename(eta_rho="elsewhere")["zeta"]
    assert "zeta ('ocean_time', 'elsewhere'" in words(
        roms().drop_vars("zeta").assign(zeta=other)
    )


DEPTHS = np.array([0.0, 10, 30, 60, 100, 150])
FLOORS = 40 + 100 * np.abs(np.sin(0.7 * np.arange(12)))  # of columns of cells


def over_steps():
    """Return corners and, by level and column, thickness, stream function, transports.

    Cell c lies between the corners c - 1 and c; what flows, flows along x and up.
    """
    wet = DEPTHS[:-1, None] < FLOORS
    cells = np.where(wet, np.minimum(DEPTHS[1:, None], FLOORS) - DEPTHS[:-1, None], 0)
    faces = np.minimum(cells, np.roll(cells, -1, 1))
    faces[:, [0, -1]] = 0
    psi = np.zeros((6, 12))
    inner = (faces[1:] > 0) & (faces[:-1] > 0)
    psi[1:-1][inner] = np.random.default_rng(0).uniform(2, 5, inner.sum())
    along, up = psi[1:] - psi[:-1], np.diff(psi, axis=1, prepend=0)
    return cells, faces, psi, along / np.where(faces > 0, faces, np.nan), up


def stepped(model):
    """Return a flow over thin bottom cells in the layout of NEMO or of MITgcm."""
    cells, faces, _, u, up = over_steps()
    lon, lat = np.meshgrid(0.1 * np.arange(12), 0.1 * np.arange(5))
    grid = CurvilinearGrid(lon, lat, np.zeros(1), 6371008.8, faces=True)
    per = np.zeros((5, 12))
    per[1:, 1:] = grid.spacing()[1][0, 0] / cell_areas(grid)[:-1, :-1]
    rows = lambda table: np.repeat(table[:, None], 5, 1)
    w, v = rows(up[:-1]) * per, np.where(np.isnan(rows(u)), np.nan, 0)
    middle = (DEPTHS[1:] + DEPTHS[:-1]) / 2
    if model == "NEMO":
        down = {"units": "m", "positive": "down"}
        of = lambda letter: ("time_counter", f"depth{letter}", "y", "x")
        # Below the floor the thickness is that of whole cells.
        e3t = np.where(cells > 0, cells, np.diff(DEPTHS)[:, None])
        variables = {
            "vozocrtx": (of("u"), rows(u)[None], SPEED),
            "vomecrty": (of("v"), v[None], SPEED),
            "vovecrtz": (of("w"), w[None], SPEED),
            **{"glamf": (("y", "x"), lon), "gphif": (("y", "x"), lat)},
            "e3t_0": (("nav_lev", "y", "x"), rows(e3t)),
            "mbathy": (("y", "x"), (rows(cells) > 0).sum(0)),
        }
        levels = zip("uvw", (middle, middle, DEPTHS[:-1]), strict=True)
        axes = {f"depth{n}": (f"depth{n}", z, down) for n, z in levels}
        axes["time_counter"] = ("time_counter", [0.0], TIMES)
        return xarray.Dataset(variables, axes)
    # Cells come after their first corner.
    ahead = lambda table: np.roll(table, -1, -1)
    shift = {"c_grid_axis_shift": -0.5}
    thick = np.diff(DEPTHS)[:, None]
    return xarray.Dataset(
        {
            "UVEL": (("Z", "YC", "XG"), rows(u), SPEED),
            "VVEL": (("Z", "YG", "XC"), ahead(v), SPEED),
            "WVEL": (("Zl", "YC", "XC"), ahead(np.roll(w, -1, 1)), SPEED),
            "hFacC": (("Z", "YC", "XC"), ahead(rows(cells / thick))),
            "hFacW": (("Z", "YC", "XG"), rows(faces / thick)),
            "drF": ("Z", thick[:, 0]),
        },
        {
            "Z": ("Z", -middle, {"units": "m", "positive": "up"}),
            "Zl": ("Zl", -DEPTHS[:-1], {"units": "m", "positive": "up"}),
            "XG": ("XG", lon[0], {**EAST, **shift}),
            "XC": ("XC", lon[0] + 0.05, EAST),
            "YG": ("YG", lat[:, 0], {**NORTH, **shift}),
            "YC": ("YC", lat[:, 0] + 0.05, NORTH),
        },
    )


def within_steps(x, z):
    """Return the stream function at positions, and how far these are above the floor.

    It is bilinear in a cell, between corners at the mean of the floors beside them.
    """
    cells, _, psi, _, _ = over_steps()
    wet, bottom = cells > 0, -DEPTHS[:-1, None] - cells
    beside = lambda table: np.stack([np.roll(table, -1, -1), table])
    open_ = beside(wet)
    open_[1, :, 0] = open_[0, :, -1] = False  # there are no cells beyond the ends
    mean = np.where(open_, beside(bottom), 0).sum(0) / np.maximum(open_.sum(0), 1)
    faces = np.where(open_.any(0), mean, -DEPTHS[1:, None])
    faces = np.concatenate([np.zeros((1, 12)), faces])
    cell = np.clip((x / 0.1).astype(int) + 1, 1, 11)
    xi = x / 0.1 - (cell - 1)
    mix = lambda table: table[:, cell - 1] * (1 - xi) + table[:, cell] * xi
    z_faces, psi = mix(faces), mix(psi)
    lowest = (cells[:, cell] > 0).sum(0)
    found = [np.interp(-a, -b, c) for a, b, c in zip(z, z_faces.T, psi.T, strict=True)]
    return np.array(found), z - z_faces[lowest, np.arange(x.size)]


@pytest.mark.parametrize("model", ["NEMO", "MITgcm"])
def test_what_flows_over_thin_cells_keeps_its_stream_function(double, model):
    loaded = load_field(stepped(model), dtype="float64")
    assert "thin cells at the bottom" in " ".join(loaded.notes)
    x, z = np.random.default_rng(1).uniform([0.02, -135], [0.98, -1], (400, 2)).T
    psi, above = within_steps(x, z)
    x, z, psi = (a[(above > 1) & (psi > 0.5)] for a in (x, z, psi))
    assert x.size > 100
    seeds = np.stack([x, np.full(x.size, 0.23), z], 1)
    paths, status = follow(loaded.field, seeds, np.linspace(0, 1e6, 6), 100, "rk4")
    assert not status.any()
    assert np.ptp(paths[..., 2], axis=0).mean() > 30
    found = [within_steps(p[:, 0], p[:, 2]) for p in paths]
    # Steps across the kinks between cells are of first order.
    off = np.abs(found[-1][0] - psi)
    assert off.max() < 0.4
    assert np.median(off) < 0.05
    assert min(above.min() for _, above in found) > 0
