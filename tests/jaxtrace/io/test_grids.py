"""Labeled grids of any order of dimensions, from memory, netCDF and zarr."""

import importlib.machinery
import importlib.util
import io
import sys
import types
from typing import Any

import numpy as np
import pytest

from jaxtrace.fields.interpolation import TensorGrid
from jaxtrace.io.cf import GRID_VELOCITIES, velocity_variables
from jaxtrace.io.decoding import dimension_roles
from jaxtrace.io.formats import open_slices
from jaxtrace.io.netcdf import GridSlices
from jaxtrace.io.series import load
from jaxtrace.workflow.case import load_case
from jaxtrace.workflow.starter import starter, survey

xarray = pytest.importorskip("xarray")

TIMES = np.array(["2020-01-01T00", "2020-01-01T06", "2020-01-02T00"], "datetime64[ns]")


def ocean(times=TIMES, lat=(10.0, 11.0, 13.0), dims=("time", "depth", "lat", "lon")):
    """Velocities that tell every index apart: u = t + 10 z + 100 y + 1000 x."""
    sizes = {"time": len(times), "depth": 2, "lat": len(lat), "lon": 4}
    t, z, y, x = np.meshgrid(*(np.arange(n) for n in sizes.values()), indexing="ij")
    u = (t + 10 * z + 100 * y + 1000 * x).astype(np.float64)
    order = [list(sizes).index(dim) for dim in dims]
    values = {name: (dims, (k * u).transpose(order)) for k, name in enumerate("uvw", 1)}
    coords = {"time": times, "depth": [0.0, 5.0]}
    coords["lat"] = ("lat", list(lat), {"units": "degrees_north"})
    coords["lon"] = ("lon", [0.0, 1.0, 2.0, 4.0], {"units": "degrees_east"})
    return xarray.Dataset(values, coords)


def read_grid(source, **options) -> Any:
    series = load(GridSlices(source, **{"geometry": "flat", **options}))
    assert isinstance(series.geometry, TensorGrid)
    return series


def check(series):
    assert series.velocities.shape == (3, 4, 3, 2, 3)
    assert series.geometry.axes[0].tolist() == [0, 1, 2, 4]
    assert series.geometry.axes[1].tolist() == [10, 11, 13]
    assert series.geometry.axes[2].tolist() == [0, 5]
    assert series.velocities[2, 3, 1, 1].tolist() == [3112.0, 6224.0, 9336.0]


@pytest.mark.parametrize(
    "dims", [("time", "depth", "lat", "lon"), ("lon", "time", "lat", "depth")]
)
def test_any_order_of_dimensions(dims):
    series = read_grid(ocean(dims=dims))
    check(series)
    assert series.times.tolist() == [0.0, 6 * 3600.0, 24 * 3600.0]
    assert "seconds since 2020-01-01" in series.notes[1]


def test_descending_axes_are_turned_with_their_values():
    series = read_grid(ocean(lat=(13.0, 11.0, 10.0)))
    assert series.geometry.axes[1].tolist() == [10, 11, 13]
    assert series.velocities[0, 0, :, 0, 0].tolist() == [200.0, 100.0, 0.0]


def test_netcdf_and_zarr_give_the_same(tmp_path):
    ocean().to_netcdf(tmp_path / "a.nc", engine="scipy")
    check(read_grid(tmp_path / "a.nc", engine="scipy"))
    check(read_grid(tmp_path / "a.nc"))
    pytest.importorskip("h5netcdf")  # of netCDF-4, which most models write
    ocean().to_netcdf(tmp_path / "b.nc", engine="h5netcdf")
    check(read_grid(tmp_path / "b.nc"))
    ocean().to_zarr(tmp_path / "a.zarr", consolidated=False)
    check(read_grid(str(tmp_path / "a.zarr")))


def test_files_are_sorted_by_time_and_what_overlaps_counts_once(tmp_path):
    whole = ocean()
    for name, part in [("a_1.nc", slice(1, 3)), ("a_2.nc", slice(0, 2))]:
        whole.isel(time=part).to_netcdf(tmp_path / name, engine="scipy")
    check(read_grid(tmp_path / "a_*.nc"))
    slices = GridSlices(tmp_path)
    assert slices.times.tolist() == [0.0, 6 * 3600.0, 24 * 3600.0]
    assert [label[-15:] for label in slices.labels] == [
        *("a_2.nc, slice 0", "a_2.nc, slice 1", "a_1.nc, slice 1"),
    ]
    notes = slices.notes()
    assert "files brought into the order of their times" in notes
    assert "1 slices that overlap left out" in notes
    wrong = whole.assign_coords(time=TIMES[[0, 2, 1]])
    with pytest.raises(ValueError, match="times must increase, but slice 2 follows"):
        GridSlices(wrong)


