"""From files to fields: as arrays, as the documented field, or ready for compiled code.

A grid stays a grid and a mesh a mesh from the file to the device; a series larger than
the memory limit is streamed. Other variables are read to be sampled along paths.
"""

import dataclasses
import math
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from jaxrig.compile_cache import cache_folder, caches_allowed
from jaxtrace.config import memory_budget_bytes
from jaxtrace.fields.changing_mesh import (
    ChangingMeshField,
    MeshSlice,
    make_changing_field,
)
from jaxtrace.fields.clock import make_clock
from jaxtrace.fields.coast import let_slip
from jaxtrace.fields.interpolation import (
    MESH_OUTSIDE,
    choose_scheme,
    make_elements,
    outside_policy,
)
from jaxtrace.fields.streamed import StreamedField
from jaxtrace.fields.time_series import TimeSeriesField
from jaxtrace.fields.variables import Variable
from jaxtrace.io.cf import canonical
from jaxtrace.io.convert import dates_to_numbers
from jaxtrace.io.formats import find_format, open_slices, source_folder, source_name
from jaxtrace.io.geometry import Cells, Geometry, same_geometry
from jaxtrace.io.series import (
    PickedSlices,
    Series,
    Slices,
    SlicesOf,
    check_slice,
    discard_still_nodes,
    load,
)

COPIES = 2  # of a series in memory while its field is made: on the host, on the device
CHANGING = "elements of a mesh per slice"


@dataclass(frozen=True, eq=False)
class LoadedField:
    """A field read from files, how it interpolates, and where it comes from."""

    field: TimeSeriesField | StreamedField | ChangingMeshField
    scheme: str
    slices: Slices
    notes: tuple[str, ...]

    @property
    def streamed(self) -> bool:
        """Whether only some of the slices are in memory."""
        return isinstance(self.field, StreamedField)


def load_field(
    spec: Any,
    *,
    dtype: str = "float32",
    interpolation: str = "linear",
    extrapolation: str | None = None,
    spatial_interpolation: str = "auto",
    outside: str | None = None,
    cache: str | os.PathLike[str] | bool | None = True,
    slip: str = "none",
    discard_boundary_layers: bool = False,
    max_memory_per_timestep_mb: float = math.inf,
    view: Callable[[Slices], Slices] = lambda slices: slices,
    **reading: Any,
) -> LoadedField:
    """Read a series, or a view of it, into a field: see `load_optimized_dataset`."""
    if jax.dtypes.canonicalize_dtype(np.dtype(dtype)) != np.dtype(dtype):
        raise ValueError(
            f'dtype={dtype!r} is off in JAX: call jt.configure(dtype="float64") first'
        )
    slices = view(open_slices(spec, dtype=dtype, **reading))
    geometry, first = slices.read_slice(0)
    size = check_slice(first, slices.labels[0], max_memory_per_timestep_mb)
    # Never a constant wind by accident.
    dated = getattr(geometry, "radius", None) is not None and len(slices) > 1
    in_time: dict[str, Any] = {
        "interpolation": interpolation,
        "extrapolation": extrapolation or ("error" if dated else "constant"),
    }
    kept = find_cache(spec) if cache is True else cache or None
    in_space: dict[str, Any] = {"spatial_interpolation": spatial_interpolation}
    in_space["outside"] = outside
    notes = slices.describe()
    if size * len(slices) * COPIES > memory_budget_bytes():
        if discard_boundary_layers:
            raise ValueError(
                "nodes without motion are known only once all slices are read, and "
                "these do not fit the memory limit: leave out discard_boundary_layers"
            )
        field, scheme = _stream(slices, in_time, spatial_interpolation, outside, kept)
    else:
        series = load(slices, max_memory_per_timestep_mb)
        if discard_boundary_layers:
            series = discard_still_nodes(series)
        notes = series.notes
        if isinstance(series.geometry, tuple):
            made = _make_changing(series, in_time, **in_space)
            return LoadedField(made, CHANGING, slices, notes)
        nodes, cells = _nodes(series.geometry)
        values = np.asarray(series.velocities)
        rows = values.reshape(len(values), -1, values.shape[-1])
        rules = {**in_time, **in_space}
        field = TimeSeriesField(rows, slices.times, nodes, **cells, **rules, cache=kept)
        scheme = field.interpolation_scheme
    dates = {"time_units": slices.time_units, "calendar": slices.calendar}
    known = {} if slices.time_units is None else dates
    field._source_info = known  # pyright: ignore[reportPrivateUsage]
    slipping = let_slip(field.frozen, getattr(geometry, "land", None), slip)
    field._field = slipping  # pyright: ignore[reportPrivateUsage]
    return LoadedField(field, scheme, slices, notes)


