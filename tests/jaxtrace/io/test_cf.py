"""Geophysical files as they circulate: attributes, units, signs, calendars, seams."""

from typing import Any

import numpy as np
import pytest

from jaxtrace.fields.interpolation import TensorGrid
from jaxtrace.io.cf import (
    canonical,
    label_dimensions,
)
from jaxtrace.io.decoding import read_values
from jaxtrace.io.formats import open_slices
from jaxtrace.io.loader import load_field, load_variable
from jaxtrace.io.netcdf import GridSlices
from jaxtrace.sphere import EARTH_RADIUS, great_circle
from jaxtrace.tracking import create_tracker
from jaxtrace.tracking.boundaries.base import Open
from jaxtrace.tracking.motion import Diffusion
from jaxtrace.types import ParticleStatus
from jaxtrace.workflow.case import read_case
from jaxtrace.workflow.prepare import make_plan

xarray = pytest.importorskip("xarray")
LON, LAT = np.arange(0, 360, 10.0), np.arange(-85, 86, 10.0)
EAST, NORTH = {"units": "degrees_east"}, {"units": "degrees_north"}
DEPTH = {"units": "m", "positive": "down", "standard_name": "depth"}
DAYS = {"units": "days since 2001-02-27 12:00", "calendar": "standard"}


def ocean(
    lon: Any = LON,
    lat: Any = LAT,
    u: Any = 1.0,
    v: Any = 0.0,
    units: str | None = "m s-1",
    time: Any = (0.0, 2.0),
    **names: Any,
) -> Any:
    """Return a current of constant components on a grid without levels."""
    shape = (len(time), len(lat), len(lon))
    dims = ("time", "lat", "lon")
    table = {}
    for name, value, way in (("uo", u, "eastward"), ("vo", v, "northward")):
        standard = {"standard_name": f"{way}_sea_water_velocity"}
        attributes = {"units": units, **standard} if units else standard
        table[name] = (dims, np.broadcast_to(value, shape).copy(), attributes)
    coordinates = {
        "time": ("time", np.asarray(time), names.get("dates", DAYS)),
        "lat": ("lat", np.asarray(lat), names.get("north", NORTH)),
        "lon": ("lon", np.asarray(lon), names.get("east", EAST)),
    }
    return xarray.Dataset(table, coordinates)


def levels(w="upward_sea_water_velocity", unit="m/s", axis=DEPTH, depth=(5.0, 15.0)):
    """Return still water that rises or sinks, on two levels."""
    data = ocean(u=0.0).expand_dims(depth=list(depth), axis=1)
    data["depth"].attrs.update(axis)
    data["wo"] = data["uo"] + 1.0
    data["wo"].attrs = {"units": unit, "standard_name": w}
    return data


def test_a_file_in_degrees_is_tracked_in_meters(tmp_path):
    ocean(lat=LAT[::-1]).to_netcdf(tmp_path / "a.nc", engine="scipy")
    loaded = load_field(str(tmp_path / "a.nc"))
    tracker = create_tracker("rk4", loaded.field, None)
    paths = tracker.track_particles(
        [[359.99, 60.0], [10.0, 0.0]], (0.0, 7200.0), n_timesteps=3
    )
    expected = np.degrees(7200 / EARTH_RADIUS / np.cos(np.radians([60.0, 0.0])))
    moved = (paths.positions[-1, :, 0] - paths.positions[0, :, 0]) % 360
    np.testing.assert_allclose(moved, expected, atol=5e-5)
    np.testing.assert_allclose(paths.positions[-1, :, 1], [60, 0], atol=1e-5)
    np.testing.assert_allclose(paths.compute_path_length(), 7200.0, rtol=1e-3)
    assert paths.metadata["coordinate_system"] == "spherical"
    assert paths.metadata["time_units"] == "seconds since 2001-02-27 12:00:00"
    note = next(n for n in loaded.notes if n.startswith("sphere"))
    for fact in ("36 x 18 x 1", "6,371,008.8 m", "m/s", "longitudes wrap", "standard"):
        assert fact in note
    with pytest.raises(ValueError, match=r"lies beyond the record, .* 0 to 172800"):
        tracker.track_particles([[0.0, 0.0]], (0.0, 2e5), n_timesteps=2)


