"""What is wrong with files and cases is said with the file and the remedy."""

import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from jaxtrace.cli import app
from jaxtrace.io.convert import read_recorded
from jaxtrace.io.store import open_store
from jaxtrace.workflow.case import load_case
from jaxtrace.workflow.prepare import make_plan
from trace_cases import NO_EXTRAS
from trace_files import image, write_xml

TAIL = "\n[output]" + NO_EXTRAS


def write(name, values, array="velocity", time=None):
    grid = image((4, 4, 4))
    del grid.point_data["velocity"]
    grid[array] = values
    write_xml(grid, Path(name), time=time)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    xarray, h5py = pytest.importorskip("xarray"), pytest.importorskip("h5py")
    monkeypatch.chdir(tmp_path)
    ones = np.tile([0.1, 0.0, 0.0], (64, 1))
    holes = np.where(np.arange(64)[:, None] < 3, np.nan, ones)
    write("ok.vti", ones)
    write("holes.vti", holes)
    write("nan.vti", ones * np.nan)
    for time in (0, 1):
        write(f"t_{time}.vti", ones, time=float(time))
    for name in ("empty.h5", "empty.nc"):
        Path(name).touch()
    h5py.File("nothing.h5", "w").close()
    xarray.Dataset().to_netcdf("nothing.nc", engine="h5netcdf")
    Path("bad.csv").write_text("x,y,z\n1.5,2.5,nan\n")
    Path("far.csv").write_text("x,y,z\n-5,0,0\n")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("holes.vti", "holes.vti: 9 of 192 values .* give --allow-nan to keep them"),
        ("nan.vti", "nan.vti: no value of velocity is finite: .* --velocity"),
        ("empty.h5", "empty.h5: the file is empty: write it again"),
        ("empty.nc", "empty.nc: the file is empty: write it again"),
        ("nothing.h5", "nothing.h5: .* holds nothing: give one as --velocity"),
        ("nothing.nc", "nothing.nc: .* variables are none: .* --velocity u"),
        ("missing.vtu", "no files found for missing.vtu"),
        ("bad.csv", "bad.csv: unknown extension .csv; known are"),
    ],
)
def test_new_says_what_is_wrong_with_files(folder, name, words):
    done = CliRunner().invoke(app, ["new", "case.toml", name])
    assert done.exit_code == 1
    assert_said(done, words)
    assert not Path("case.toml").exists()


DEFAULT = {"pattern": '"ok.vti"', "n_timesteps": "5", "time_span": "[0, 1]"}
# The flows are uniform, for which one stage is exact.
DEFAULT |= {"concentrations": "3", "type": '"absorbing"', "integrator": '"euler"'}
TABLE = {"pattern": "data", "velocity_name": "data", "extrapolation": "data"}
TABLE |= {"n_timesteps": "time", "time_span": "time", "dt": "time"}
KEYS = ("concentrations", "bounds", "file", "release", "max_age")
TABLE |= dict.fromkeys(KEYS, "particles")
TABLE |= {
    "integrator": "tracking",
    "type": "boundary",
    "variables": "sample",
    "files": "sample",
}
TABLE |= dict.fromkeys(("age", "history", "windage"), "behave")
DAY = np.timedelta64(24, "h")
FAR = "{x = [-5.0, -3.0], y = [0.0, 1.0], z = [0.0, 1.0]}"


def write_case(**changes):
    keys = {**DEFAULT, **changes}
    tables: dict[str, list[str]] = {}
    for key, value in keys.items():
        tables.setdefault(TABLE[key], []).append(f"{key} = {value}")
    text = "\n".join("\n".join([f"[{t}]", *keys]) for t, keys in tables.items())
    Path("case.toml").write_text(text + TAIL)


