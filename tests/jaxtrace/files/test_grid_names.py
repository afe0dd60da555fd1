import numpy as np
import pytest

from jaxtrace.files.grid_names import (
    GRID_VELOCITIES,
    dimension_roles,
    velocity_variables,
)

xarray = pytest.importorskip("xarray")


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


def test_standard_names_are_found():
    data = dataset("a", "b")
    data["a"].attrs["standard_name"] = "northward_wind"
    data["b"].attrs["standard_name"] = "eastward_wind"
    assert velocity_variables(data, None, "x") == ("b", "a")


def test_missing_variables_list_what_there_is():
    with pytest.raises(ValueError, match=r"a\.nc: no two or three velocity.* p, u"):
        velocity_variables(dataset("p", "u"), None, "a.nc")
    with pytest.raises(ValueError, match=r"variables \('u', 'z'\)"):
        velocity_variables(dataset("p", "u"), ("u", "z"), "a.nc")
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


def test_attributes_speak_before_names():
    dims = ("p", "q", "r")
    attributes = {
        "p": {"axis": "X"},
        "q": {"units": "degrees_north"},
        "r": {"standard_name": "time"},
    }
    data = dataset("u", dims=dims, **attributes)
    assert dimension_roles(data["u"], "a") == {"x": "p", "y": "q", "t": "r"}


def test_a_dimension_of_unknown_meaning_is_named():
    with pytest.raises(ValueError, match=r"a\.nc: cannot tell .*'member' of 'u'"):
        dimension_roles(dataset("u", dims=("member", "lat"))["u"], "a.nc")
    with pytest.raises(ValueError, match="'lat' of 'u'"):
        dimension_roles(dataset("u", dims=("y", "lat"))["u"], "a.nc")
