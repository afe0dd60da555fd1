"""Frames in a Zarr group: one array per name, chunked in time.

The times are written last and count the frames: a time that is NaN is one that was
never written, and what an interrupted append left behind it is written over.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from jaxrig.machine import missing_extra
from jaxtrace.files.frame_store import (
    FORMAT_VERSION,
    Frames,
    FrameStore,
    Layout,
    as_layout,
    chunk_shape,
)

CHUNK = 16 * 2**20  # bytes at most: a few files for each frame of a large run
ENOUGH = 2 * 2**20  # bytes that are quick to rewrite
TIMES_CHUNK = 4096  # times per chunk


class ZarrStore(FrameStore):
    """A folder `.zarr`; each file of it is replaced whole, so none is half written."""

    def __init__(self, path: Path, *, writable: bool) -> None:
        super().__init__(path, writable=writable)
        self._group = import_zarr().open_group(path, mode="r+" if writable else "r")
        times = self._times[:] if "times" in self._group else np.zeros(0)
        self._count = int(np.argmax(np.append(np.isnan(times), True)))

    @classmethod
    def create(cls, path: Path) -> None:
        """Begin an empty store, in the place of an earlier one."""
        aside = path.with_name(f".{path.name}.removed")
        if path.exists():
            if not (path / "zarr.json").is_file():
                raise ValueError(f"{path} is no Zarr folder: give another name")
            # Out of the way in one step: a folder half removed would be no store.
            shutil.rmtree(aside, ignore_errors=True)
            path.rename(aside)
        attributes = {"format_version": FORMAT_VERSION}
        import_zarr().create_group(path, zarr_format=3, attributes=attributes)
        if aside.exists():
            shutil.rmtree(aside)

    @property
    def frames(self) -> int:
        """How many whole frames there are."""
        return self._count

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

    @property
    def _times(self) -> Any:
        return self._group["times"]

    def _describe(self, text: str) -> None:
        self._group.attrs["metadata"] = text

    def _append(self, times: np.ndarray, arrays: Frames) -> None:
        begin, end = self._count, self._count + len(times)
        if "times" not in self._group:
            self._lay_out(arrays)
        for name, values in arrays.items():
            array: Any = self._group[name]
            array.resize((end, *array.shape[1:]))
            array[begin:end] = values
        self._times.resize((end,))
        self._times[begin:end] = times
        self._count = end

    def _lay_out(self, arrays: Frames) -> None:
        for name, layout in as_layout(arrays).items():
            self._group.create_array(
                name,
                shape=(0, *layout.shape),
                dtype=layout.dtype,
                chunks=chunk_shape(layout, CHUNK, ENOUGH),
                # Positions shrink by a tenth, which would cost more than the writing.
                compressors=None,
                dimension_names=(
                    "time",
                    "particle",
                    *(f"{name}_{axis}" for axis in range(len(layout.shape) - 1)),
                ),
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

    def _truncate(self, frames: int) -> None:
        # A cut chunk keeps what is past the end, so the times there are wiped first.
        self._times[frames:] = np.nan
        self._count = frames
        self._times.resize((frames,))
        for name in self.layout:
            array: Any = self._group[name]
            array.resize((frames, *array.shape[1:]))

    def _read(self, start: int, stop: int) -> tuple[np.ndarray, Frames]:
        members: dict[str, Any] = {name: self._group[name] for name in self.layout}
        times = self._times[start:stop] if members else np.zeros(0)
        return times, {name: array[start:stop] for name, array in members.items()}


def import_zarr() -> Any:
    """The library, or an ImportError that says how to get it."""
    try:
        import zarr
    except ImportError as error:
        raise missing_extra(".zarr files need zarr", "trace") from error
    return zarr