def test_files_that_differ_are_named(tmp_path):
    for name in ("a_1.nc", "a_2.nc"):
        ocean().to_netcdf(tmp_path / name, engine="scipy")
    ocean(lat=(0.0, 1.0, 2.0)).to_netcdf(tmp_path / "a_2.nc", engine="scipy")
    with pytest.raises(ValueError, match=r"a_2\.nc: grid .* differs"):
        GridSlices(tmp_path)


def test_one_slice_is_read_at_a_time():
    slices = GridSlices(ocean(), dtype="float64", geometry="flat")
    assert len(slices) == 3
    assert slices.read(1).dtype == np.float64
    np.testing.assert_array_equal(slices.read(1)[0, 0, 0], [1.0, 2.0, 3.0])
    assert slices.read_slice(1)[0] is slices.geometry


def test_land_is_zero_or_nan_or_refused():
    data = ocean()
    data["u"][:, :, 1, 2] = np.nan
    assert read_grid(data).velocities[0, 2, 1, 0, 0] == 0
    kept = read_grid(data, land="nan").velocities
    assert np.isnan(kept[..., 0]).sum() == 3 * 2
    assert np.isfinite(kept[..., 1]).all()
    with pytest.raises(ValueError, match=r"slice 0: 2 of 72 values .* not finite"):
        read_grid(data, land="error")
    data["v"][0, 0, 0, 0] = np.inf
    with pytest.raises(ValueError, match="1 of 72 values"):
        read_grid(data)
    with pytest.raises(ValueError, match="'sea': choose one of beach, "):
        read_grid(data, land="sea")


def test_flat_and_steady_fields_have_single_layers():
    data = ocean().isel(time=0, depth=1, drop=True)[["u", "v"]]
    series = read_grid(data)
    assert series.velocities.shape == (1, 4, 3, 1, 3)
    assert series.times.tolist() == [0.0]
    assert series.geometry.axes[2].tolist() == [0.0]
    assert (series.velocities[..., 2] == 0).all()


def test_speeds_of_a_flat_grid_are_in_the_units_of_its_axes():
    data = ocean().rename(lon="x", lat="y").assign_attrs(title="laboratory")
    for name, units in {"x": "km", "y": "m", "depth": "m"}.items():
        data[name].attrs = {"units": units}
    data["depth"].attrs["positive"] = "down"
    for name in "uvw":
        data[name].attrs = {"units": "cm/s"}
    plain, found = read_grid(ocean()).velocities, read_grid(data)
    np.testing.assert_allclose(found.velocities, plain * [1e-5, 1e-2, -1e-2], rtol=1e-6)


def test_numbers_and_durations_as_time():
    assert read_grid(ocean(times=np.array([1.0, 2.0, 5.0]))).times.tolist() == [1, 2, 5]
    hours = np.array([1, 2, 5], "timedelta64[h]").astype("timedelta64[ns]")
    assert read_grid(ocean(times=hours)).times.tolist() == [0, 3600, 4 * 3600]


def test_axes_without_coordinates_are_counted():
    data = ocean().drop_vars("lon")
    assert read_grid(data).geometry.axes[0].tolist() == [0, 1, 2, 3]


def test_staggered_and_curvilinear_grids_are_refused():
    data = ocean()
    data["v"] = data["v"].rename(lat="yc")
    with pytest.raises(ValueError, match=r"'v' has the dimensions .* same points"):
        read_grid(data)
    bent = ocean().drop_vars(["lat", "lon"]).rename(lat="y", lon="x")
    bent = bent.assign_coords(nav_lon=(("y", "x"), np.zeros((3, 4))))
    with pytest.raises(ValueError, match="curvilinear coordinates nav_lon"):
        read_grid(bent)


