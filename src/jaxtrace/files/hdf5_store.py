"""Frames in an HDF5 group: extendable datasets, changed all together or not at all."""

import io
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from jaxrig.atomic import atomic_write
from jaxrig.machine import missing_extra
from jaxtrace.files.frame_store import (
    FORMAT_VERSION,
    RESERVED,
    Frames,
    FrameStore,
    Layout,
    as_layout,
    chunk_shape,
)
from jaxtrace.files.journal import all_or_nothing, finish_journal, journal_of

CHUNK = 2**20  # bytes, what fits HDF5's own cache of chunks
GROUP = "trajectories"
COMPRESSION: Mapping[str, Any] = {
    "compression": "gzip",
    "compression_opts": 4,
    "shuffle": True,  # bytes of like weight together: smaller and quicker to pack
}


class HDF5Store(FrameStore):
    """The group of a `.h5` file that `write_h5_trajectories` also writes.

    The file is closed between appends, so anyone may read it during a run.
    """

    def __init__(self, path: Path, *, writable: bool, group: str = GROUP) -> None:
        super().__init__(path, writable=writable)
        self._name = group
        if writable:
            finish_journal(path)
        with open_hdf5(path) as file:
            if group not in file or "num_timesteps" not in file[group].attrs:
                raise ValueError(
                    f"{path} holds no trajectories in a group {group!r}, "
                    f"only {sorted(file)}"
                )
            self._frames = int(file[group].attrs["num_timesteps"])

    @classmethod
    def create(cls, path: Path, group: str = GROUP) -> None:
        """Begin an empty file, in the place of an earlier one."""
        content = io.BytesIO()
        with import_h5py().File(content, "w") as file:
            _begin(file, group)
        journal_of(path).unlink(missing_ok=True)
        with atomic_write(path) as out:
            out.write(content.getvalue())

    @property
    def frames(self) -> int:
        """How many whole frames there are."""
        return self._frames

    @property
    def layout(self) -> dict[str, Layout]:
        """The arrays of a frame; empty before the first."""
        with open_hdf5(self.path) as file:
            return {
                name: Layout(data.shape[1:], data.dtype)
                for name, data in file[self._name].items()
                if name not in RESERVED
            }

    @property
    def metadata(self) -> dict[str, Any]:
        """What `describe` was given."""
        with open_hdf5(self.path) as file:
            return json.loads(file[self._name].attrs.get("metadata", "{}"))

    def _describe(self, text: str) -> None:
        with change_hdf5(self.path) as file:
            file[self._name].attrs["metadata"] = text

    def _append(self, times: np.ndarray, arrays: Frames) -> None:
        with change_hdf5(self.path) as file:
            extend_group(file[self._name], times, arrays)
        self._frames += len(times)

    def _truncate(self, frames: int) -> None:
        with change_hdf5(self.path) as file:
            group = file[self._name]
            for name in (*self._arrays(group), "times"):
                group[name].resize(frames, axis=0)
            group.attrs["num_timesteps"] = frames
        self._frames = frames

    def _read(self, start: int, stop: int) -> tuple[np.ndarray, Frames]:
        with open_hdf5(self.path) as file:
            group = file[self._name]
            times = group["times"][start:stop] if "times" in group else np.zeros(0)
            return times, {n: group[n][start:stop] for n in self._arrays(group)}

    @staticmethod
    def _arrays(group: Any) -> list[str]:
        return [name for name in group if name not in RESERVED]


def write_h5_trajectories(
    path: str | Path,
    positions: Any,
    ids: Any = None,
    times: Any = None,
    group: str = GROUP,
    chunks: tuple[int, ...] | None = None,
    compression: str | None = "gzip",
    compression_opts: int | None = 4,
) -> Path:
    """Write positions (T,N,3), or a list of frames (N,3), as float32 in a group.

    Times default to 0, 1, ... and ids to 0, 1, ...; a group of that name is replaced,
    the rest of an existing file stays.
    """
    path = Path(path)
    arrays = {"positions": _as_frames(positions)}
    frames, particles = arrays["positions"].shape[:2]
    clock = _one_each("times", np.arange(frames) if times is None else times, frames)
    names = _one_each("ids", np.arange(particles) if ids is None else ids, particles)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        HDF5Store.create(path, group)
    packing = {
        "compression": compression,
        "compression_opts": compression_opts,
        "shuffle": compression is not None,
    }
    with change_hdf5(path) as file:
        if group in file:
            del file[group]
        target = _begin(file, group)
        extend_group(target, clock, arrays, names, chunks, packing)
    return path