@pytest.mark.parametrize(
    ("spelling", "unit"),
    [
        *(("m s-1", "m/s"), ("m s**-1", "m/s"), ("meter second-1", "m/s")),
        *(("m.s-1", "m/s"), ("metre/second", "m/s"), ("ms-1", "m/s")),
        *(("meters per second", "m/s"), ("cm s^-1", "cm/s"), ("Pa s**-1", "pa/s")),
        *(("millibars", "millibars"), ("hPa", "hpa"), ("furlong", "furlong")),
        *(("m s^{-1}", "m/s"), ("m·s-1", "m/s"), ("kilometer/hour", "km/h")),
    ],
)
def test_units_have_one_spelling(spelling, unit):
    assert canonical(spelling) == unit


@pytest.mark.parametrize(
    ("first", "second", "attribute"),
    [
        ("sea_water_x_velocity_at_u_location", "sea_water_y_velocity_at_v_location", 1),
        ("sea_ice_x_velocity", "sea_ice_y_velocity", 1),
        ("barotropic_eastward_sea_water_velocity",
         "barotropic_northward_sea_water_velocity", 1),
        ("ubar", "vbar", 0),
        ("current_u", "current_v", 0),
        ("UGRD_10maboveground", "VGRD_10maboveground", 0),
        ("wind_zonal", "wind_meridional", 0),
    ],
)  # fmt: skip
def test_velocities_are_known_by_standard_names_or_pairs(first, second, attribute):
    names = ("a", "b") if attribute else (first, second)
    data = ocean(u=0.5).rename(uo=names[0], vo=names[1])
    for name, standard in zip(names, (first, second), strict=True):
        stated = {"standard_name": standard} if attribute else {}
        data[name].attrs = {"units": "m/s", **stated}
    assert GridSlices(data).velocity_name == f"{names[0]}, {names[1]}"
    if not attribute:  # two pairs are no answer
        data["u_tide"], data["v_tide"] = data[first], data[second]
        gusts = ocean(u=0.5).rename(uo="gust_u", vo="gust_v")
        for name in gusts:
            gusts[name].attrs.pop("standard_name", None)
        for none in (data, gusts):
            with pytest.raises(ValueError, match="no two or three velocity variables"):
                GridSlices(none)


def test_a_vector_variable_is_its_components():
    data = ocean(u=0.5, v=0.25)
    both = np.stack([data["uo"].values, data["vo"].values], -1)
    whole = data.drop_vars(["uo", "vo"]).assign(
        velocity=((*data["uo"].dims, "two"), both, {"units": "cm/s"})
    )
    for name in (None, "velocity"):
        slices = GridSlices(whole, velocity_field_name=name)
        assert slices.velocity_name == "velocity_x, velocity_y"
        np.testing.assert_allclose(slices.read(0)[3, 4, 0], [0.005, 0.0025, 0])


@pytest.mark.parametrize("packed", [False, True])
def test_values_beyond_the_valid_range_are_missing(tmp_path, packed):
    data = ocean(u=0.5)
    data["uo"][:, 3, 4] = 9.0
    data["uo"][:, 5, 6] = 5.0  # the limit itself
    limits = np.array([-5000, 5000], "i2") if packed else np.array([-5.0, 5.0])
    data["uo"].attrs["valid_range"] = limits
    packing = {"dtype": "i2", "scale_factor": 0.001, "_FillValue": -32767}
    path = tmp_path / "a.nc"
    encoding = {"uo": packing} if packed else {}
    data.to_netcdf(path, engine="h5netcdf", encoding=encoding)
    slices = GridSlices(path)
    found = slices.read(0)[..., 0, 0]
    np.testing.assert_allclose([found[4, 3], found[6, 5]], [0, 5], rtol=1e-6)
    assert "land: 1 of 648 nodes masked; particles there: beach" in slices.notes()
    if not packed:
        data["uo"].attrs = {**data["uo"].attrs, "valid_max": 1.0}
        del data["uo"].attrs["valid_range"]
        assert "land: 2 of 648" in " ".join(GridSlices(data).notes())


