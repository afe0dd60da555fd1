"""What the flow room of the studio tracks through: flows, files, domains and seeds.

Files are read by the readers of the command line, and only from the studio's folder.
"""

import base64
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxrig.static_arguments import freeze
from jaxrig.studio.rooms import Desk, required
from jaxtrace.bounds import AXES, Box
from jaxtrace.fields.analytic import as_field
from jaxtrace.fields.base import AbstractField
from jaxtrace.io.seed_files import spread_over
from jaxtrace.io.steps import LIST_EXTENSIONS, list_files, listed_steps
from jaxtrace.io.vtk_read import read_snapshot
from jaxtrace.tracking.boundaries.walls import Traced
from jaxtrace.tracking.seeding import random_seeds
from jaxtrace.types import is_url
from jaxtrace.workflow import tables
from jaxtrace.workflow.case import Case, load_case, read_case
from jaxtrace.workflow.prepare import (
    NEW_WORDS,
    find_domain,
    find_span,
    in_words,
    make_field,
    make_plan,
)
from jaxtrace.workflow.starter import facts, starter, survey

RUNS = "runs"
SUFFIXES = (
    *(".vtu", ".vti", ".vtr", ".vts", ".vtk", ".pvd", ".nc", ".h5", ".hdf5"),
    ".toml",
)
SNAPSHOTS = SUFFIXES[:5]
HDF5 = (".nc", ".h5", ".hdf5")
MOST_UNPACKED = 2 * 2**30  # bytes of the arrays of an upload
COUNTS = re.compile(rb"""(NumberOfPoints|NumberOfCells|Extent)\s*=\s*["']([-\d\s]+)""")
BOUNDARIES = ("reflective", "periodic", "absorbing", "clamping", "none", "walls")
PICTURE_NODES = 240  # along the longer side of the domain
MOST_CORNERS = 1_000
CLOUD = 0.03  # of the shorter side: the radius of the cloud at a point


@dataclass(frozen=True)
class Preset:
    """A domain, a span of time, a longest step and a boundary that suit a flow."""

    title: str
    bounds: tuple[float, ...]
    span: tuple[float, float]
    dt: float
    boundary: str = "reflective"


TURN = 2 * math.pi
PRESETS = {
    "double_gyre": Preset("Double gyre", (0, 2, 0, 1), (0, 20), 0.1),
    "taylor_green": Preset(
        "Taylor-Green vortices", (0, TURN, 0, TURN), (0, 10), 0.05, "periodic"
    ),
    "abc": Preset("ABC flow, in 3-D", (0, TURN) * 3, (0, 10), 0.05, "periodic"),
    "vortex": Preset("Vortex", (-1, 1, -1, 1), (0, 8), 0.02, "absorbing"),
    "rotation": Preset("Solid rotation", (-1, 1, -1, 1), (0, TURN), 0.05, "absorbing"),
    "saddle": Preset("Saddle", (-1, 1, -1, 1), (0, 2), 0.02, "absorbing"),
    "uniform": Preset("Uniform flow", (0, 2, 0, 1), (0, 2), 0.05, "periodic"),
    "moving_eddy": Preset(
        "Moving eddy, in meters", (-4e3, 8e3, -6e3, 4e3), (0, 86_400), 300, "absorbing"
    ),
}


def series(names: Sequence[str]) -> list[dict[str, Any]]:
    """Return files by name; those that differ in one number only, as one pattern."""
    groups: dict[str, list[str]] = {}
    for name in names:
        if not name.startswith(f"{RUNS}/"):
            groups.setdefault(re.sub(r"\d+(?=\D*$)", "*", name), []).append(name)
    found = []
    for pattern, members in groups.items():
        if len(members) > 1 and "*" in pattern:
            found.append({"file": pattern, "files": len(members)})
        else:
            found += [{"file": name, "files": 1} for name in members]
    return found


