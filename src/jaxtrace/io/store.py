"""The store that a run streams to: frames in a Zarr group, appended and resumed.

Frames are arrays (N,...) by name with one time each. On disk they are the trajectories
of the CF conventions (section 9.3.2, appendix H.4): `x`, `y`, `z` or `lon`, `lat`, `z`,
and `time`, by `trajectory` and `obs`, chunked along both. `frame_time` is written last
and counts the frames: a time that is NaN was never written, and what an interrupted
append left behind it is written over. So the store holds a whole number of frames
whenever it is opened, however its writer ended.
"""

import json
import math
import os
import shutil
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from jaxrig.atomic import remove_leftovers
from jaxrig.machine import import_extra
from jaxtrace.types import ParticleStatus

SUFFIX = ".zarr"
MODES = ("r", "a", "w", "x")
FORMAT_VERSION = "2.0"
TIMES = "frame_time"
TRAJECTORY, OBS = "trajectory", "obs"
# Vectors are kept as one array per component, under the names that others look for.
FLAT, SPHERE = ("x", "y", "z"), ("lon", "lat", "z")
COMPONENTS = {"positions": (FLAT, SPHERE), "velocities": (("u", "v", "w"),)}
RECORDED = (*COMPONENTS, "generation")  # arrays of a run; all others are variables
ATTRIBUTES = {
    "lon": {"standard_name": "longitude", "units": "degrees_east", "axis": "X"},
    "lat": {"standard_name": "latitude", "units": "degrees_north", "axis": "Y"},
    "x": {"axis": "X"},
    "y": {"axis": "Y"},
    "z": {"axis": "Z", "positive": "up"},
    "time": {"standard_name": "time", "axis": "T"},
    TRAJECTORY: {"cf_role": "trajectory_id", "long_name": "number of the particle"},
}
CHUNK = 16 * 2**20  # bytes at most: a few files for each frame of a large run
ENOUGH = 2 * 2**20  # bytes that are quick to rewrite
DEEPEST = 256  # frames of a chunk, so that runs of few particles stay small
TIMES_CHUNK = 4096  # times per chunk

Frames = dict[str, np.ndarray]


class Layout(NamedTuple):
    """The shape (N,...) and dtype of one frame of an array."""

    shape: tuple[int, ...]
    dtype: np.dtype


def open_store(
    path: str | os.PathLike[str],
    mode: str = "x",
    *,
    metadata: Mapping[str, Any] | None = None,
) -> "FrameStore":
    """Open a store of frames, a folder `.zarr`.

    "r" reads, "a" continues a store or begins it, "w" begins it anew in the place of
    an earlier one, and "x" begins it and refuses if there is one.

        with open_store("run.zarr", "w") as store:
            store.append(times, {"positions": positions})
    """
    path = Path(path)
    if path.suffix.lower() != SUFFIX or mode not in MODES:
        raise ValueError(
            f"{path.name!r} in mode {mode!r}: the name ends in {SUFFIX} and the mode "
            f"is one of {', '.join(MODES)}; other formats are exported afterwards"
        )
    if path.exists() and mode == "x":
        raise FileExistsError(
            f"{path} exists: choose another name, or delete it; a run continues in it "
            "with resume=True, a store opens in the modes 'a' and 'w'"
        )
    if not path.exists() and mode == "r":
        raise FileNotFoundError(f"{path} does not exist")
    if mode != "r":
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(path.parent)
    if mode == "w" or not path.exists():
        _create(path)
    store = FrameStore(path, writable=mode != "r")
    if metadata is not None:
        store.describe(metadata)
    return store