@pytest.mark.parametrize(
    ("limits", "scale", "kept"),
    [
        ({"valid_min": -10, "valid_max": 10}, 1e-3, 3),  # in either reading
        ({"valid_range": [-10, 10]}, 1e-3, 3),
        ({"valid_range": "-0.6, 0.6"}, 1e-3, 2),
        ({"valid_range": np.array([-600, 600], "i2")}, 1e-3, 2),
        ({"valid_range": np.array([-600, 600], "i2")}, -1e-3, 2),
        ({"valid_min": np.float32(0.55)}, 1e-3, 1),
    ],
)
def test_limits_are_packed_if_they_have_the_packed_type(limits, scale, kept):
    made = xarray.Variable("x", [0.5, 0.3, 5.0], limits)
    made.encoding = {"dtype": "i2", "scale_factor": scale}
    assert np.isfinite(read_values(made)).sum() == kept


@pytest.mark.parametrize("limits", ["low", [1, 2, 3]])
def test_limits_that_are_no_two_numbers_are_named(limits):
    made = xarray.DataArray([0.5], name="uo", attrs={"valid_range": limits})
    with pytest.raises(ValueError, match=r"valid range of 'uo' is stated as"):
        read_values(made)


def test_an_axis_that_happens_to_count_is_what_it_is_called():
    data = ocean(u=0.5)
    count = data.sizes["time"]
    data = data.assign_coords(time=np.arange(count))
    about = {"long_name": "mean height of the sea surface", "units": "m"}
    data["zeta"] = ("time", np.linspace(0.5, 0.1, count), about)
    data["pressure"] = ("time", np.linspace(1.0, 2.0, count), {"units": "dbar"})
    np.testing.assert_array_equal(label_dimensions(data)["time"], np.arange(count))


def test_speeds_are_converted_and_unknown_ones_named():
    assert GridSlices(ocean(u=30.0, units="cm s-1")).read(0)[0, 0, 0, 0] == (
        pytest.approx(0.3)
    )
    with pytest.raises(ValueError, match=r"'furlong' of 'uo' .* velocity_units="):
        GridSlices(ocean(units="furlong"))
    with pytest.raises(ValueError, match=r"units 'rods' of 'uo' .* velocity_units="):
        GridSlices(ocean(), velocity_units="rods")
    given = GridSlices(ocean(u=30.0, units=None), velocity_units="cm/s")
    assert given.read(0)[0, 0, 0, 0] == pytest.approx(0.3)
    assert "uo has no units: m/s assumed" in GridSlices(ocean(units=None)).notes()
    assert GridSlices(ocean(units="degrees/s")).geometry.radius is None
    assert GridSlices(ocean(), geometry="flat").geometry.radius is None
    with pytest.raises(ValueError, match="1e\\+20 m/s is above 50 m/s, a fill value"):
        GridSlices(ocean(u=1e20)).read(0)
    with pytest.raises(
        ValueError, match=r"uo is 1e\+20 at most, a fill value that the"
    ):
        load_variable(ocean(u=1e20), "uo")


@pytest.mark.parametrize(
    ("east", "north"),
    [
        ({"units": "degree_E"}, {"units": "degreesN"}),
        ({"standard_name": "longitude"}, {"standard_name": "latitude"}),
        ({"units": "degrees_east", "axis": "X"}, {"units": "degree_north"}),
        ({"_CoordinateAxisType": "Lon"}, {"_CoordinateAxisType": "Lat"}),
        ({"standard_name": "longitude_at_u_location"}, {"units": "degreeN"}),
    ],
)
def test_longitudes_are_known_by_their_attributes(east, north):
    data = ocean(east=east, north=north).rename(lon="a", lat="b")
    slices = GridSlices(data)
    assert slices.geometry.radius == EARTH_RADIUS
    assert not any("guessed" in note for note in slices.notes())
    told = ocean(east={"long_name": "Longitude"}, north={"long_name": "Latitude"})
    only = ocean(east={"units": "degrees"}, north={"units": "degrees", "axis": "Y"})
    others = [d.rename(lon="x", lat="y") for d in (told, only)]
    for bare in (ocean(east={}, north={}), *others):
        with pytest.warns(UserWarning, match=r"guessed .*; give geometry='sphere', or"):
            slices = GridSlices(bare)
        assert slices.geometry.radius == EARTH_RADIUS
        assert any(note.startswith("guessed a sphere") for note in slices.notes())
        assert GridSlices(bare, geometry="sphere").geometry.radius == EARTH_RADIUS


