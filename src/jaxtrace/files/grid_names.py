"""Which variables and dimensions of a labeled grid mean velocity, time and space."""

from collections.abc import Sequence
from typing import Any

import numpy as np

#: Variables that together are a velocity, in the order tried; the third may be absent.
GRID_VELOCITIES = (
    ("u", "v", "w"), ("U", "V", "W"), ("uo", "vo", "wo"), ("ua", "va", "wa"),
    ("water_u", "water_v", "water_w"), ("uvel", "vvel", "wvel"),
    ("UVEL", "VVEL", "WVEL"), ("vozocrtx", "vomecrty", "vovecrtz"),
    ("ugos", "vgos", ""), ("u10", "v10", ""), ("ux", "uy", "uz"), ("vx", "vy", "vz"),
    ("velocity_x", "velocity_y", "velocity_z"),
)  # fmt: skip
_STANDARD_NAMES = (
    ("eastward_sea_water_velocity", "northward_sea_water_velocity",
     "upward_sea_water_velocity"),
    ("sea_water_x_velocity", "sea_water_y_velocity", "upward_sea_water_velocity"),
    ("eastward_wind", "northward_wind", "upward_air_velocity"),
    ("x_wind", "y_wind", "upward_air_velocity"),
)  # fmt: skip
_DIMENSIONS = {
    "t": {"t", "time", "times", "time_counter", "ocean_time", "valid_time"},
    "z": {"z", "depth", "depthu", "depthv", "deptht", "depthw", "lev", "level", "nz",
          "height", "altitude", "zc", "zt", "k", "zlev", "elevation"},
    "y": {"y", "lat", "latitude", "ny", "nlat", "yc", "yt", "yu", "j", "yh", "rlat"},
    "x": {"x", "lon", "longitude", "nx", "nlon", "xc", "xt", "xu", "i", "xh", "rlon"},
}  # fmt: skip
_AXIS_UNITS = {"degrees_east": "x", "degrees_north": "y", "degree_east": "x"}
_STANDARD_AXES = {"longitude": "x", "latitude": "y", "depth": "z", "time": "t"}


def velocity_variables(
    dataset: Any, names: Sequence[str] | None, source: str
) -> tuple[str, ...]:
    """The two or three variables of the velocity; ValueError lists what there is."""
    if names is not None:
        missing = [name for name in names if name not in dataset]
        if not missing and len(names) in (2, 3):
            return tuple(names)
    else:
        named = {str(dataset[n].attrs.get("standard_name")): n for n in dataset}
        tables = [dict(zip(t, t, strict=True)) for t in GRID_VELOCITIES]
        for table in [
            *tables,
            *({s: named.get(s, "") for s in t} for t in _STANDARD_NAMES),
        ]:
            found = [name for name in table.values() if name and name in dataset]
            if found[:2] == list(table.values())[:2]:
                return tuple(found)
    there = ", ".join(str(name) for name in dataset) or "none"
    asked = "velocity variables" if names is None else f"variables {tuple(names)}"
    raise ValueError(
        f"{source}: no two or three {asked}; the variables are {there}: give them as "
        'velocity_name=("u", "v")'
    )


def dimension_roles(variable: Any, source: str) -> dict[str, str]:
    """Which dimension is "t", "z", "y" and "x"; ValueError where one cannot be told."""
    roles: dict[str, str] = {}
    for dimension in variable.dims:
        role = _role(variable, dimension)
        if role is None or role in roles:
            raise ValueError(
                f"{source}: cannot tell which of time, z, y and x the dimension "
                f"{dimension!r} of {variable.name!r} {tuple(variable.dims)} is; "
                "give it a coordinate with the attribute axis = T, Z, Y or X"
            )
        roles[role] = dimension
    return roles


def _role(variable: Any, dimension: str) -> str | None:
    attributes: dict[str, Any] = {}
    if dimension in variable.coords:
        coordinate = variable.coords[dimension]
        attributes = coordinate.attrs
        if np.issubdtype(coordinate.dtype, np.datetime64):
            return "t"
    axis = str(attributes.get("axis", "")).lower()
    if axis in _DIMENSIONS:
        return axis
    standard = str(attributes.get("standard_name", ""))
    units = str(attributes.get("units", ""))
    by_name = (r for r, names in _DIMENSIONS.items() if dimension.lower() in names)
    return _STANDARD_AXES.get(standard) or _AXIS_UNITS.get(units) or next(by_name, None)