class FrameStore:
    """Frames on disk: `append`, `truncate`, `read`; use it in a `with` block.

    Each file of the folder is replaced whole, so none is half written.
    """

    def __init__(self, path: Path, *, writable: bool) -> None:
        self.path, self.writable = path, writable
        # A summary of all shapes would be wrong as soon as frames are appended.
        self._group = _import_zarr().open_group(
            path, mode="r+" if writable else "r", use_consolidated=False
        )
        if writable:
            self._group.attrs["format_version"] = FORMAT_VERSION
        # The handles are kept: looking them up costs more than writing a few frames.
        self._arrays: dict[str, Any] = dict(self._group.arrays())
        times = self._arrays[TIMES][:] if TIMES in self._arrays else np.zeros(0)
        self.frames = int(np.argmax(np.append(np.isnan(times), True)))

    @property
    def layout(self) -> dict[str, Layout]:
        """The arrays of a frame; empty before the first."""
        found = {}
        for name, parts in self._parts().items():
            one = parts[0]
            rest = () if len(parts) == 1 else (len(parts),)
            found[name] = Layout((one.shape[0], *one.shape[2:], *rest), one.dtype)
        return found

    def _parts(self) -> dict[str, list[Any]]:
        """Return the arrays on disk of each array of a frame, in the order of axes."""
        return join_components(self._arrays) if TIMES in self._arrays else {}

    @property
    def metadata(self) -> dict[str, Any]:
        """What `describe` was given."""
        return json.loads(str(self._group.attrs.get("metadata", "{}")))

    def describe(self, metadata: Mapping[str, Any]) -> None:
        """Keep facts about the run, as JSON; they replace earlier ones.

        A `coordinate_system` of "spherical" names positions lon, lat, z; `time_units`
        and `calendar`, as CF writes them, make dates of the times.
        """
        self._check_writable()
        text = json.dumps(dict(metadata), default=_as_json)
        self._group.attrs["metadata"] = text

    def append(
        self, times: Any, frame_arrays: Mapping[str, Any], observed: Any = None
    ) -> None:
        """Add frames: times (k,) and arrays (k,N,...) by name, all or none of them.

        The first frames decide the names, shapes and dtypes of all that follow.
        `observed` (k,N) are times of single particles, where they differ.
        """
        self._check_writable()
        clock, arrays = _check_frames(times, frame_arrays, self.layout)
        if not len(clock):
            return
        if TIMES not in self._arrays:
            self._lay_out(arrays)
            self._arrays = dict(self._group.arrays())
        end = self.frames + len(clock)
        for name, parts in self._parts().items():
            for index, array in enumerate(parts):
                values = arrays[name] if len(parts) == 1 else arrays[name][..., index]
                self._put(array, np.swapaxes(values, 0, 1), end)
        self._put(self._arrays["time"], _observed(clock, arrays, observed), end)
        self._put(self._arrays[TIMES], clock, end)
        self.frames = end

    def _put(self, array: Any, values: np.ndarray, end: int) -> None:
        """Write the frames from the last one kept up to `end`; they lie along obs."""
        if array.ndim == 1:
            array.resize((end,))
            array[self.frames : end] = values
        else:
            array.resize((array.shape[0], end, *array.shape[2:]))
            array[:, self.frames : end] = values

    def truncate(self, frames: int) -> None:
        """Keep the first `frames` frames: a resumed run continues from there."""
        self._check_writable()
        if not 0 <= frames <= self.frames:
            raise ValueError(f"{self.path} has {self.frames} frames, not {frames}")
        if frames == self.frames:
            return
        times = self._arrays[TIMES]
        # A cut chunk keeps what is past the end, so the times there are wiped first.
        times[frames:] = np.nan
        self.frames = frames
        times.resize((frames,))
        rows = [array for parts in self._parts().values() for array in parts]
        for array in [self._arrays["time"], *rows]:
            array.resize((array.shape[0], frames, *array.shape[2:]))

    def read(
        self, start: int = 0, stop: int | None = None
    ) -> tuple[np.ndarray, Frames]:
        """Return times and arrays of frames `start` to `stop`, sliced like a list."""
        begin, end, _ = slice(start, stop).indices(self.frames)
        end = max(begin, end)
        parts, arrays = self._parts(), {}
        for name, (shape, dtype) in self.layout.items():
            whole = np.empty((end - begin, *shape), dtype)
            for index, array in enumerate(parts[name]):
                target = whole if len(parts[name]) == 1 else whole[..., index]
                target[:] = np.swapaxes(array[:, begin:end], 0, 1)
            arrays[name] = whole
        clock: Any = self._arrays[TIMES] if parts else np.zeros(0)
        return clock[begin:end], arrays

    def read_observed(
        self, start: int = 0, stop: int | None = None
    ) -> Float[np.ndarray, "frames particles"]:
        """Return the time of every observation, NaN where there is no particle."""
        begin, end, _ = slice(start, stop).indices(self.frames)
        return self._arrays["time"][:, begin : max(begin, end)].T

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of the coordinates: x, y, z or lon, lat, z."""
        return SPHERE if "lon" in self._arrays else FLAT

    def finish(self, particles: Mapping[str, np.ndarray]) -> None:
        """Keep what became of each particle: arrays (N,), and flags by an enumeration.

        They replace earlier ones.
        """
        self._check_writable()
        for name, values in particles.items():
            self._make(name, (TRAJECTORY,), data=values)

    def read_particles(self) -> dict[str, np.ndarray]:
        """Return what `finish` was given; nothing before the end of a run."""
        return {
            name: array[:]
            for name, array in self._group.arrays()
            if array.ndim == 1 and name not in (TIMES, TRAJECTORY)
        }

    def close(self) -> None:
        """End the writing; what was appended is on disk already."""
        if self.writable and self.frames:
            with warnings.catch_warnings():  # zarr warns that others may not know it
                warnings.simplefilter("ignore")
                _import_zarr().consolidate_metadata(self._group.store)
        self.writable = False

    def __enter__(self) -> "FrameStore":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_writable(self) -> None:
        if not self.writable:
            raise ValueError(
                f"{self.path} is closed or open for reading: open it with mode 'a'"
            )

    def _lay_out(self, arrays: Frames) -> None:
        count = next(iter(arrays.values())).shape[1]
        self._group.attrs.update(Conventions="CF-1.11", featureType="trajectory")
        self._make(TRAJECTORY, (TRAJECTORY,), data=np.arange(count, dtype=np.int32))
        sphere = self.metadata.get("coordinate_system") == "spherical"
        for name, values in arrays.items():
            choices = COMPONENTS.get(name, ())
            if not choices or values.shape[2:] != (3,):
                self._make_rows(name, Layout(values.shape[1:], values.dtype))
                continue
            for axis in choices[-1 if sphere else 0]:
                self._make_rows(axis, Layout((count,), values.dtype))
        self._make_rows("time", Layout((count,), np.dtype("f8")))
        empty = {"shape": (0,), "dtype": "f8", "chunks": (TIMES_CHUNK,)}
        self._make(TIMES, (OBS,), "time", **empty, fill_value=np.nan)

    def _make_rows(self, name: str, layout: Layout) -> None:
        """Make an empty array by trajectory and obs."""
        deeper = (f"{name}_{axis}" for axis in range(len(layout.shape) - 1))
        self._make(
            name,
            (TRAJECTORY, OBS, *deeper),
            shape=(layout.shape[0], 0, *layout.shape[1:]),
            dtype=layout.dtype,
            chunks=_chunk_shape(layout),
            # Positions shrink by a tenth, which would cost more than the writing;
            # equal times shrink to nothing.
            compressors="auto" if name == "time" else None,
            fill_value=np.nan if layout.dtype.kind == "f" else None,
        )

    def _make(
        self, name: str, dims: tuple[str, ...], like: str = "", **content: Any
    ) -> None:
        """Make an array in the place of an earlier one, described as CF wants it."""
        self._group.create_array(
            name,
            dimension_names=dims,
            attributes=_described(like or name, self.metadata),
            overwrite=True,
            **content,
        )


def join_components(columns: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return arrays by trajectory and obs: those of a vector together."""
    by_name, parts = dict(columns), {}
    for name, choices in COMPONENTS.items():
        for axes in choices:
            if all(axis in by_name for axis in axes):
                parts[name] = [by_name.pop(axis) for axis in axes]
    alone = {n: [a] for n, a in by_name.items() if a.ndim > 1 and n != "time"}
    return parts | alone