def test_rotated_poles_and_counted_nodes_are_refused():
    rotated = ocean(east={"standard_name": "grid_longitude"})
    with pytest.raises(ValueError, match="rotated pole: regrid"):
        GridSlices(rotated)
    bare = ocean().drop_vars(["lon", "lat"]).rename(lon="x", lat="y")
    counted = bare.assign_coords(x=np.arange(36), y=np.arange(18))
    for data in (bare, counted):
        with pytest.raises(ValueError, match="has no coordinates for"):
            GridSlices(data)
    assert GridSlices(counted, geometry="flat").geometry.radius is None
    blank = ocean(east={"axis": "X"}, north={"axis": "Y"}).rename(lon="x", lat="y")
    with pytest.raises(ValueError, match=r"with units; .* geometry='sphere' if they"):
        GridSlices(blank)


def test_radius_is_given_or_stated_by_the_file():
    data = ocean()
    data["uo"].attrs["grid_mapping"] = "crs: lat lon"
    sphere = {"semi_major_axis": 6371229.0, "semi_minor_axis": 6371229.0}
    for stated in ({"earth_radius": 6371229.0}, sphere):
        data["crs"] = ((), 0, stated)
        assert GridSlices(data).geometry.radius == 6371229.0
    assert GridSlices(data, radius=6366707.0195).geometry.radius == 6366707.0195
    wgs84 = {"semi_major_axis": 6378137.0, "inverse_flattening": 298.257223563}
    data["crs"] = ((), 0, wgs84)
    assert GridSlices(data).geometry.radius == pytest.approx(6371008.7714, abs=1e-3)


@pytest.mark.parametrize(
    "lon",
    [np.arange(0, 361, 10.0), np.roll(LON, -5), np.where(LON > 180, LON - 360, LON)],
)
def test_repeated_and_jumping_longitudes_close(lon):
    data = ocean(lon=lon, u=np.cos(np.radians(lon)))
    field = load_field(data).field
    points = np.array([[355.0, 0.0], [5.0, 0.0], [-175.0, 0.0], [60.0, 0.0]])
    found = np.asarray(field(points))[:, 0]
    middle = (1 + np.cos(np.radians(10))) / 2
    np.testing.assert_allclose(found, [middle, middle, -middle, 0.5], atol=1e-6)
    assert field.contains(points).all()


def axis_of(slices, index):
    assert isinstance(slices.geometry, TensorGrid)
    return slices.geometry.axes[index].tolist()


def test_rows_at_the_pole_without_a_direction_are_left_out():
    lat = np.arange(-90, 91, 10.0)
    u = np.where(np.abs(lat) == 90, 0.0, 1.0)[:, None]
    slices = GridSlices(ocean(lat=lat, u=u))
    assert axis_of(slices, 1) == lat[1:-1].tolist()
    assert "rows at the poles" in " ".join(slices.notes())
    field = load_field(ocean(lat=lat, u=u)).field
    assert np.asarray(field([[3.0, 90.0]]))[0].tolist() == [1.0, 0.0, 0.0]
    assert field.contains([[3.0, 90.0]]).all()


def test_depth_becomes_height_and_rising_stays_rising():
    slices = GridSlices(levels())
    assert axis_of(slices, 2) == [-15.0, -5.0]
    assert (slices.read(0)[..., 2] == 1).all()
    assert "z up, depth = -z" in slices.notes()[0]
    pressure = {"units": "hPa", "standard_name": "air_pressure"}
    omega = "lagrangian_tendency_of_air_pressure"
    sinking = GridSlices(
        levels(omega, "Pa s**-1", pressure, (850.0, 1000.0)),
        velocity_field_name=("uo", "vo", "wo"),
    )
    assert axis_of(sinking, 2) == [-100000.0, -85000.0]
    assert (sinking.read(0)[..., 2] == -1).all()
    with pytest.raises(ValueError, match="'pa/s' of 'wo' do not fit an axis"):
        GridSlices(levels(unit="Pa/s"))