def assert_said(done, words):
    assert re.search(words, str(done.exception)), done.exception


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"pattern": '"holes.vti"'},
            r"holes.vti: 9 of 192 .* allow_nan = true in",
        ),
        ({"velocity_name": '"vel"'}, r"no 'vel' array; .* velocity_name in \[data\]"),
        ({"time_span": "[0, nan]"}, "case.toml: time.time_span is nan: give a number"),
        (
            {"pattern": '"t_*.vti"', "time_span": "[0, 5]"},
            r"time.time_span is 0 to 5, .* 0 to 1: .* extrapolation in \[data\]",
        ),
        ({"dt": "-0.1"}, "case.toml: time.dt is -0.1: give a number above 0"),
        ({"bounds": FAR}, r"none of the 27 .* \(x 1 to 2.5, .* bounds or a file in"),
        ({"file": '"far.csv"'}, r"none of the 1 particles is inside the data"),
        ({"file": '"bad.csv"'}, "bad.csv, line 2: z is 'nan': give a finite number"),
        ({"type": '"walls"'}, 'boundary.type is "walls", which needs data on a mesh'),
        ({"release": "2.0"}, "27 of 27 particles are released outside the time span"),
        ({"release": "[0, 1]"}, r"particles.release is .* \[start, stop, every\]"),
        (
            {"time_span": '["2020-01-01", 1]'},
            "is the date 2020-01-01T00:00:00, but .* n",
        ),
        ({"time_span": '["soon", 1]'}, "time.time_span is 'soon': .* or a date"),
        ({"n_timesteps": "1"}, "time.n_timesteps is 1: give a whole number from 2"),
    ],
)
def test_a_run_says_what_is_wrong_with_its_case(folder, changes, words):
    write_case(**changes)
    done = CliRunner().invoke(app, ["run", "case.toml"])
    assert done.exit_code == 1
    assert_said(done, words)


def test_a_span_beyond_the_data_is_allowed_by_a_rule(folder):
    rule = '"constant"'
    write_case(pattern='"t_*.vti"', time_span="[0, 5]", extrapolation=rule)
    assert make_plan(load_case("case.toml")).time_span == (0.0, 5.0)


def test_a_table_of_seeds_says_when_each_is_released(folder):
    Path("seeds.csv").write_text("x,y,z,time\n1.5,2.5,4,0\n1.2,2.5,4,0.5\n9,0,0,0\n")
    write_case(file='"seeds.csv"', max_age="0.75")
    done = CliRunner().invoke(app, ["run", "case.toml"])
    assert done.exit_code == 0, done.exception
    assert "1 of 3 particles are outside the data: dropped" in done.output
    found = read_recorded("out/trajectory.zarr")
    shown = [[1, 1, 1, 1, 0], [0, 0, 1, 1, 1]]
    # The first record of a particle is its seed; the flow goes 0.1 per unit of time.
    assert (
        np.isfinite(found.positions[..., 0].T).tolist()
        == np.array(shown, bool).tolist()
    )
    np.testing.assert_allclose(found.positions[[0, 3], 0, 0], [1.5, 1.575], rtol=1e-6)
    np.testing.assert_allclose(found.positions[[2, 4], 1, 0], [1.2, 1.25], rtol=1e-6)