def _described(name: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes by which other programs know a variable."""
    found: dict[str, Any] = dict(ATTRIBUTES.get(name, {}))
    sphere = facts.get("coordinate_system") == "spherical"
    if name == "z" and sphere:
        found |= {"standard_name": "height", "units": "m"}
    if name in ("time", "exit_time", "release_time") and "time_units" in facts:
        found["units"] = facts["time_units"]
        found["calendar"] = facts.get("calendar", "standard")
    if name == "status":
        found["flag_values"] = [int(code) for code in ParticleStatus]
        found["flag_meanings"] = " ".join(code.name.lower() for code in ParticleStatus)
    axes = SPHERE if sphere else FLAT
    if name in facts.get("sampled", ()):
        found["coordinates"] = " ".join(("time", *axes))
    return found


def _observed(clock: np.ndarray, arrays: Frames, observed: Any) -> np.ndarray:
    """Return the time (N,k) of every observation, NaN where there is no particle."""
    first = next(iter(arrays.values()))
    given = clock[:, None] if observed is None else observed
    times = np.broadcast_to(given, first.shape[:2])
    if "positions" in arrays:
        times = np.where(np.isfinite(arrays["positions"][..., 0]), times, np.nan)
    return times.T


def _create(path: Path) -> None:
    """Begin an empty store, in the place of an earlier one."""
    aside = path.with_name(f".{path.name}.removed")
    if path.exists():
        if not (path / "zarr.json").is_file():
            raise ValueError(f"{path} is not a Zarr folder: give another name")
        # Out of the way in one step: a folder half removed would not be a store.
        shutil.rmtree(aside, ignore_errors=True)
        path.rename(aside)
    attributes = {"format_version": FORMAT_VERSION}
    _import_zarr().create_group(path, zarr_format=3, attributes=attributes)
    if aside.exists():
        shutil.rmtree(aside)


def _check_frames(
    times: Any, arrays: Mapping[str, Any], layout: Mapping[str, Layout]
) -> tuple[np.ndarray, Frames]:
    """Return times (k,) and arrays (k,N,...) that fit each other and the layout."""
    clock = np.atleast_1d(np.asarray(times, np.float64))
    if clock.ndim != 1 or not np.isfinite(clock).all():
        raise ValueError(f"times {clock} must be finite numbers (k,)")
    made = {name: np.asarray(values) for name, values in arrays.items()}
    if not made or {"times", "time", TIMES} & set(made):
        raise ValueError(
            f"the arrays are named {sorted(made)}: one or more are needed, and "
            "times, time and frame_time are taken"
        )
    if layout and set(made) != set(layout):
        raise ValueError(
            f"the store holds {sorted(layout)}, not {sorted(made)}: append the same "
            f"arrays or begin a store with mode 'w'"
        )
    for name, array in made.items():
        if array.ndim < 2 or len(array) != len(clock):
            raise ValueError(
                f"{name!r} has shape {array.shape}, {len(clock)} times need (k,N,...)"
            )
        shape, dtype = layout.get(name, (array.shape[1:], array.dtype))
        if array.shape[1:] != shape or not np.can_cast(array.dtype, dtype, "same_kind"):
            raise ValueError(
                f"the store holds {name!r} as {dtype} {shape} per frame, not "
                f"{array.dtype} {array.shape[1:]}: append the same or begin another"
            )
        made[name] = array.astype(dtype, copy=False)
    if len({array.shape[1] for array in made.values()}) > 1:
        counts = {name: array.shape[1] for name, array in made.items()}
        raise ValueError(f"the arrays hold different numbers of particles: {counts}")
    return clock, made


def _chunk_shape(layout: Layout) -> tuple[int, ...]:
    """Return a chunk that is deep in time only while that is quick to rewrite.

    What is appended rarely ends with a chunk, and the last one is then written again.
    """
    # A chunk of one frame is a file for each frame, which costs more than its data.
    rest = math.prod(layout.shape[1:]) * layout.dtype.itemsize
    rows = max(1, min(layout.shape[0], CHUNK // max(1, rest)))
    deep = max(1, min(DEEPEST, ENOUGH // max(1, rows * rest)))
    return (rows, deep, *(max(1, length) for length in layout.shape[1:]))


def _as_json(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(
        f"metadata holds a {type(value).__qualname__}, which JSON cannot: "
        f"turn it into dicts, lists, numbers and text"
    )


def _import_zarr() -> Any:
    return import_extra("zarr", ".zarr files", "trace")