@pytest.mark.parametrize(
    ("dates", "start"),
    [
        ({"units": "hours since 1950-1-1", "calendar": "gregorian"}, "1950-01-01"),
        ({"units": "days since 2000-02-28", "calendar": "noleap"}, "2000-02-28"),
        ({"units": "days since 0000-01-01", "calendar": "360_day"}, "0-01-01"),
        ({"units": "months since 2001-01-01"}, "2001-01-01"),
        ({"units": "months since 2001-02-30", "calendar": "360_day"}, "2001-02-30"),
        ({"units": "hours Since 2001-01-01 01:00:00 +01:00"}, "2001-01-01 00:00"),
    ],
)
def test_times_are_seconds_in_any_calendar(tmp_path, dates, start):
    ocean(dates=dates).to_netcdf(tmp_path / "a.nc", engine="scipy")
    slices = GridSlices(tmp_path / "a.nc")
    month = 365.242198781 * 7200 if len(dates) == 1 else 30 * 86400.0
    unit = {"h": 3600.0, "d": 86400.0, "m": month}[dates["units"][0]]
    assert slices.times.tolist() == [0.0, 2 * unit]
    assert start in str(slices.time_units)
    expected = dates.get("calendar", "standard").replace("gregorian", "standard")
    assert slices.calendar == expected


def test_files_of_other_references_follow_one_another(tmp_path):
    later = {"units": "hours since 2001-03-01 12:00", "calendar": "standard"}
    ocean().to_netcdf(tmp_path / "a_1.nc", engine="scipy")
    ocean(dates=later, time=(12.0, 24.0)).to_netcdf(tmp_path / "a_2.nc", engine="scipy")
    assert (GridSlices(tmp_path).times / 86400).tolist() == [0.0, 2.0, 2.5, 3.0]
    # Slices between those of another file are put between them.
    between = {"units": "days since 0000-01-01", "calendar": "standard"}
    early = ocean(u=2.0, dates=between, time=(730911.5, 730913.5))
    early.to_netcdf(tmp_path / "a_0.nc", engine="scipy")
    with pytest.warns(UserWarning, match="year zero convention"):
        slices = GridSlices(tmp_path)
    assert (slices.times / 86400).tolist() == [0.0, 1.0, 2.0, 2.5, 3.0]
    assert slices.read(1).max() == 2
    (tmp_path / "a_0.nc").unlink()
    other = {"units": "days since 2001-03-09", "calendar": "360_day"}
    ocean(dates=other).to_netcdf(tmp_path / "a_3.nc", engine="scipy")
    with pytest.raises(ValueError, match="different calendars"):
        GridSlices(tmp_path)


def test_means_are_placed_at_the_middle_of_their_bounds():
    data = ocean()
    data["time"].attrs["bounds"] = "time_bnds"
    data["time_bnds"] = (("time", "nv"), [[-1.0, 0.0], [1.0, 2.0]])
    data["uo"].attrs["cell_methods"] = "area: mean time: mean (interval: 300 s)"
    dates = xarray.decode_cf(data)  # as a user opens it
    for each in (data, data.rename(time="time_counter"), dates):
        slices = GridSlices(each)
        assert slices.time_units == "seconds since 2001-02-27 00:00:00"
        assert slices.times.tolist() == [0.0, 172800.0]


def test_who_leaves_a_region_is_gone():
    # As many nodes as a globe that is closed: the program of the test before.
    lon = np.linspace(170.0, 185.0, 37)
    lon, lat = np.where(lon > 180, lon - 360, lon), np.linspace(-5.0, 5.0, 18)
    field = load_field(ocean(lon=lon, lat=lat, u=2.0)).field
    tracker = create_tracker("rk4", field, None)
    paths = tracker.track_particles(
        [[-179.0, 0.0], [-176.0, 0.0]], (0.0, 172800.0), n_timesteps=3
    )
    assert paths.status.tolist() == [0, 1]
    far = great_circle(paths.positions[-1], paths.positions[0])[0]
    assert far == pytest.approx(345600.0, rel=1e-4)


