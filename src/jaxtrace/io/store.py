"""The store that a run streams to: frames in a Zarr group, appended and resumed.

Frames are arrays (N,...) by name with one time each, chunked in time. Times are written
last and count the frames: a time that is NaN was never written, and what an interrupted
append left behind it is written over. So the store holds a whole number of frames
whenever it is opened, however its writer ended.
"""

import json
import math
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxrig.atomic import remove_leftovers
from jaxrig.machine import missing_extra

SUFFIX = ".zarr"
MODES = ("r", "a", "w", "x")
FORMAT_VERSION = "1.0"
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
            f"{path} exists: use mode 'w' to replace it, 'a' to continue"
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
        self._group = _import_zarr().open_group(path, mode="r+" if writable else "r")
        times = self._group["times"][:] if "times" in self._group else np.zeros(0)
        self.frames = int(np.argmax(np.append(np.isnan(times), True)))

    @property
    def layout(self) -> dict[str, Layout]:
        """The arrays of a frame; empty before the first."""
        if "times" not in self._group:
            return {}
        members = {n: a for n, a in self._group.arrays() if n != "times"}
        return {n: Layout(a.shape[1:], a.dtype) for n, a in members.items()}

    @property
    def metadata(self) -> dict[str, Any]:
        """What `describe` was given."""
        return json.loads(str(self._group.attrs.get("metadata", "{}")))

    def describe(self, metadata: Mapping[str, Any]) -> None:
        """Keep facts about the run, as JSON; they replace earlier ones."""
        self._check_writable()
        text = json.dumps(dict(metadata), default=_as_json)
        self._group.attrs["metadata"] = text

    def append(self, times: Any, frame_arrays: Mapping[str, Any]) -> None:
        """Add frames: times (k,) and arrays (k,N,...) by name, all or none of them.

        The first frames decide the names, shapes and dtypes of all that follow.
        """
        self._check_writable()
        clock, arrays = _check_frames(times, frame_arrays, self.layout)
        if not len(clock):
            return
        if "times" not in self._group:
            self._lay_out(arrays)
        begin, end = self.frames, self.frames + len(clock)
        for name, values in {**arrays, "times": clock}.items():
            array: Any = self._group[name]
            array.resize((end, *array.shape[1:]))
            array[begin:end] = values
        self.frames = end

    def truncate(self, frames: int) -> None:
        """Keep the first `frames` frames: a resumed run continues from there."""
        self._check_writable()
        if not 0 <= frames <= self.frames:
            raise ValueError(f"{self.path} has {self.frames} frames, not {frames}")
        if frames == self.frames:
            return
        times: Any = self._group["times"]
        # A cut chunk keeps what is past the end, so the times there are wiped first.
        times[frames:] = np.nan
        self.frames = frames
        for name in ("times", *self.layout):
            array: Any = self._group[name]
            array.resize((frames, *array.shape[1:]))

    def read(
        self, start: int = 0, stop: int | None = None
    ) -> tuple[np.ndarray, Frames]:
        """Return times and arrays of frames `start` to `stop`, sliced like a list."""
        begin, end, _ = slice(start, stop).indices(self.frames)
        end = max(begin, end)
        members: dict[str, Any] = {name: self._group[name] for name in self.layout}
        clock: Any = self._group["times"] if members else np.zeros(0)
        return clock[begin:end], {n: array[begin:end] for n, array in members.items()}

    def close(self) -> None:
        """End the writing; what was appended is on disk already."""
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
        for name, values in arrays.items():
            layout = Layout(values.shape[1:], values.dtype)
            deeper = (f"{name}_{axis}" for axis in range(len(layout.shape) - 1))
            self._group.create_array(
                name,
                shape=(0, *layout.shape),
                dtype=layout.dtype,
                chunks=_chunk_shape(layout),
                # Positions shrink by a tenth, which would cost more than the writing.
                compressors=None,
                dimension_names=("time", "particle", *deeper),
                overwrite=True,
            )
        self._group.create_array(
            "times",
            shape=(0,),
            dtype="f8",
            chunks=(TIMES_CHUNK,),
            fill_value=np.nan,
            dimension_names=("time",),
        )


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
    if not made or "times" in made:
        raise ValueError(
            f"the arrays are named {sorted(made)}: one or more are needed, and "
            "times is taken"
        )
    for name, array in made.items():
        if array.ndim < 2 or len(array) != len(clock):
            raise ValueError(
                f"{name!r} has shape {array.shape}, {len(clock)} times need (k,N,...)"
            )
    if len({array.shape[1] for array in made.values()}) > 1:
        counts = {name: array.shape[1] for name, array in made.items()}
        raise ValueError(f"the arrays hold different numbers of particles: {counts}")
    return clock, _fit(made, layout)


def _fit(arrays: Frames, layout: Mapping[str, Layout]) -> Frames:
    if not layout:
        return arrays
    if set(arrays) != set(layout):
        raise ValueError(
            f"the store holds {sorted(layout)}, not {sorted(arrays)}: append the same "
            f"arrays or begin a store with mode 'w'"
        )
    for name, array in arrays.items():
        shape, dtype = layout[name]
        if array.shape[1:] != shape or not np.can_cast(array.dtype, dtype, "same_kind"):
            raise ValueError(
                f"the store holds {name!r} as {dtype} {shape} per frame, not "
                f"{array.dtype} {array.shape[1:]}: append the same or begin another"
            )
    return {n: a.astype(layout[n].dtype, copy=False) for n, a in arrays.items()}


def _chunk_shape(layout: Layout) -> tuple[int, ...]:
    """Return a chunk that is deep in time only while that is quick to rewrite.

    What is appended rarely ends with a chunk, and the last one is then written again.
    """
    # A chunk of one frame is a file for each frame, which costs more than its data.
    rest = math.prod(layout.shape[1:]) * layout.dtype.itemsize
    rows = max(1, min(layout.shape[0], CHUNK // max(1, rest)))
    deep = max(1, min(DEEPEST, ENOUGH // max(1, rows * rest)))
    return (deep, rows, *(max(1, length) for length in layout.shape[1:]))


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
    try:
        import zarr
    except ImportError as error:
        raise missing_extra(".zarr files need zarr", "trace") from error
    return zarr
