"""What the CF conventions say about variables: their axis, units, sign and values."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxtrace.sphere import RADIAN

#: Variables that together are a velocity, in the order tried; the third may be absent.
GRID_VELOCITIES = (
    ("u", "v", "w"), ("u", "v", "ww"), ("U", "V", "W"), ("uo", "vo", "wo"),
    ("ua", "va", "wa"),
    ("water_u", "water_v", "water_w"), ("uvel", "vvel", "wvel"),
    ("UVEL", "VVEL", "WVEL"), ("vozocrtx", "vomecrty", "vovecrtz"),
    ("sozocrtx", "somecrty", ""), ("uReconstructZonal", "uReconstructMeridional", ""),
    ("ugos", "vgos", ""), ("u10", "v10", ""), ("ux", "uy", "uz"), ("vx", "vy", "vz"),
    ("velocity_x", "velocity_y", "velocity_z"), ("u-vel", "v-vel", ""),
    ("u_eastward", "v_northward", ""), ("U10", "V10", ""), ("ssu", "ssv", ""),
    ("eastward_eulerian_current_velocity", "northward_eulerian_current_velocity", ""),
    ("horizontalVelX", "horizontalVelY", "verticalVelocity"),
)  # fmt: skip
#: Their standard names: of the sea, the air and the ice; the third may be absent.
_STANDARD_NAMES = tuple(
    (f"{kind}{east}", f"{kind}{north}", up)
    for kind in ("", "surface_", "geostrophic_", "surface_geostrophic_", "barotropic_")
    for east, north, up in (
        ("eastward_sea_water_velocity", "northward_sea_water_velocity",
         "upward_sea_water_velocity"),
        ("sea_water_x_velocity", "sea_water_y_velocity", "upward_sea_water_velocity"),
        ("x_sea_water_velocity", "y_sea_water_velocity", "upward_sea_water_velocity"),
        ("eastward_wind", "northward_wind", "upward_air_velocity"),
        ("eastward_wind", "northward_wind", "lagrangian_tendency_of_air_pressure"),
        ("x_wind", "y_wind", "upward_air_velocity"),
        ("eastward_sea_ice_velocity", "northward_sea_ice_velocity", ""),
        ("sea_ice_x_velocity", "sea_ice_y_velocity", ""),
        ("sea_surface_wave_stokes_drift_eastward_velocity",
         "sea_surface_wave_stokes_drift_northward_velocity", ""),
        ("sea_surface_wave_stokes_drift_x_velocity",
         "sea_surface_wave_stokes_drift_y_velocity", ""),
    )
)  # fmt: skip
#: What models add to a standard name: CROCO and xmitgcm the place on the grid.
_ADDED = re.compile(r"_at_\w+_location$|_assuming_no_tide$")
#: Parts of names that differ between a first component and the second.
_PARTNERS = (("u", "v"), ("U", "V"), ("east", "north"), ("zonal", "meridional"),
             ("x", "y"), ("X", "Y"))  # fmt: skip
_EAST = ("degrees_east", "degree_east", "degree_e", "degrees_e", "degreee", "degreese")
_NORTH = tuple(
    f"{degree}{end}"
    for degree in ("degree", "degrees")
    for end in ("_north", "_n", "n")
)
_STANDARD_AXES = {
    **dict.fromkeys(("longitude", "grid_longitude", "projection_x_coordinate"), "x"),
    **dict.fromkeys(("latitude", "grid_latitude", "projection_y_coordinate"), "y"),
    **dict.fromkeys(("depth", "height", "altitude", "air_pressure"), "z"),
    **{"model_level_number": "z", "time": "t"},
}
_NAMES = {
    "t": {"t", "time", "times", "time_counter", "time_centered", "ocean_time",
          "valid_time", "scrum_time"},
    "z": {"z", "depth", "depthu", "depthv", "deptht", "depthw", "lev", "level", "nz",
          "height", "altitude", "zc", "zt", "k", "zlev", "elevation", "plev", "z_t",
          "pressure_level", "isobaricinhpa", "pressure", "s_rho", "s_w", "siglay",
          "nz1"},
    "y": {"y", "lat", "latitude", "ny", "nlat", "yc", "yt", "yu", "j", "yh", "rlat"},
    "x": {"x", "lon", "longitude", "nx", "nlon", "xc", "xt", "xu", "i", "xh", "rlon"},
}  # fmt: skip
#: Types of axes as netCDF-Java and Panoply write them, and words of long names.
_AXIS_TYPES = {
    **{"lon": "x", "geox": "x", "lat": "y", "geoy": "y", "time": "t"},
    **{"height": "z", "pressure": "z", "geoz": "z"},
}
_LONG_NAMES = {"longitude": "x", "latitude": "y", "time": "t", "depth": "z",
               "height": "z", "altitude": "z"}  # fmt: skip
#: Standard name, units, beginnings of names in files of models, and largest value.
_ANGLES = {
    "x": ("longitude", _EAST, ("lon", "nav_lon", "glam", "geolon", "ulon", "tlon",
          "clon", "xlon"), 360.0),
    "y": ("latitude", _NORTH, ("lat", "nav_lat", "gphi", "geolat", "ulat", "tlat",
          "clat", "xlat"), 90.0),
}  # fmt: skip

_WORDS = (
    (r"[{}]", ""),
    (r"[·⋅]|(?<=\w)\*(?=\w)", " "),
    (r"centimet(er|re)s?", "cm"),
    (r"millimet(er|re)s?", "mm"),
    (r"kilomet(er|re)s?", "km"),
    (r"met(er|re)s?", "m"),
    (r"seconds?|sec", "s"),
    (r"degrees?", "deg"),
    (r"pascals?", "pa"),
    (r"days?", "d"),
    (r"hours?|hr", "h"),
    (r"(\*\*|\^)", ""),
    (r"\s+per\s+", "/"),
)
SPEEDS = {
    "m/s": 1.0, "cm/s": 0.01, "mm/s": 1e-3, "km/h": 1 / 3.6, "m/d": 1 / 86400,
    **dict.fromkeys(("knot", "knots", "kt", "kts"), 0.514444),
    "km/s": 1e3, "km/d": 1 / 86.4, "m/h": 1 / 3600,
}  # fmt: skip
PRESSURE_RATES = {"pa/s": 1.0, "hpa/s": 100.0}
TURNING = {"deg/s", "degree/s", "rad/s", "radian/s"}
LENGTHS = {"m": 1.0, "cm": 0.01, "km": 1e3}
PRESSURES = {
    "pa": 1.0, **dict.fromkeys(("hpa", "mbar", "millibar", "millibars", "mb"), 100.0),
    "dbar": 1e4, "decibar": 1e4,
}  # fmt: skip
RADIANS = {"radian", "radians", "rad"}


def velocity_variables(
    dataset: Any, names: Sequence[str] | None, source: str
) -> tuple[str, ...]:
    """Return the two or three variables of the velocity; ValueError lists what there
    is.
    """
    if names is not None:
        missing = [name for name in names if name not in dataset]
        if not missing and len(names) in (2, 3):
            return tuple(names)
    else:
        named = {_ADDED.sub("", _standard(dataset[n])): n for n in dataset}
        named |= {_standard(dataset[n]): n for n in dataset}
        stated = ([named.get(name, "") for name in t] for t in _STANDARD_NAMES)
        choices = [list(t) for t in (*stated, *GRID_VELOCITIES)]
        # Of standard names that fit, those with a third component come first.
        choices.sort(key=lambda t: not all(name and name in dataset for name in t))
        for first, second, third in choices:
            if first and second and first in dataset and second in dataset:
                return (first, second, third) if third in dataset else (first, second)
        pairs = _speed_pairs(dataset)
        if len(pairs) == 1:
            return pairs[0]
    there = ", ".join(str(name) for name in dataset) or "none"
    if names is not None and len(set(names)) == 1:
        raise ValueError(f"{source}: no variable {names[0]!r}; there are {there}")
    asked = "velocity variables" if names is None else f"variables {tuple(names)}"
    raise ValueError(
        f"{source}: no two or three {asked}; the variables are {there}: give them as "
        'velocity_field_name=("u", "v")'
    )


def split_vector(dataset: Any, names: Any) -> tuple[Any, Sequence[str] | None]:
    """Return a dataset whose vector variable is two or three, and their names.

    That is the variable of a single name; without a name `velocity`, or SCHISM's `hvel`
    or `dahv`.
    """
    usual = ("velocity", "hvel", "dahv") if names is None else ()
    wanted = (names,) if isinstance(names, str) else usual
    if names is not None and not wanted and names[0] not in dataset.variables:
        wanted = (names[0].removesuffix("_x"),)  # components, as they are called here
    for name in wanted:
        there = dataset.variables.get(name)
        last = None if there is None or there.ndim < 2 else there.dims[-1]
        along = last is None or axis_role(str(last), {}) is not None
        if not along and dataset.sizes[last] in (2, 3):
            parts = {
                f"{name}_{way}": dataset[name].isel({last: i}, drop=True)
                for i, way in enumerate("xyz"[: dataset.sizes[last]])
            }
            rise = "vertical_velocity" if name == "hvel" and names is None else ""
            three = (*parts, rise) if rise in dataset.variables else tuple(parts)
            by_name = names is not None and not isinstance(names, str)
            return dataset.assign(parts), names if by_name else three
    return dataset, wanted if isinstance(names, str) else names


def _standard(variable: Any) -> str:
    return str(variable.attrs.get("standard_name", ""))


def _speed_pairs(dataset: Any) -> list[tuple[str, str]]:
    """Return pairs of speeds whose names differ by a direction: `ubar` and `vbar`."""
    units = {str(n): canonical(dataset[n].attrs.get("units", "")) for n in dataset}
    pairs = {
        (name, other)
        for name, unit in units.items()
        for one, second in _PARTNERS
        for place in re.finditer(one, name)
        if (other := name[: place.start()] + second + name[place.end() :]) in units
        and unit in SPEEDS
        and units[other] == unit
        and not re.search("err|std|gust|max|min|stress|tend", name.lower())
    }
    return sorted(pairs)


def canonical(units: Any) -> str:
    """Return units in one spelling: "m s**-1" and "meters per second" are "m/s"."""
    text = str(units).strip().lower()
    for pattern, word in _WORDS:
        bounded = pattern if word in ("", " ", "/") else rf"\b({pattern})\b"
        text = re.sub(bounded, word, text)
    over = re.fullmatch(r"([a-z]+)[. ]?\s*([a-z]+)\s*-1", text)
    if over:
        return f"{over[1]}/{over[2]}"
    joined = re.fullmatch(r"(mm|cm|km|hpa|pa|m)(s|h|d)-1", text)
    return f"{joined[1]}/{joined[2]}" if joined else re.sub(r"\s*/\s*", "/", text)


def axis_role(name: str, attributes: Mapping[str, Any]) -> str | None:
    """Return "t", "z", "y" or "x".

    By axis, standard name, units, sign, type, name, then long name: the first that says
    it.
    """
    axis = str(attributes.get("axis", "")).lower()
    if axis in _NAMES:
        return axis
    units = str(attributes.get("units", "")).strip().lower()
    by_units = "x" if units in _EAST else "y" if units in _NORTH else None
    by_units = "t" if " since " in units else by_units
    by_units = "z" if canonical(units) in PRESSURES else by_units
    standard = _ADDED.sub("", str(attributes.get("standard_name", "")))
    found = _STANDARD_AXES.get(standard) or by_units
    if found or "positive" in attributes:
        return found or "z"
    found = _AXIS_TYPES.get(str(attributes.get("_CoordinateAxisType", "")).lower())
    named = (role for role, known in _NAMES.items() if name.lower() in known)
    words = re.findall(r"[a-z]+", str(attributes.get("long_name", "")).lower())
    told = (_LONG_NAMES[word] for word in words if word in _LONG_NAMES)
    return found or next(named, None) or next(told, None)


def label_dimensions(dataset: Any) -> Any:
    """Return a dataset whose dimensions have coordinates, those that it names else.

    OSCAR has the latitudes `lat` of the dimension `latitude`, xmitgcm the depths `Z` of
    the dimension `k`, whose own coordinate only counts.
    """
    for dimension in dataset.dims:
        own = dataset.variables.get(dimension)
        found = [
            variable
            for name, variable in dataset.variables.items()
            if name != dimension
            and variable.dims == (dimension,)
            and variable.dtype.kind in "fiu"
            # "Height above the mean depth" is no depth: a long name is not enough.
            and axis_role(str(name), {**variable.attrs, "long_name": ""})
        ]
        # A time, longitude or depth that happens to count is what it is called.
        index = str(dimension).lower()
        counts = own is not None and only_counts(own)
        counts = counts and (index in ("i", "j", "k") or axis_role(index, {}) is None)
        if (own is None or counts) and len(found) == 1:
            there = (dimension, found[0].values, found[0].attrs)
            dataset = dataset.assign_coords({dimension: there})
    return dataset


def only_counts(coordinate: Any) -> bool:
    """Return whether a coordinate is the numbers of its nodes, and nothing more."""
    # xmitgcm's dimensions have standard names: "z_grid_index".
    named = "index" not in (_standard(coordinate) or "index")
    if named or "units" in coordinate.attrs or coordinate.size == 0:
        return False
    values = np.asarray(coordinate.values)
    even = values.dtype.kind in "iu" and bool((np.diff(values) == 1).all())
    return even and values[0] in (0, 1)


def is_geographic(axes: Mapping[str, Any], label: str) -> str | None:
    """Return how the coordinates "x" and "y" are known as longitude and latitude.

    That is "stated" by attributes, or "guessed" from names; None if they are not.
    """
    if "x" not in axes or "y" not in axes:
        return None
    stated, named = [], []
    for role, (standard, units, beginnings, limit) in _ANGLES.items():
        coordinate, unit = axes[role], _unit(axes[role])
        given, name = _standard(coordinate), str(coordinate.name).lower()
        if given == f"grid_{standard}":
            raise ValueError(
                f"{label}: {coordinate.name!r} is {given}, of a rotated pole: regrid "
                "to longitude and latitude, or give geometry='flat'"
            )
        turned = unit in RADIANS and standard[:3] in name
        typed = str(coordinate.attrs.get("_CoordinateAxisType", "")).lower()
        said = _ADDED.sub("", given) == standard or typed == standard[:3]
        stated.append(said or unit in units or turned)
        fits = np.nanmax(np.abs(np.asarray(coordinate.values, np.float64))) <= limit
        bare = not unit or unit.startswith("degree")
        begins = name.startswith(beginnings) or unit.startswith("degree")
        begins |= standard in str(coordinate.attrs.get("long_name", "")).lower()
        named.append(bare and fits and begins)
    if all(stated):
        return "stated"
    return "guessed" if all(map(any, zip(stated, named, strict=True))) else None


def _unit(variable: Any) -> str:
    return str(variable.attrs.get("units", "")).strip().lower()


def angle_role(coordinate: Any) -> str | None:
    """Return whether a variable is a longitude, "x", or a latitude, "y"."""
    unit = _unit(coordinate)
    standard = _ADDED.sub("", _standard(coordinate))
    stated = _STANDARD_AXES.get(standard)
    if stated in ("x", "y") and "projection" not in standard:
        return stated
    roles = [role for role, (_, units, _, _) in _ANGLES.items() if unit in units]
    if not roles and (not unit or unit.startswith(("degree", "radian"))):
        name = str(coordinate.name).lower()
        roles = [role for role, angle in _ANGLES.items() if name.startswith(angle[2])]
    return roles[0] if roles else None


def find_positions(dataset: Any, variable: Any) -> tuple[Any, Any] | None:
    """Return two-dimensional longitudes and latitudes of a variable, if there are.

    Those that its attribute `coordinates` names come first, then coordinates, then
    data variables; of several the first that are a pair on the same dimensions.
    """
    listed = variable.encoding.get("coordinates", variable.attrs.get("coordinates", ""))
    names = [*str(listed).split(), *variable.coords, *map(str, dataset.variables)]
    names.sort(key=lambda name: not str(name).endswith(f"_{variable.name}"))
    found: dict[str, list[Any]] = {"x": [], "y": []}
    for name in dict.fromkeys(n for n in names if n in dataset.variables):
        there = dataset[name]
        if there.ndim == 3 and angle_role(there) and _stays(there):
            there = there.isel({there.dims[0]: 0})
        horizontal = there.ndim == 2 and set(there.dims) <= set(variable.dims)
        role = angle_role(there) if horizontal else None
        if role in found:
            found[role].append(there)
    for lon in found["x"]:
        for lat in found["y"]:
            if set(lat.dims) == set(lon.dims):
                order = [d for d in variable.dims if d in lon.dims]
                return lon.transpose(*order), lat
    return None


def _stays(positions: Any) -> bool:
    """Return whether positions with instants are at all of them the same: WRF, NEMO."""
    values = np.asarray(positions.values)
    return bool((values == values[:1]).all())


def points_east(variable: Any) -> bool:
    """Return whether a first component is said to be eastward, not along a grid."""
    said = [str(variable.attrs.get(key, "")) for key in ("standard_name", "long_name")]
    words = " ".join([str(variable.name), *said]).lower()
    return any(word in words for word in ("eastward", "zonal", "water_u", "ugos"))


def find_angle(dataset: Any, variable: Any) -> Any:
    """Return the stored angle from east to the grid's first direction, if there is."""
    for name in ("angle", "ANGLE"):
        there = dataset.get(name)
        if there is None or there.ndim != 2:
            continue
        if set(there.dims) <= set(variable.dims):
            stated = _unit(there).startswith("deg")
            return there if stated else there.assign_attrs(units="radians")
    return None