def load_optimized_dataset(
    data_pattern: Any,
    max_memory_per_timestep_mb: float = 100.0,
    max_time_steps: int | None = None,
    time_range: tuple[float, float] | None = None,
    dtype: str = "float32",
    **options: Any,
) -> TimeSeriesField | StreamedField | ChangingMeshField:
    """Return the field of a series in files: times, cells and walls as they are there.

    A series above the configured memory limit is streamed, and a mesh that changes
    between slices is kept for each. A slice above `max_memory_per_timestep_mb` is a
    ValueError. Options are `interpolation`, `extrapolation`, `spatial_interpolation`
    and `outside` of `TimeSeriesField`, `discard_boundary_layers` to leave out nodes at
    which the velocity is always zero, `slip` ("none", "partial" or "free") for the
    velocity along the coast of a grid on a sphere, and those of `open_slices`.

    A large mesh, once prepared, is kept in a folder `.jaxtrace` beside the files, or in
    the user's cache if that cannot be written to; `cache` names another folder, and
    with `cache=False` nothing is kept.
    """
    loaded = load_field(
        data_pattern,
        max_memory_per_timestep_mb=max_memory_per_timestep_mb,
        max_time_steps=max_time_steps,
        time_range=time_range,
        dtype=dtype,
        **options,
    )
    field = loaded.field
    if not isinstance(field, ChangingMeshField):
        field._source_info |= {  # pyright: ignore[reportPrivateUsage]
            "source": find_format(data_pattern, options.get("format_type")).name,
            "file_pattern": source_name(data_pattern),
            "files": loaded.slices.labels,
            "velocity_field_name": loaded.slices.velocity_name,
            "time_source": loaded.slices.time_source,
            "notes": loaded.notes,
            "streamed": loaded.streamed,
        }
    return field


def find_cache(spec: Any) -> Path | None:
    """Return where prepared meshes are kept: beside the files, or with the user's.

    None for data in memory, and after `jaxrig --no-cache`.
    """
    folder = source_folder(spec)
    if folder is None or not caches_allowed():
        return None
    if os.access(folder, os.W_OK):
        return folder / ".jaxtrace"
    return cache_folder() / "meshes"


def _make_changing(
    series: Series,
    in_time: dict[str, Any],
    spatial_interpolation: str,
    outside: str | None,
) -> ChangingMeshField:
    if spatial_interpolation == "nearest":
        raise ValueError(
            "spatial_interpolation='nearest' is not for meshes that change: leave it "
            "out, or give use_stable_mesh_only=True"
        )
    meshes: Any = series.geometry
    for index, mesh in enumerate(meshes):
        if not mesh.has_elements:
            raise ValueError(
                f"slice {index} has points without cells, which must not change: pass "
                "use_stable_mesh_only=True"
            )
    slices = [
        MeshSlice(m.points, m.connectivity, values, m.offsets, m.types)
        for m, values in zip(meshes, series.velocities, strict=True)
    ]
    policy = outside_policy(outside, MESH_OUTSIDE)
    return make_changing_field(slices, series.times, **in_time, outside=policy)