def append_h5_trajectories(
    path: str | Path, new: Any, group: str = GROUP, times: Any = None
) -> Path:
    """Add frames (k,N,3) to a group; times default to going on at the last spacing."""
    with HDF5Store(Path(path), writable=True, group=group) as store:
        frames = _as_frames(new)
        if times is None:
            last, _ = store.read(max(0, store.frames - 2))
            step = np.diff(last)[-1] if len(last) > 1 else 1.0
            begin = last[-1] + step if len(last) else 0.0
            times = begin + step * np.arange(len(frames))
        store.append(times, {"positions": frames})
    return Path(path)


def _as_frames(positions: Any) -> np.ndarray:
    array = np.asarray(positions, np.float32)
    if array.ndim == 3 and array.shape[-1] == 2:
        array = np.pad(array, [(0, 0), (0, 0), (0, 1)])
    if array.ndim != 3 or array.shape[-1] != 3:
        raise ValueError(f"positions have shape {array.shape}, they need (T,N,3)")
    return array


def _one_each(name: str, values: Any, count: int) -> np.ndarray:
    array = np.asarray(values)
    if array.shape != (count,):
        raise ValueError(f"{name} has shape {array.shape}, it needs ({count},)")
    return array


def _begin(file: Any, name: str) -> Any:
    group = file.create_group(name)
    group.attrs["format_version"] = FORMAT_VERSION
    group.attrs["num_timesteps"] = 0
    return group


def extend_group(
    group: Any,
    times: np.ndarray,
    arrays: Frames,
    ids: np.ndarray | None = None,
    chunks: tuple[int, ...] | None = None,
    packing: Mapping[str, Any] = COMPRESSION,
) -> None:
    """Add frames to the datasets of a group, which are made if there are none."""
    if "times" not in group:
        _lay_out(group, arrays, ids, chunks, packing)
    begin = int(group.attrs["num_timesteps"])
    end = begin + len(times)
    for name, values in {**arrays, "times": times}.items():
        group[name].resize(end, axis=0)
        group[name][begin:end] = values
    group.attrs["num_timesteps"] = end


def _lay_out(
    group: Any,
    arrays: Frames,
    ids: np.ndarray | None,
    chunks: tuple[int, ...] | None,
    packing: Mapping[str, Any],
) -> None:
    particles = next(iter(arrays.values())).shape[1]
    for name, layout in as_layout(arrays).items():
        group.create_dataset(
            name,
            shape=(0, *layout.shape),
            # A chunk, of one particle at least, must fit what the shape may become.
            maxshape=(None, *(max(1, length) for length in layout.shape)),
            dtype=layout.dtype,
            chunks=chunks or chunk_shape(layout, CHUNK, CHUNK),
            **packing,
        )
    group.create_dataset("times", shape=(0,), maxshape=(None,), dtype="f8", chunks=True)
    numbers = np.arange(particles) if ids is None else ids
    group.create_dataset("ids", data=numbers.astype(np.int64))
    group.attrs["num_particles"] = particles


@contextmanager
def open_hdf5(path: Path) -> Iterator[Any]:
    """The file, open for reading; ValueError if a change to it is not finished."""
    if journal_of(path).exists():
        raise ValueError(
            f"{path} is being changed, or its writer was killed: read it in a moment, "
            f"or open it once with mode 'a'"
        )
    with import_h5py().File(path, "r") as file:
        yield file


@contextmanager
def change_hdf5(path: Path) -> Iterator[Any]:
    """The file, open for changes that are kept only if the block succeeds."""
    h5py = import_h5py()
    with all_or_nothing(path) as pending, h5py.File(pending, "r+") as file:
        yield file


def import_h5py() -> Any:
    """The library, or an ImportError that says how to get it."""
    try:
        import h5py
    except ImportError as error:
        raise missing_extra("HDF5 files need h5py", "trace") from error
    return h5py