def degrees(coordinate: Any) -> np.ndarray:
    """Return an angle's values in degrees."""
    values = np.asarray(coordinate.values, np.float64)
    return values * RADIAN if _unit(coordinate) in RADIANS else values


def lon_first(names: Any, dataset: Any) -> tuple[str, str]:
    """Return the names of a longitude and a latitude in this order."""
    rank = {"x": 0, "y": 2}
    one, other = sorted(names, key=lambda n: rank.get(angle_role(dataset[n]) or "", 1))
    return one, other


def place_nodes(lon: Any, lat: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return degrees of nodes, NaN where NEMO left out processors of land: twice 0."""
    x, y = degrees(lon), degrees(lat)
    nowhere = (x == 0) & (y == 0) if x.shape == y.shape else np.zeros(1, bool)
    if nowhere.sum() > 1:
        x, y = np.where(nowhere, np.nan, x), np.where(nowhere, np.nan, y)
    return x, y


def find_radius(dataset: Any, variable: Any) -> float | None:
    """Return the radius in the grid mapping of a variable, if it has one.

    An ellipsoid has the mean one, (2a + b) / 3.
    """
    name = variable.attrs.get("grid_mapping", variable.encoding.get("grid_mapping"))
    # "crs: lat lon" is CF's longer form.
    mapping = dataset.get(name.partition(":")[0]) if isinstance(name, str) else None
    if mapping is None:
        return None
    stated = mapping.attrs
    if "earth_radius" in stated:
        return float(stated["earth_radius"])
    if "semi_major_axis" not in stated:
        return None
    wide = tall = float(stated["semi_major_axis"])
    if stated.get("inverse_flattening"):  # 0 stands for a sphere
        tall = wide * (1 - 1 / float(stated["inverse_flattening"]))
    return (2 * wide + float(stated.get("semi_minor_axis", tall))) / 3


@dataclass(frozen=True)
class Vertical:
    """How an axis becomes z, upward: a factor with its sign, and its kind."""

    factor: float = 1.0
    pressure: bool = False
    known: bool = True
    words: str = "no vertical axis"


def read_vertical(coordinate: Any, ocean: bool, label: str) -> Vertical:
    """Return how a vertical axis is turned into meters (or pascals) upward."""
    attributes, name = coordinate.attrs, str(coordinate.name)
    if follows_terrain(coordinate) and coordinate.size > 1:
        raise ValueError(
            f"{label}: {name!r} follows the terrain, and levels are understood as "
            "depths, heights or pressures; give a file of one level, or one "
            "interpolated to depths"
        )
    unit = canonical(attributes.get("units", ""))
    pressure = unit in PRESSURES
    table = PRESSURES if pressure else LENGTHS
    known = unit in table
    if not known and unit not in ("", "1", "level", "levels"):
        raise ValueError(
            f"{label}: the units {attributes['units']!r} of {name!r} are unknown; give "
            f"the axis one of {', '.join((*LENGTHS, *PRESSURES))}, or geometry='flat'"
        )
    standard = _ADDED.sub("", _standard(coordinate))
    stated = str(attributes.get("positive", "")).lower()
    implied = pressure or standard == "depth" or name.lower().startswith("depth")
    values = np.asarray(coordinate.values, np.float64)
    guess = ocean and not standard and values.size > 1 and bool((values >= 0).all())
    # xmitgcm: heights below 0, called depths that are positive downward.
    below = ocean and not pressure and bool((values <= 0).all() and values.any())
    down = stated == "down" if stated in ("up", "down") else implied or guess
    odd, down = below and down, down and not below
    words = "z = -pressure in Pa" if pressure else "z up" + ", depth = -z" * down
    if stated == "up" and standard == "depth":
        words += " (positive = up believed, against the standard name depth)"
    elif odd:
        words += f" ({name} is below 0, so it is not taken as positive downward)"
    elif guess and not implied and stated == "":
        words += f" (guessed: {name} without positive)"
    named = f"{standard} {attributes.get('long_name', '')}".lower()
    if re.search(r"z\*|z_?star", named):
        # z = eta + z* (H + eta) / H: what is tracked is z*.
        words += " (z*, from the free surface)"
    scale = table.get(unit, 1.0)
    return Vertical(-scale if down else scale, pressure, known, words)


def follows_terrain(coordinate: Any) -> bool:
    """Return whether levels are shares of a column and not depths."""
    standard = str(coordinate.attrs.get("standard_name", ""))
    named = str(coordinate.name).lower() in ("s_rho", "s_w", "siglay", "siglev")
    return named or any(w in standard for w in ("ocean_s_", "sigma_coord", "hybrid"))


def read_rise(variable: Any, unit: str, vertical: Vertical, label: str) -> float:
    """Return what turns a third component into the change of z."""
    rate = unit in PRESSURE_RATES
    if rate != vertical.pressure or (not rate and unit not in SPEEDS):
        axis = "pressures" if vertical.pressure else "heights or depths"
        raise ValueError(
            f"{label}: the units {unit!r} of {variable.name!r} do not fit an axis of "
            f"{axis}; to stay on levels give velocity_field_name= the two horizontal "
            "variables only"
        )
    standard = str(variable.attrs.get("standard_name", ""))
    down = rate or standard.startswith("downward")
    factor = PRESSURE_RATES[unit] if rate else SPEEDS[unit]
    return -factor if down else factor