def test_data_with_dates_are_run_and_stored_by_dates(folder):
    xarray = pytest.importorskip("xarray")
    times = np.datetime64("2020-02-28", "ns") + np.arange(4) * DAY
    axes = {"time": times, "lat": np.linspace(-4, 4, 5), "lon": np.linspace(0, 20, 11)}
    attributes = {"thetao": {"units": "degC"}}
    attributes |= {"lat": {"units": "degrees_north"}, "lon": {"units": "degrees_east"}}
    speed = {"uo": 1.0, "vo": 0.0}
    data = {
        n: (("time", "lat", "lon"), np.full((4, 5, 11), v)) for n, v in speed.items()
    }
    # Twice the longitude, and a day warmer by one.
    warm = 2 * axes["lon"][None, None] + np.arange(4)[:, None, None]
    data["thetao"] = (("time", "lat", "lon"), np.broadcast_to(warm, (4, 5, 11)))
    # A wind that is one stronger every day, in a file that begins two days before.
    windy = {**axes, "time": axes["time"][0] + (np.arange(6) - 2) * DAY}
    blows = np.broadcast_to(np.arange(6.0)[:, None, None], (6, 5, 11))
    wind = {"u10": 0 * blows, "v10": blows}
    wind = xarray.Dataset(
        {n: (("time", "lat", "lon"), v) for n, v in wind.items()}, windy
    )
    for name, unit in (("lat", "degrees_north"), ("lon", "degrees_east")):
        wind[name].attrs["units"] = unit
    wind.to_netcdf("wind.nc", engine="h5netcdf")
    found = xarray.Dataset(data, axes)
    for name in found.variables:
        found[name].attrs.update(attributes.get(name, {}))
        if name in speed:
            found[name].attrs["units"] = "m s-1"
    found.to_netcdf("sea.nc", engine="h5netcdf")
    Path("seeds.csv").write_text(
        "lon,lat,depth,time\n5,0,0,2020-02-28\n6,0,0,2020-02-29T12:00:00\n"
    )
    span = '["2020-02-28", "2020-03-01"]'
    changes = {"file": '"seeds.csv"', "type": '"none"', "time_span": span}
    changes |= {"variables": '["thetao"]', "files": '["wind.nc"]', "age": "true"}
    changes |= {"windage": "0.02", "history": '["thetao"]', "dt": "3600"}
    write_case(pattern='"sea.nc"', n_timesteps="3", **changes)
    done = CliRunner().invoke(app, ["run", "case.toml"])
    assert done.exit_code == 0, done.exception
    with xarray.open_zarr("out/trajectory.zarr") as run:
        day = run["time"].values.astype("datetime64[h]").astype(str)
        assert {"time", "lon", "lat", "z"} <= set(run["thetao"].coords)
        assert day[0].tolist() == ["2020-02-28T00", "2020-02-29T00", "2020-03-01T00"]
        # The second waits a day and a half: its seed is the first of its records.
        assert day[1].tolist() == ["NaT", "2020-02-29T12", "2020-03-01T00"]
        warmth = 2 * run["lon"].values + [[0, 1, 2], [np.nan, 1.5, 2]]
        np.testing.assert_allclose(run["thetao"].values, warmth, rtol=1e-5)
        degrees = 86400 / 111195.08
        np.testing.assert_allclose(run["v10"].values[0], [2, 3, 4], rtol=1e-6)
        np.testing.assert_allclose(run["v10"].values[1, 1:], [3.5, 4], rtol=1e-6)
        days = np.array([[0, 1, 2], [np.nan, 0, 0.5]])
        np.testing.assert_allclose(run["age"].values, 86400 * days, rtol=1e-5)
        # Two hundredths of a wind of 2 + t, in steps of an hour.
        north = 0.02 * (2 * days[0] + days[0] * (days[0] - 1 / 24) / 2) * degrees
        np.testing.assert_allclose(run["lat"].values[0], north, atol=1e-6)
        mean = np.nanmean(run["thetao"].values[0])
        found = run["thetao_mean"].values
        np.testing.assert_allclose(found[0, -1], mean, rtol=2e-3)
        assert np.isnan(found[1, 1])
        assert found[1, 2] < run["thetao_max"].values[1, 2]
        east = [5, 5 + degrees, 5 + 2 * degrees]
        np.testing.assert_allclose(run["lon"].values[0], east, atol=1e-5)
        np.testing.assert_allclose(
            run["lon"].values[1, 1:], [6, 6 + degrees / 2], atol=1e-5
        )


def test_variables_are_recorded_along_the_paths(folder):
    grid = image((4, 4, 4))
    grid["velocity"] = np.tile([0.1, 0.0, 0.0], (64, 1))
    for time in (0.0, 1.0):
        grid["T"] = grid.points[:, 0] + 2 * grid.points[:, 1] + 10 * time
        grid["force"] = time * grid.points  # nothing at first, and a vector still
        grid["stress"] = np.ones((64, 6))
        write_xml(grid, Path(f"warm_{time:g}.vti"), time=time)
    write_case(pattern='"warm_*.vti"', variables='["T", "force"]', release="0.1")
    done = CliRunner().invoke(app, ["run", "case.toml"])
    assert done.exit_code == 0, done.exception
    assert "sampled T, force_x, force_y, force_z" in done.output
    with open_store("out/trajectory.zarr", "r") as store:
        _, arrays = store.read()
        when = store.read_observed()
    x, y, _ = np.moveaxis(arrays["positions"], -1, 0)
    np.testing.assert_allclose(arrays["T"], x + 2 * y + 10 * when, rtol=1e-5)
    np.testing.assert_allclose(arrays["force_y"], y * when, rtol=1e-5)
    # Seeds and their values are those of the time of release.
    assert (when[0] == 0.1).all()
    for name, words in (
        ("heat", r"no 'heat' array; the arrays are .* variables in \[sample\]"),
        ("stress", "'stress' has 6 components: only scalars and vectors"),
    ):
        write_case(pattern='"warm_*.vti"', variables=f'["{name}"]', release="0.1")
        wrong = CliRunner().invoke(app, ["run", "case.toml", "--overwrite"])
        assert_said(wrong, words)
