"""Seeds from tables, polygons and recorded runs."""

import json

import numpy as np
import pytest

from jaxtrace.io.seed_files import inside, read_seeds
from jaxtrace.io.store import open_store


@pytest.mark.parametrize(
    ("text", "places", "times"),
    [
        ("x,y\n1,2\n3,4.5\n", [[1, 2, 0], [3, 4.5, 0]], None),
        ("lon, lat, depth, time\n-5, 40, 10, 3600\n", [[-5, 40, -10]], [3600]),
        ("id,Z,Y,X\n7,-1e-3,2,1\n", [[1, 2, -1e-3]], None),
    ],
)
def test_tables(tmp_path, text, places, times):
    path = tmp_path / "seeds.csv"
    path.write_text(text)
    found = read_seeds(path)
    np.testing.assert_array_equal(found.positions, places)
    assert (found.times is None) == (times is None)
    if times is not None:
        np.testing.assert_array_equal(found.times, times)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.csv", "lon,depth\n1,2\n", "its columns are lon, depth: name them lon,lat"),
        ("a.csv", "", "its columns are none"),
        ("a.csv", "x,y\n", "no rows below"),
        ("a.csv", "x,y\n1,2\n3,nan\n", r"line 3: y is 'nan': give a finite number"),
        ("a.csv", "x,y\n1\n", r"line 2: y is None"),
        ("a.geojson", "{}", "is not readable GeoJSON"),
        ("a.geojson", '{"type": "FeatureCollection", "features": []}', "no polygons"),
        ("a.geojson", '{"type": "LineString"}', "points and polygons, .* LineString"),
        ("a.txt", "1 2", r"are read from \.csv, \.geojson"),
    ],
)
def test_files_without_seeds_are_refused_by_name(tmp_path, name, text, words):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ValueError, match=rf"{name}.*{words}"):
        read_seeds(path)


def test_a_polygon_is_filled_evenly_outside_its_hole(tmp_path):
    outer = [[0, 0], [10, 0], [10, 80], [0, 80], [0, 0]]
    hole = [[2, 10], [4, 10], [4, 20], [2, 20], [2, 10]]
    shape = {"type": "Polygon", "coordinates": [outer, hole]}
    point = {"type": "Point", "coordinates": [20, 5, -3]}
    features = [{"type": "Feature", "geometry": one} for one in (point, shape)]
    path = tmp_path / "release.geojson"
    content = {"type": "FeatureCollection", "features": features}
    path.write_text(json.dumps(content))
    found = read_seeds(path, 20_000, seed=1).positions
    assert found[0].tolist() == [20, 5, -3]
    places = found[1:, :2]
    assert inside(places, [np.array(outer, float)]).all()
    assert not inside(places, [np.array(hole, float)]).any()
    # The share of the area north of 60 degrees, the hole left out.
    sine = lambda degrees: np.sin(np.radians(degrees))
    whole = 10 * sine(80) - 2 * (sine(20) - sine(10))
    north = 10 * (sine(80) - sine(60)) / whole
    assert abs((places[:, 1] > 60).mean() - north) < 4 * np.sqrt(north / 20_000)


def test_polygons_that_overlap_are_filled_once(tmp_path):
    """Two squares of a plane in meters, which have a quarter of each in common."""
    square = np.array([[0, 0], [4e3, 0], [4e3, 4e3], [0, 4e3]])
    shapes = [[(square + shift).tolist()] for shift in (0, 2e3)]
    path = tmp_path / "release.geojson"
    path.write_text(json.dumps({"type": "MultiPolygon", "coordinates": shapes}))
    x, y, _ = read_seeds(path, 7_000, sphere=False).positions.T
    both = (np.minimum(x, y) > 2e3) & (np.maximum(x, y) < 4e3)
    assert both.mean() == pytest.approx(1 / 7, abs=0.02)  # five deviations
    assert (y < 2e3).mean() == pytest.approx(2 / 7, abs=0.03)


def test_a_mask_is_filled_evenly_with_the_cells_around_its_nodes(tmp_path):
    xarray = pytest.importorskip("xarray")
    path = tmp_path / "mask.nc"
    lat, lon = np.arange(80.0, -81, -10), np.array([170.0, 180, -170])
    marked = np.zeros((17, 3), np.int8)
    marked[[1, 8], 1] = 1  # around 70 N and the equator, at the date line
    axes = {
        "lat": ("lat", lat, {"units": "degrees_north"}),
        "lon": ("lon", lon, {"units": "degrees_east"}),
    }
    mask = xarray.Dataset({"mask": (("lat", "lon"), marked)}, axes)
    mask.to_netcdf(path, engine="scipy")
    x, y, z = read_seeds(path, 20_000, seed=1).positions.T
    assert ((x >= 175) & (x <= 185)).all()
    assert ((np.abs(y) <= 5) | (np.abs(y - 70) <= 5)).all()
    assert not z.any()
    share = np.cos(np.radians(70)) / (1 + np.cos(np.radians(70)))
    assert abs((y > 60).mean() - share) < 4 * np.sqrt(share / 20_000)
    flat = {"y": 1e3 * np.arange(17), "x": [0.0, 1e3, 2e3]}
    meters = mask.drop_vars(("lat", "lon")).rename(lat="y", lon="x")
    meters.assign_coords(flat).to_netcdf(path, engine="scipy")
    x, y, _ = read_seeds(path, 1_000).positions.T
    assert ((x >= 500) & (x <= 1_500)).all()
    assert abs((y < 2_000).mean() - 0.5) < 4 * np.sqrt(0.25 / 1_000)
    for wrong, words in (
        (0 * mask, "no value of 'mask' is above 0"),
        (mask.isel(lat=0), "0 of its variables have two dimensions"),
    ):
        wrong.to_netcdf(path, engine="scipy")
        with pytest.raises(ValueError, match=words):
            read_seeds(path)


def test_a_run_goes_on_from_where_another_ended(tmp_path):
    path = tmp_path / "run.zarr"
    positions = np.arange(18, dtype=np.float32).reshape(2, 3, 3)
    positions[1, 1] = np.nan
    with open_store(path, "x") as store:
        store.append([0.0, 1.0], {"positions": positions})
    found = read_seeds(path).positions
    np.testing.assert_array_equal(found, positions[1, [0, 2]])