def source_case(desk: Desk, request: Mapping[str, Any]) -> Case:
    """Return the case that fits a flow or a file, before anyone has changed it."""
    given = required(request, "source", dict)
    if "flow" in given:
        return flow_case(required(given, "flow", str))
    name = required(given, "file", str)
    path = desk.folder.inside(name)
    files = _matches(desk, path)
    if path.suffix.lower() == ".toml":
        return _checked_case(desk, desk.folder.file(name))
    with desk.lock:
        held = desk.held.setdefault("surveys", {})
        stamp = [(file, file.stat().st_mtime_ns) for file in files]
        if held.get(name, (None,))[0] != stamp:
            with in_words(NEW_WORDS):
                found = survey(str(path), allow_nan=bool(given.get("allow_nan")))
            held[name] = (stamp, found)
        found = held[name][1]
    return read_case(tomllib.loads(starter(found, desk.folder.root)))


def flow_case(name: str) -> Case:
    """Return the case of an analytic flow on the domain that suits it."""
    flow = tables.Flow(name)
    preset = PRESETS.get(name)
    if preset is None:
        raise ValueError(f"the studio has no domain for {name!r}: write a case file")
    pairs = [*preset.bounds, *((0.0, 0.0) if len(preset.bounds) == 4 else ())]
    corners = (tuple(map(float, pairs[0::2])), tuple(map(float, pairs[1::2])))
    return Case(
        flow=flow,
        boundary=tables.Boundary(preset.boundary, freeze({"bounds": corners})),
        time=tables.Time(dt=preset.dt, time_span=tuple(map(float, preset.span))),
    )


def _matches(desk: Desk, path: Path) -> list[Path]:
    """Return the files that readers take a name or pattern for, and those that these
    name in turn; ValueError unless all of them lie inside the folder.
    """
    found = [path] if path.is_dir() else list_files(path)
    lists = [file for file in found if file.suffix.lower() in LIST_EXTENSIONS]
    named = [part for file in lists for s in listed_steps(file) for part in s.files]
    return [desk.folder.existing(file) for file in (*found, *named)]


def _checked_case(desk: Desk, path: Path) -> Case:
    """Return a case whose files all lie in the folder, in the studio's precision."""
    case = load_case(path)
    named = [
        *case.sample.files,
        *([case.particles.file] if case.particles.file else []),
    ]
    if case.data is not None:
        pattern = case.data.pattern
        named += [pattern] if isinstance(pattern, str) else pattern
    for name in named:
        if is_url(name):
            raise ValueError(
                f"{name} is an address: the studio reads files of its folder only, "
                "`jaxrig trace run` reads both"
            )
        _matches(desk, desk.folder.inside(name))
    # float64 is switched on for the whole process, rooms that compute included.
    return replace(case, tracking=replace(case.tracking, dtype="float32", devices=None))


def check_upload(desk: Desk, path: Path) -> None:
    """Read an upload as the command line would, unless it unpacks to too much."""
    size = _unpacked_bytes(path)
    if size > MOST_UNPACKED:
        raise ValueError(
            f"the arrays of {path.name} take {size / 2**30:,.0f} GiB: an upload has at "
            f"most {MOST_UNPACKED // 2**30}, put larger files in the studio's folder"
        )
    case = source_case(desk, {"source": {"file": desk.folder.name(path)}})
    if path.suffix.lower() == ".toml":
        make_plan(case)


def _unpacked_bytes(path: Path) -> int:
    """Return the bytes that the header of a file announces; it may hold far fewer.

    ValueError for HDF5 whose values lie in other files, which may be outside.
    """
    if path.suffix.lower() in HDF5:
        return _hdf5_bytes(path)
    counts = [
        (kind, [int(number) for number in numbers.split()])
        for kind, numbers in COUNTS.findall(path.read_bytes())
    ]
    nodes = [
        math.prod(b - a + 1 for a, b in zip(n[::2], n[1::2], strict=False))
        if kind == b"Extent"
        else n[0]
        for kind, n in counts
    ]
    return max(nodes, default=0) * 3 * 4  # a vector in float32