def _stream(
    slices: Slices, in_time: dict[str, Any], spatial: str, outside: Any, cache: Any
) -> tuple[StreamedField, str]:
    """Return a field that keeps only some slices in memory, and how it interpolates."""
    geometry, first = slices.read_slice(0)
    nodes, cells = _nodes(geometry)
    elements = make_elements(*cells.values())
    scheme = choose_scheme(nodes, elements, spatial, outside, cache)
    one = make_clock(slices.times[:1], **in_time)
    last = first.shape[-1]
    still = scheme.build(first.reshape(1, -1, last), one)
    # A grid has a layout of its own; elements and points store nodes as they come.
    pack = lambda values: scheme.pack(values.reshape(1, -1, last))[0]

    def read(index: int) -> np.ndarray:
        there, values = slices.read_slice(index)
        if not same_geometry(there, geometry):
            raise ValueError(
                f"{slices.labels[index]}: its mesh differs from the first one, "
                "and the series does not fit in memory with a mesh for each slice; "
                "give use_stable_mesh_only=True or fewer slices (max_time_steps), or "
                "raise jt.configure(memory_limit_gb=...)"
            )
        return values

    size = first.nbytes
    field = StreamedField(slices.times, read, still, pack, slice_bytes=size, **in_time)
    return field, scheme.name


_CELLS = ("connectivity", "cell_types", "cell_offsets")
KEYS = (
    *("velocity_data", "positions", *_CELLS, "times", "source", "file_pattern"),
    *("time_source", "velocity_field_name", "notes"),
)


class Dataset(Mapping[str, Any]):
    """A velocity series: `velocity_data` (T, N, 3), `positions` (N, 3), `times` (T,).

    Cells are VTK's flat `connectivity` with `cell_offsets` and `cell_types`, None where
    there are none. A mesh that changes gives a tuple with one array per slice. Times
    are known at once; the rest is read at the first use and kept.
    """

    def __init__(self, slices: Slices, source: str, pattern: str) -> None:
        self.slices = slices
        self._facts = {"source": source, "file_pattern": pattern}
        self._known: dict[str, Any] = {"times": slices.times, **self._facts}

    def __getitem__(self, key: str) -> Any:
        if key not in KEYS:
            raise KeyError(f"{key!r}: there are {', '.join(KEYS)}")
        if key not in self._known:
            self._known = self.load_time_series()
        return self._known[key]

    def __iter__(self) -> Iterator[str]:
        return iter(KEYS)

    def __len__(self) -> int:
        return len(KEYS)

    def __repr__(self) -> str:
        times = self.times
        span = f"{len(times)} slices from t = {times[0]:g} to {times[-1]:g}"
        return f"Dataset({self._known['file_pattern']}: {span})"

    @property
    def times(self) -> Float[np.ndarray, " steps"]:
        """The times of the slices."""
        return self.slices.times

    def load_slice(self, index: int) -> np.ndarray:
        """Return one velocity: (N, 3), or (Nx, Ny, Nz, 3) on a grid."""
        return self.slices.read(range(len(self.slices))[index])

    def load_time_series(
        self, start: int | None = None, end: int | None = None
    ) -> dict[str, Any]:
        """Return all arrays of the slices from `start` up to but excluding `end`."""
        picked = np.arange(len(self.slices))[start:end]
        if not picked.size:
            raise ValueError(
                f"no slices from {start} to {end} of a series of {len(self.slices)}"
            )
        slices = self.slices
        if picked.size < len(slices):
            slices = PickedSlices(slices, picked)
        elif "velocity_data" in self._known:
            return dict(self._known)
        return {
            **series_arrays(load(slices)),
            "velocity_field_name": slices.velocity_name,
            "time_source": slices.time_source,
            "notes": slices.describe(),
            **self._facts,
        }


def open_dataset(
    path_spec: Any, format_type: str | None = None, **options: Any
) -> Dataset:
    """Open a file, glob, list, folder, collection or case as one velocity series.

    `options` are those of `jaxtrace.io.formats.open_slices`. FileNotFoundError says
    what was looked for, ValueError which extensions are known, ImportError what has to
    be installed.
    """
    name = find_format(path_spec, format_type).name
    slices = open_slices(path_spec, name, **options)
    return Dataset(slices, name, source_name(path_spec))


