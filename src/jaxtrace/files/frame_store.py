"""What every store of frames does: check what comes, count and give back whole frames.

A store is append-only. Its frames are arrays (N,...) by name with one time each, and it
holds a whole number of them whenever it is opened, however its writer ended.
"""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

FORMAT_VERSION = "1.0"
RESERVED = ("times", "ids")
DEEPEST = 256  # frames of a chunk, so that runs of few particles stay small

Frames = dict[str, np.ndarray]


class Layout(NamedTuple):
    """The shape (N,...) and dtype of one frame of an array."""

    shape: tuple[int, ...]
    dtype: np.dtype


class FrameStore(ABC):
    """Frames on disk: `append`, `truncate`, `read`; use it in a `with` block."""

    def __init__(self, path: Path, *, writable: bool) -> None:
        self.path = path
        self.writable = writable

    @property
    @abstractmethod
    def frames(self) -> int:
        """How many whole frames there are."""

    @property
    @abstractmethod
    def layout(self) -> dict[str, Layout]:
        """The arrays of a frame; empty before the first."""

    @property
    @abstractmethod
    def metadata(self) -> dict[str, Any]:
        """What `describe` was given."""

    @abstractmethod
    def _describe(self, text: str) -> None: ...

    @abstractmethod
    def _append(self, times: np.ndarray, arrays: Frames) -> None: ...

    @abstractmethod
    def _truncate(self, frames: int) -> None: ...

    @abstractmethod
    def _read(self, start: int, stop: int) -> tuple[np.ndarray, Frames]: ...

    def describe(self, metadata: Mapping[str, Any]) -> None:
        """Keep facts about the run, as JSON; they replace earlier ones."""
        self._check_writable()
        self._describe(json.dumps(dict(metadata), default=_as_json))

    def append(self, times: Any, frame_arrays: Mapping[str, Any]) -> None:
        """Add frames: times (k,) and arrays (k,N,...) by name, all or none of them.

        The first frames decide the names, shapes and dtypes of all that follow.
        """
        self._check_writable()
        clock, arrays = check_frames(times, frame_arrays, self.layout)
        if len(clock):
            self._append(clock, arrays)

    def truncate(self, frames: int) -> None:
        """Keep the first `frames` frames: a restarted run goes on from there."""
        self._check_writable()
        if not 0 <= frames <= self.frames:
            raise ValueError(f"{self.path} has {self.frames} frames, not {frames}")
        if frames < self.frames:
            self._truncate(frames)

    def read(
        self, start: int = 0, stop: int | None = None
    ) -> tuple[np.ndarray, Frames]:
        """The times and arrays of frames `start` to `stop`, sliced as a list is."""
        begin, end, _ = slice(start, stop).indices(self.frames)
        return self._read(begin, max(begin, end))

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


def check_frames(
    times: Any, arrays: Mapping[str, Any], layout: Mapping[str, Layout]
) -> tuple[np.ndarray, Frames]:
    """Times (k,) and arrays (k,N,...) that belong together and to the layout."""
    clock = np.atleast_1d(np.asarray(times, np.float64))
    if clock.ndim != 1 or not np.isfinite(clock).all():
        raise ValueError(f"times {clock} must be finite numbers (k,)")
    made = {name: np.asarray(values) for name, values in arrays.items()}
    if not made or set(made) & set(RESERVED):
        raise ValueError(
            f"the arrays are named {sorted(made)}: one or more are needed, "
            f"and {', '.join(RESERVED)} are taken"
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


def as_layout(arrays: Frames) -> dict[str, Layout]:
    """The layout of arrays (k,N,...)."""
    return {name: Layout(a.shape[1:], a.dtype) for name, a in arrays.items()}


def chunk_shape(layout: Layout, most: int, enough: int) -> tuple[int, ...]:
    """A chunk of at most `most` bytes, that has more than one frame only while these
    are `enough`: what is appended rarely ends with a chunk, which is then rewritten.
    """
    rest = math.prod(layout.shape[1:]) * layout.dtype.itemsize
    rows = max(1, min(layout.shape[0], most // max(1, rest)))
    deep = max(1, min(DEEPEST, enough // max(1, rows * rest)))
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