def coast(hidden=np.nan):
    """Return a current to the east with an island of 3 by 3 nodes in its way."""
    lon, lat = np.arange(0.0, 21.0), np.arange(-10.0, 11.0)
    u = np.ones((lat.size, lon.size))
    u[9:12, 10:13] = hidden
    return ocean(lon=lon, lat=lat, u=u, v=np.where(u == 1, 0.0, u))


@pytest.mark.parametrize(
    ("hidden", "land"),
    [(np.nan, None), pytest.param(0.0, "absorb", marks=pytest.mark.slow)],
)
def test_nothing_crosses_land(hidden, land):
    loaded = load_field(coast(hidden), land=land)
    way = "masked" if np.isnan(hidden) else "without any flow"
    rule = land or "beach"
    assert f"land: 9 of 441 nodes {way}; particles there: {rule}" in loaded.notes
    lat = np.linspace(-2.5, 2.5, 51)
    seeds = np.stack([np.full(51, 9.0), lat, 0 * lat], 1)
    # The walk pushes particles ashore, where the flow alone would only slow down.
    walk = Diffusion([2e4, 2e4, 0])
    tracker = create_tracker("euler", loaded.field, None, motion=walk)
    paths = tracker.track_particles(seeds, (0.0, 172800.0), n_timesteps=49)
    beached = paths.status == ParticleStatus.BEACHED
    assert 0 < beached.sum() < 51
    assert np.isfinite(paths.exit_time[beached]).all()
    ends = paths.positions[-1, beached]
    if land == "absorb":
        assert np.isnan(ends).all()
        return
    assert ((ends[:, 0] >= 10) & (ends[:, 0] <= 12) & (np.abs(ends[:, 1]) <= 1)).all()
    moving = np.asarray(np.diff(paths.positions[:, beached], axis=0).any(axis=-1))
    last = moving.shape[0] - 1 - np.argmax(moving[::-1], axis=0)
    np.testing.assert_allclose(
        paths.times[last + 1], paths.exit_time[beached], rtol=1e-6
    )


def test_gaps_that_come_and_go_are_said():
    data = coast(np.nan)
    assert "masked differs" not in " ".join(open_slices(data).notes())
    data["uo"][1, 4, 4] = np.nan
    said = " ".join(open_slices(data).notes())
    assert "masked differs between slices: no flow there" in said
    assert "land: 9 of 441 nodes masked" in said


def test_files_without_any_value_are_refused():
    nothing = coast()
    nothing = nothing.assign({n: nothing[n] * np.nan for n in nothing.data_vars})
    with pytest.raises(ValueError, match=r"slice 0: no value of .* is finite: give"):
        load_field(nothing)


def test_seeds_on_land_are_dropped_and_counted(tmp_path):
    coast().to_netcdf(tmp_path / "a.nc", engine="scipy")
    case = read_case(
        {
            "data": {"pattern": str(tmp_path / "a.nc")},
            "particles": {
                "concentrations": {"x": 5, "y": 1, "z": 1},
                "bounds": {"x": [0.5, 20.5], "y": [0.5, 0.5], "z": [0.0, 0.0]},
            },
        }
    )
    plan = make_plan(case)
    assert len(plan.seeds) == 3
    assert "1 of 5 particles are on land: dropped" in plan.notes
    assert "1 of 5 particles are outside the data: dropped" in plan.notes
    assert type(plan.boundary) is Open


@pytest.mark.bitwise
def test_a_stopped_run_resumes_to_the_same_bits(tmp_path):
    field = load_field(coast()).field
    seeds = np.stack([np.full(7, 2.0), np.linspace(-3, 3, 7), np.zeros(7)], 1)
    span, walk = (0.0, 172800.0), Diffusion([100.0, 100.0, 0.0])

    def stop(done, total):
        if done > 10:
            raise KeyboardInterrupt

    def track(output, resume=False, **options):
        tracker = create_tracker("euler", field, None, motion=walk, **options)
        return tracker.track_particles(seeds, span, 25, output=output, resume=resume)

    whole = track(tmp_path / "whole.zarr")
    with pytest.raises(KeyboardInterrupt):
        track(tmp_path / "part.zarr", progress_callback=stop)
    rest = track(tmp_path / "part.zarr", resume=True)
    np.testing.assert_array_equal(rest.positions, whole.positions)