def series_arrays(series: Series) -> dict[str, Any]:
    """Return a loaded series as arrays by their names; nodes of a grid run z first."""
    found, each = series.geometry, []
    changing = isinstance(found, tuple)
    for geometry in found if isinstance(found, tuple) else (found,):
        nodes, cells = _nodes(geometry)
        points = nodes if isinstance(nodes, np.ndarray) else nodes.points()
        each.append({"positions": points, **cells})
    rows, arrays = series.velocities, each[0]
    if changing:
        arrays = {name: tuple(one[name] for one in each) for name in arrays}
    else:
        rows = np.asarray(rows)[..., :3].reshape(len(rows), -1, 3)
    return {"velocity_data": rows, **arrays, "times": series.times}


def _nodes(geometry: Any) -> tuple[Any, dict[str, Any]]:
    """Return the nodes, which a grid knows without a list, and the cells by name."""
    cells: dict[str, Any] = dict.fromkeys(_CELLS)
    if not isinstance(geometry, Cells):
        return geometry, cells
    if geometry.has_elements:
        parts = (geometry.connectivity, geometry.types, geometry.offsets)
        cells = dict(zip(_CELLS, parts, strict=True))
    return geometry.points, cells


class _SeaOnly(SlicesOf):
    """A scalar of a grid and, as second component, where it has a value at all."""

    @property
    def velocity_name(self) -> str:
        """The variable, named once."""
        return self.slices.velocity_name.partition(",")[0]

    def read_slice(self, index: int) -> tuple[Geometry, np.ndarray]:
        """Return the grid, and the scalar beside its mask."""
        geometry, values = self.slices.read_slice(index)
        known = np.isfinite(values[..., 0])
        values[..., 0] = np.where(known, values[..., 0], 0)
        values[..., 1], values[..., 2] = known, 0
        return geometry, values


def load_variable(spec: Any, name: str, **options: Any) -> Variable:
    """Return a scalar or vector of files, to be given in `sample=`.

    Options are those of `load_optimized_dataset`. Near the coast of a grid the nodes
    at sea decide.
    """
    if find_format(spec, options.get("format_type")).name != "grid":
        options["velocity_field_name"] = name
        loaded = load_field(spec, **options)
        reader = _reader(loaded.slices)
        if reader.components > 3:
            raise ValueError(
                f"{name!r} has {reader.components} components: only scalars and "
                "vectors are sampled, write the components apart"
            )
        return Variable(loaded.field, scalar=reader.components == 1)
    # As if it were a velocity of both directions, in the units of the file.
    options |= {"velocity_field_name": (name, name), "land": "nan", "slip": "none"}
    options |= {"velocity_units": "m/s", "cache": False, "view": _SeaOnly}
    loaded = load_field(spec, **options)
    stated = _reader(loaded.slices)._parts[0]._variables[0].attrs
    units = canonical(stated.get("units", ""))
    return Variable(loaded.field, scalar=True, masked=True, units=units)


def _reader(slices: Any) -> Any:
    """Return the slices of a format, without the views of them."""
    while isinstance(slices, SlicesOf):
        slices = slices.slices
    return slices


def align(variable: Variable, name: str, facts: Mapping[str, Any]) -> Variable:
    """Return a variable whose dates are counted from where those of a flow are."""
    own = getattr(variable.field, "_source_info", {})
    dated = "time_units" in own, "time_units" in facts
    if not all(dated):
        first, last = variable.field.get_time_bounds()
        if any(dated) and 0 < last - first < math.inf:
            which = "the velocity" if dated[1] else f"sample {name!r}"
            warnings.warn(
                f"only {which} has dates: the times of both, of sample {name!r} and of "
                "the velocity, are taken for seconds from one instant",
                stacklevel=3,
            )
        return variable
    if own["calendar"] != facts["calendar"]:
        raise ValueError(
            f"sample {name!r} has the calendar {own['calendar']}, and the velocity "
            f"{facts['calendar']}: their dates cannot be compared; convert one of them"
        )
    origin = own["time_units"].partition(" since ")[2].replace(" ", "T")
    return dataclasses.replace(variable, ahead=dates_to_numbers([origin], facts)[0])