def _hdf5_bytes(path: Path) -> int:
    import h5py

    if not h5py.is_hdf5(path):
        return 0
    sizes = [0]

    def see(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            links = [item.external] if item.external else []
            places = item.virtual_sources() if item.is_virtual else ()
            links += [place for place in places if place.file_name != "."]
            sizes.append(item.nbytes)
        else:
            kinds = [item.get(key, getlink=True) for key in item]
            links = [one for one in kinds if isinstance(one, h5py.ExternalLink)]
        if links:
            raise ValueError(f"{path.name}: values of {name} lie in other files")

    with h5py.File(path) as file:
        see("/", file)
        file.visititems(see)
    return sum(sizes)


def look(desk: Desk, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the domain, times and speeds of a source, with a picture of the speed."""
    case = source_case(desk, request)
    field, notes = make_field(case)
    first = as_field(field)
    domain, span = find_domain(case, first), find_span(case, field)
    if case.data is not None and span[0] == -math.inf:
        span = tuple(case.time.time_span or (0.0, 1.0))
    given = desk.held.get("surveys", {}).get(request["source"].get("file"))
    words = facts(given[1]) if given else list(notes)
    dates = getattr(field, "_source_info", {}).get("time_units", "")
    return domain_facts(domain, first) | {
        "span": list(span),
        "dt": case.time.dt,
        "boundary": case.boundary.type,
        "integrator": case.tracking.integrator,
        "time_units": str(dates),
        "notes": words,
        "boundaries": _boundaries(case, first),
        "variables": scalar_names(case),
        "picture": _speed_picture(first, domain, span[0]),
    }


def scalar_names(case: Case) -> list[str]:
    """Return the scalars in the data of a case that particles can be colored by."""
    if case.data is None:
        return []
    pattern = case.data.pattern
    path = Path(pattern if isinstance(pattern, str) else pattern[0])
    path = next(iter(sorted(path.parent.glob(path.name))), path)
    if path.suffix.lower() in SNAPSHOTS:
        found = read_snapshot(path)
        arrays = {**found.cell_arrays, **found.arrays}
        return [name for name, values in arrays.items() if values.shape[-1] == 1]
    if path.suffix.lower() != ".nc":
        return []
    import xarray

    with xarray.open_dataset(path, decode_times=False) as data:
        return [str(name) for name, values in data.items() if values.ndim > 1]


def _boundaries(case: Case, field: AbstractField) -> list[str]:
    """Return the boundaries that suit a field, that of the case first."""
    fitting = [
        name
        for name in BOUNDARIES
        if (name != "walls" or isinstance(field, Traced))
        and (name != "none" or case.flow is None)
        and (name == "none" or field.sphere is None)
    ]
    own = case.boundary.type
    return [own, *(name for name in fitting if name != own)]


def domain_facts(domain: Box, field: AbstractField) -> dict[str, Any]:
    """Return what pages need to draw in a domain."""
    axes = shown_axes(domain)
    return {
        "lo": domain.lo.tolist(),
        "hi": domain.hi.tolist(),
        "axes": axes,
        "names": ["lon", "lat", "z"] if field.sphere is not None else list(AXES),
        "sphere": None if field.sphere is None else float(field.sphere.radius),
    }


def shown_axes(domain: Box) -> list[int]:
    """Return the axes that are shown: two, or three of a box that is not flat."""
    active = np.flatnonzero(domain.active).tolist()
    return active if len(active) > 1 else [0, 1]


def _speed_picture(field: AbstractField, domain: Box, time: float) -> dict[str, Any]:
    """Return a picture of the speed over the plane in the middle."""
    across, up = shown_axes(domain)[:2]
    longest = max(domain.size[across], domain.size[up])
    counts = [
        max(2, round(PICTURE_NODES * float(domain.size[axis] / longest)))
        for axis in (across, up)
    ]
    points = np.empty((counts[1], counts[0], 3), np.float32)
    points[:] = (domain.lo + domain.hi) / 2
    ends = [(domain.lo[a], domain.hi[a]) for a in (across, up)]
    x, y = (np.linspace(*e, n) for e, n in zip(ends, counts, strict=True))
    points[..., across], points[..., up] = np.meshgrid(x, y)
    flat = points.reshape(-1, 3)
    speed = np.linalg.norm(np.asarray(field.sample_at_positions(flat, time)), axis=1)
    known = np.asarray(field.contains(flat, time))
    land = field.on_land(jnp.asarray(flat))
    if land is not None:
        known &= ~np.asarray(land)
    return as_picture(np.where(known, speed, np.nan).reshape(counts[::-1]))


def as_picture(values: np.ndarray) -> dict[str, Any]:
    """Return values over a plane, row by row from the bottom, as bytes.

    There are 255 levels between their ends; the last stands for no value.
    """
    known = np.isfinite(values)
    seen = values[known] if known.any() else np.zeros(1)
    low, high = float(seen.min()), float(seen.max())
    scaled = np.clip((np.nan_to_num(values) - low) / max(high - low, 1e-30), 0, 1)
    levels = np.where(known, np.round(254 * scaled), 255).astype(np.uint8)
    return {
        "columns": values.shape[1],
        "rows": values.shape[0],
        "range": [low, high],
        "data": base64.b64encode(levels.tobytes()).decode(),
    }


def _places(given: Sequence[Any], what: str) -> np.ndarray:
    """Return places in the plane; ValueError unless each is two finite numbers."""
    numbers = [number for place in given if isinstance(place, list) for number in place]
    pairs = all(isinstance(place, list) and len(place) == 2 for place in given)
    if not pairs or any(type(n) not in (int, float) for n in numbers):
        raise ValueError(f"{what} is not two finite numbers")
    if not np.isfinite(found := np.array(given, float)).all():
        raise ValueError(f"{what} is not two finite numbers")
    return found


def _ring(shape: Mapping[str, Any]) -> np.ndarray:
    """Return the corners of a polygon that was drawn."""
    given = required(shape, "points", list)
    if not 3 <= len(given) <= MOST_CORNERS:
        raise ValueError(f"a polygon of {len(given)} corners: 3 to {MOST_CORNERS:,}")
    return _places(given, "a corner of a polygon")


def seed_positions(
    shapes: Sequence[Mapping[str, Any]], count: int, domain: Box
) -> np.ndarray:
    """Return seeds for what was drawn: clouds at points, lines, areas, everything.

    Each shape gets an equal share. Across the plane that is drawn on, points and lines
    lie in the middle; boxes and polygons fill the domain.
    """
    if not shapes:
        raise ValueError("no seeds: draw a point, a line or a box, or fill the domain")
    across, up = shown_axes(domain)[:2]
    parts = []
    for number, shape in enumerate(shapes):
        share = count // len(shapes) + (number < count % len(shapes))
        kind = required(shape, "kind", str)
        wanted = {"point": ("from",), "line": ("from", "to"), "box": ("from", "to")}
        given = [required(shape, key, list) for key in wanted.get(kind, ())]
        ends = [_places([end], f"an end of a {kind}")[0] for end in given]
        places = random_seeds(share, domain, number).astype(np.float64)
        if kind in ("point", "line"):
            places[:] = (domain.lo + domain.hi) / 2
        plane = places[:, [across, up]]
        if kind == "point":
            radius = CLOUD * float(min(domain.size[across], domain.size[up]))
            draw = np.random.default_rng(number)
            angle, length = TURN * draw.random(share), np.sqrt(draw.random(share))
            circle = np.stack([np.cos(angle), np.sin(angle)], 1)
            plane = ends[0] + radius * length[:, None] * circle
        elif kind == "line":
            along = np.linspace(0, 1, share)[:, None]
            plane = ends[0] + along * (ends[1] - ends[0])
        elif kind == "box":
            low, high = np.minimum(*ends), np.maximum(*ends)
            box = np.random.default_rng(number).random((share, 2))
            plane = low + box * (high - low)
        elif kind == "polygon":
            plane = spread_over([[_ring(shape)]], share, number, sphere=False)[:, :2]
        elif kind != "all":
            raise ValueError(
                f"{kind!r} is not a kind of seeds: point, line, box, polygon, all"
            )
        places[:, [across, up]] = plane
        parts.append(places)
    placed = np.concatenate(parts)
    return np.clip(placed, domain.lo, domain.hi)
