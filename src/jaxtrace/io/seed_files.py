"""Seeds from files: tables, points and polygons (GeoJSON), masks, or a recorded run."""

import csv
import json
import math
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from jaxrig.machine import import_extra
from jaxtrace.io.cf import degrees, is_geographic
from jaxtrace.io.convert import NETCDF, holds_trajectories, read_recorded
from jaxtrace.io.decoding import dimension_roles
from jaxtrace.settings import instant

PLACES = (("lon", "lat"), ("x", "y"))
HEIGHTS = ("z", "depth")
ENOUGH_TRIES = 1000  # of as many points: a polygon fills more of its box than that


@dataclass(frozen=True, eq=False)
class SeedTable:
    """Seeds (N, 3) with z upward, and when each is released, if the file says so."""

    positions: Float[np.ndarray, "seeds 3"]
    times: Sequence[float | str] | None = None  # numbers, or dates by ISO 8601


def read_seeds(
    path: str | os.PathLike[str], count: int = 1000, seed: int = 0, sphere: bool = True
) -> SeedTable:
    """Read seeds from a .csv, .geojson, mask (.nc) or recorded run (.zarr, .nc, .h5).

    A table has columns `lon`, `lat` or `x`, `y`, then perhaps `z` or `depth`, and
    `time`. Points of a GeoJSON file are seeds; over its polygons `count` seeds are
    spread at random, even per area on the `sphere` or else in the plane, and so over
    the nodes of a mask that are above 0, each with the cell around it. A run gives
    where its particles were at the end.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    suffix = path.suffix.lower()
    if suffix == ".csv":
        return _from_csv(path)
    if suffix in (".geojson", ".json"):
        return SeedTable(_from_geojson(path, count, seed, sphere))
    if holds_trajectories(path):
        last = read_recorded(path)
        return SeedTable(last.positions[-1][last.alive[-1]].astype(np.float64))
    if suffix == NETCDF:
        return SeedTable(_from_mask(path, count, seed))
    raise ValueError(
        f"{path}: seeds are read from .csv, .geojson, a mask (.nc) or a recorded run "
        "(.zarr, .nc, .h5): give one of them"
    )


def _from_csv(path: Path) -> SeedTable:
    with open(path, newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file, skipinitialspace=True)
        names = [name.strip().lower() for name in reader.fieldnames or ()]
        reader.fieldnames = names
        rows = list(reader)
    pair = next((p for p in PLACES if set(p) <= set(names)), None)
    if pair is None:
        raise ValueError(
            f"{path}: its columns are {', '.join(names) or 'none'}: name them lon,lat "
            "or x,y, then perhaps z or depth, and time"
        )
    if not rows:
        raise ValueError(f"{path}: no rows below the names of the columns: add seeds")
    column = lambda name: _numbers(path, name, [row[name] for row in rows])
    height = next((name for name in HEIGHTS if name in names), None)
    up = np.zeros(len(rows)) if height is None else column(height)
    up = -up if height == "depth" else up
    places = np.stack([column(pair[0]), column(pair[1]), up], axis=1)
    times = None
    if "time" in names:
        texts = [str(row["time"]).strip() for row in rows]
        if re.match(r"\d{4}-\d\d", texts[0]):
            lines = enumerate(texts, 2)  # the first line is that of the names
            times = [instant(t, f"{path}, line {line}: time") for line, t in lines]
        else:
            times = column("time").tolist()
    return SeedTable(places, times)


def _numbers(path: Path, name: str, texts: list[str | None]) -> np.ndarray:
    values = []
    for line, text in enumerate(texts, 2):  # the first line is that of the names
        try:
            values.append(float(text or ""))
        except ValueError:
            values.append(math.nan)
        if not math.isfinite(values[-1]):
            raise ValueError(
                f"{path}, line {line}: {name} is {text!r}: give a finite number, or "
                "leave the line out"
            )
    return np.array(values)


Ring = Float[np.ndarray, "corners 2"]


def _from_geojson(path: Path, count: int, seed: int, sphere: bool) -> np.ndarray:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        shapes = list(_geometries(content))
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not readable GeoJSON: {error}") from error
    points = [_point(p) for kind, parts in shapes if kind == "Point" for p in parts]
    polygons = [
        [np.array(ring, float)[:, :2] for ring in parts]
        for kind, parts in shapes
        if kind == "Polygon"
    ]
    if not (points or polygons):
        raise ValueError(f"{path}: no points and no polygons in it: draw some")
    spread = spread_over(polygons, count, seed, sphere)
    return np.concatenate([np.array(points).reshape(-1, 3), spread])


def _point(place: list[float]) -> list[float]:
    return [*map(float, place[:3]), *([0.0] * (3 - len(place)))]


def _geometries(content: Any) -> Iterator[tuple[str, list[Any]]]:
    """Yield points, and the rings of each polygon, of anything that GeoJSON nests."""
    kind = content["type"]
    if kind == "FeatureCollection":
        for feature in content["features"]:
            yield from _geometries(feature)
    elif kind == "Feature":
        yield from _geometries(content["geometry"])
    elif kind == "GeometryCollection":
        for geometry in content["geometries"]:
            yield from _geometries(geometry)
    elif kind in ("Point", "Polygon"):
        places = content["coordinates"]
        yield kind, [places] if kind == "Point" else places
    elif kind in ("MultiPoint", "MultiPolygon"):
        for part in content["coordinates"]:
            yield kind.removeprefix("Multi"), [part] if kind == "MultiPoint" else part
    else:
        raise ValueError(f"seeds are points and polygons, and there is a {kind}")


def spread_over(
    polygons: list[list[Ring]], count: int, seed: int = 0, sphere: bool = True
) -> Float[np.ndarray, "seeds 3"]:
    """Return seeds spread at random inside polygons, outside their holes.

    They are even per area: on a sphere, uniform in longitude and the sine of latitude.
    """
    if not polygons:
        return np.zeros((0, 3))
    generator = np.random.default_rng(seed)
    corners = np.concatenate([ring for rings in polygons for ring in rings])
    (west, south), (east, north) = corners.min(axis=0), corners.max(axis=0)
    ends = np.sin(np.radians([south, north])) if sphere else np.array([south, north])
    kept, found = [np.zeros((0, 2))], 0
    for _ in range(ENOUGH_TRIES):
        if found >= count:
            break
        draw = generator.random((max(count, 1), 2))
        up = ends[0] + draw[:, 1] * (ends[1] - ends[0])
        east_of = west + draw[:, 0] * (east - west)
        tall = np.degrees(np.arcsin(up)) if sphere else up
        tried = np.stack([east_of, tall], axis=1)
        held = [inside(tried, rings) for rings in polygons]
        kept.append(tried[np.any(held, axis=0)])
        found += len(kept[-1])
    if found < count:
        raise ValueError("the polygons have no area to speak of: draw larger ones")
    return np.pad(np.concatenate(kept)[:count], ((0, 0), (0, 1)))


def _from_mask(path: Path, count: int, seed: int) -> np.ndarray:
    """Return seeds spread at random over the cells around nodes that are above 0."""
    xarray = import_extra("xarray", "masks", "trace")
    with xarray.open_dataset(path, decode_times=False) as data:
        masks = [data[name].load() for name in data if data[name].ndim == 2]
    if len(masks) != 1:
        raise ValueError(
            f"{path}: {len(masks)} of its variables have two dimensions, and a mask is "
            "one, by latitude and longitude: give such a file"
        )
    roles = dimension_roles(masks[0], str(path))
    mask = masks[0].transpose(*(roles[role] for role in "yx"))
    axes = {role: mask[roles[role]] for role in "xy"}
    round_ = is_geographic(axes, str(path)) is not None
    x, y = degrees(axes["x"]), degrees(axes["y"])
    x = np.unwrap(x, period=360) if round_ else x
    wide, tall = np.gradient(x), np.gradient(y)
    ends = y + np.multiply.outer([-0.5, 0.5], tall)
    if round_:
        ends = np.sin(np.radians(np.clip(ends, -90, 90)))
    area = np.abs(np.multiply.outer(ends[1] - ends[0], wide)) * (mask.values > 0)
    if not area.any():
        raise ValueError(f"{path}: no value of {mask.name!r} is above 0: mark where")
    generator = np.random.default_rng(seed)
    row, column = np.divmod(
        generator.choice(area.size, count, p=area.ravel() / area.sum()), x.size
    )
    share = generator.random((2, count))
    up = ends[0, row] + share[1] * (ends[1] - ends[0])[row]
    up = np.degrees(np.arcsin(up)) if round_ else up
    east = x[column] + (share[0] - 0.5) * wide[column]
    return np.stack([east, up, np.zeros(count)], 1)


def inside(
    points: Float[np.ndarray, "points 2"], rings: list[Ring]
) -> Bool[np.ndarray, " points"]:
    """Return which points an odd number of edges of a polygon lies east of."""
    odd = np.zeros(len(points), bool)
    x, y = points.T
    for ring in rings:
        for (x0, y0), (x1, y1) in zip(ring, np.roll(ring, -1, axis=0), strict=True):
            crosses = (y0 > y) != (y1 > y)
            with np.errstate(divide="ignore", invalid="ignore"):
                at = x0 + (y - y0) * (x1 - x0) / (y1 - y0)
            odd ^= crosses & (x < at)
    return odd