def test_files_that_cannot_be_read_are_named(tmp_path):
    path = tmp_path / "bad.nc"
    ocean().to_netcdf(path, engine="scipy")
    whole = path.read_bytes()
    for content in (b"", b"garbage" * 50, whole[:40], whole[: len(whole) // 2]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"bad\.nc: "):
            read_grid(path)
    with pytest.raises(FileNotFoundError, match=r"none\.zarr: no such store"):
        read_grid(tmp_path / "none.zarr")
    (tmp_path / "empty.zarr").mkdir()
    with pytest.raises(ValueError, match=r"empty\.zarr: "):
        read_grid(tmp_path / "empty.zarr")
    with pytest.raises(FileNotFoundError, match=r"none\.nc"):
        read_grid(tmp_path / "none.nc")


def test_without_xarray_the_error_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(ImportError, match=r'pip install -e "\.\[trace\]"'):
        read_grid(tmp_path / "a.nc")


def dataset(*names, dims=("time", "lat", "lon"), **attributes):
    shape = tuple(range(2, 2 + len(dims)))
    data = {name: (dims, np.zeros(shape)) for name in names}
    coords = {d: (d, np.arange(n), attributes.get(d, {})) for d, n in zip(dims, shape)}  # noqa: B905
    return xarray.Dataset(data, coords)


@pytest.mark.parametrize("names", GRID_VELOCITIES)
def test_usual_names_are_found_with_or_without_the_third(names):
    present = [name for name in names if name]
    assert velocity_variables(dataset("p", *present), None, "a") == tuple(present)
    assert velocity_variables(dataset(*names[:2]), None, "a") == names[:2]


def test_missing_variables_list_what_there_is():
    with pytest.raises(ValueError, match=r"a\.nc: no two or three velocity.* p, u"):
        velocity_variables(dataset("p", "u"), None, "a.nc")
    with pytest.raises(ValueError, match=r"variables \('u', 'z'\)"):
        velocity_variables(dataset("p", "u"), ("u", "z"), "a.nc")
    with pytest.raises(ValueError, match=r"a\.nc: no variable 'salt'; there are p, u$"):
        velocity_variables(dataset("p", "u"), ("salt", "salt"), "a.nc")
    assert velocity_variables(dataset("p", "q"), ("q", "p"), "a.nc") == ("q", "p")


@pytest.mark.parametrize(
    "dims",
    [
        ("time", "depth", "lat", "lon"),
        ("lon", "lat", "depth", "time"),
        ("t", "z", "y", "x"),
        ("ocean_time", "lev", "Latitude", "Longitude"),
    ],
)
def test_dimensions_are_known_by_name(dims):
    roles = dimension_roles(dataset("u", dims=dims)["u"], "a")
    assert set(roles) == set("tzyx")
    assert roles["x"].lower().startswith(("lon", "x"))
    assert roles["t"] in ("time", "t", "ocean_time")


def test_a_dimension_of_unknown_meaning_is_named():
    with pytest.raises(ValueError, match=r"a\.nc: cannot tell .*'member' of 'u'"):
        dimension_roles(dataset("u", dims=("member", "lat"))["u"], "a.nc")
    alone = xarray.Dataset({"u": (("member", "lat"), np.zeros((1, 3)))})["u"]
    assert dimension_roles(alone, "a.nc") == {"y": "lat"}
    with pytest.raises(ValueError, match="'lat' of 'u'"):
        dimension_roles(dataset("u", dims=("y", "lat"))["u"], "a.nc")


def test_an_address_is_opened_through_fsspec(tmp_path, monkeypatch):
    # No network here: a stand-in for the library opens addresses in a folder.
    lon, lat = np.arange(0.0, 5), np.arange(40.0, 44)
    u = np.full((4, 5), 0.5)
    data = xarray.Dataset(
        {"uo": (("lat", "lon"), u), "vo": (("lat", "lon"), 0 * u)},
        {"lat": ("lat", lat, {"units": "degrees_north"}),
         "lon": ("lon", lon, {"units": "degrees_east"})},
    )  # fmt: skip
    data.to_netcdf(tmp_path / "sea.nc", engine="h5netcdf")
    address = "memory://folder/sea.nc"
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"sea\.nc: addresses need fsspec"):
        GridSlices(address)
    monkeypatch.undo()
    library = types.ModuleType("fsspec")
    library.__spec__ = importlib.machinery.ModuleSpec("fsspec", None)

    def open_there(name, mode):
        assert (name, mode) == (address, "rb")
        there = lambda: io.BytesIO((tmp_path / "sea.nc").read_bytes())
        return types.SimpleNamespace(open=there)

    library.open = open_there  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fsspec", library)
    (tmp_path / "case.toml").write_text(starter(survey((address,)), tmp_path))
    case = load_case(tmp_path / "case.toml")
    assert case.data is not None
    assert case.data.pattern == address
    values = open_slices(case.data.pattern).read(0)
    np.testing.assert_array_equal(values[..., 0], 0.5)


def test_units_of_time_that_are_unknown_are_said():
    times = xarray.DataArray([0.0, 1, 2], dims="time", attrs={"units": "steps of 5 s"})
    notes = GridSlices(ocean().assign_coords(time=times)).notes()
    assert "the units 'steps of 5 s' of time are unknown: s assumed" in notes
