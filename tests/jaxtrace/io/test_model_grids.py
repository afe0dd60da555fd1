"""Files of ocean models: curvilinear positions, staggered points, separate files."""

import numpy as np
import pytest

from jaxtrace.fields.curvilinear import CurvilinearGrid
from jaxtrace.fields.quads import grid_angles
from jaxtrace.io.geometry import GridAxes
from jaxtrace.io.loader import load_field
from jaxtrace.io.netcdf import GridSlices
from trace_ocean import solid, tilted

xarray = pytest.importorskip("xarray")
EAST, NORTH = {"units": "degrees_east"}, {"units": "degrees_north"}


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
    assert isinstance(slices.geometry, GridAxes)
    points = np.random.default_rng(0).uniform([-180, -85, 0], [180, 85, 0], (50, 3))
    one, other = (np.asarray(load_field(d).field(points)) for d in (curved, plain))
    np.testing.assert_array_equal(one, other)
