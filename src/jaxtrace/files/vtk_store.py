"""Frames as a VTK series: one .vtu per frame beside the .pvd that gives their times.

The dead have no point; reading gives them NaN. Arrays of integers and booleans are
kept whole as field data, so that those come back as they were.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from jaxrig.atomic import atomic_write
from jaxtrace.files.collection import (
    extend_collection,
    listed_steps,
    write_collection,
)
from jaxtrace.files.columns import vertices
from jaxtrace.files.frame_store import (
    FORMAT_VERSION,
    Frames,
    FrameStore,
    Layout,
    as_layout,
)
from jaxtrace.files.polylines import shown_points
from jaxtrace.files.trajectories import WRITERS
from jaxtrace.files.vtk_arrays import read_arrays
from jaxtrace.files.vtk_write import write_vtu


class VTKStore(FrameStore):
    """A `.pvd` and the folder `<stem>_frames` of its frames."""

    def __init__(self, path: Path, *, writable: bool) -> None:
        super().__init__(path, writable=writable)
        self._steps = listed_steps(path)
        about = _folder(path) / "store.json"
        if not about.is_file():
            raise ValueError(
                f"{path} was not begun as a store, {about} is missing: "
                f"open it as a dataset, or begin a store with mode 'w'"
            )
        self._about = json.loads(about.read_bytes())

    @classmethod
    def create(cls, path: Path) -> None:
        """Begin an empty store, in the place of an earlier one."""
        if path.exists():
            write_collection(path, [])
        _folder(path).mkdir(parents=True, exist_ok=True)
        _save(path, {"format_version": FORMAT_VERSION, "metadata": "{}", "arrays": {}})
        write_collection(path, [])
        for stale in _folder(path).glob("frame_*.vtu"):
            stale.unlink()

    @property
    def frames(self) -> int:
        """How many whole frames there are."""
        return len(self._steps)

    @property
    def layout(self) -> dict[str, Layout]:
        """The arrays of a frame; empty before the first."""
        return {
            name: Layout(tuple(shape), np.dtype(dtype))
            for name, (shape, dtype) in self._about["arrays"].items()
        }

    @property
    def metadata(self) -> dict[str, Any]:
        """What `describe` was given."""
        return json.loads(self._about["metadata"])

    def _describe(self, text: str) -> None:
        self._about["metadata"] = text
        _save(self.path, self._about)

    def _append(self, times: np.ndarray, arrays: Frames) -> None:
        positions = arrays.get("positions")
        if positions is None or positions.ndim != 3 or positions.shape[-1] != 3:
            raise ValueError(f"a VTK series needs 'positions' (k,N,3): {self.path}")
        if not self._about["arrays"]:
            layout = as_layout(arrays).items()
            self._about["arrays"] = {n: (v.shape, v.dtype.name) for n, v in layout}
            _save(self.path, self._about)
        begin = self.frames
        names = [_name(self.path, begin + index) for index in range(len(times))]

        def write(index: int) -> None:
            frame = {name: values[index] for name, values in arrays.items()}
            _write_frame(self.path.parent / names[index], times[index], frame)

        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(write, range(len(times))))
        steps = list(zip(times.tolist(), names, strict=True))
        extend_collection(self.path, steps)
        self._steps += steps

    def _truncate(self, frames: int) -> None:
        write_collection(self.path, self._steps[:frames])
        for _, name in self._steps[frames:]:
            (self.path.parent / name).unlink(missing_ok=True)
        del self._steps[frames:]

    def _read(self, start: int, stop: int) -> tuple[np.ndarray, Frames]:
        steps, layout = self._steps[start:stop], self.layout
        arrays = {
            n: np.empty((len(steps), *v.shape), v.dtype) for n, v in layout.items()
        }
        for index, (_, name) in enumerate(steps):
            for key, values in _read_frame(self.path.parent / name, layout).items():
                arrays[key][index] = values
        return np.array([time for time, _ in steps], np.float64), arrays


def _folder(path: Path) -> Path:
    return path.with_name(f"{path.stem}_frames")


def _name(path: Path, index: int) -> str:
    return f"{_folder(path).name}/frame_{index:06d}.vtu"


def _save(path: Path, about: dict[str, Any]) -> None:
    with atomic_write(_folder(path) / "store.json") as file:
        file.write(json.dumps(about, indent=1).encode())


def _write_frame(path: Path, time: float, frame: Frames) -> None:
    shown = shown_points(frame["positions"], frame.get("alive"))
    wholes = {n: v for n, v in frame.items() if v.dtype.kind != "f"}
    rows = {n: v[shown] for n, v in frame.items() if n != "positions"}
    write_vtu(
        path,
        frame["positions"][shown],
        vertices(int(shown.sum())),
        point_data={"ParticleID": np.flatnonzero(shown), **rows},
        field_data={"TimeValue": np.float64(time), **wholes},
    )


def _read_frame(path: Path, layout: dict[str, Layout]) -> Frames:
    stored = read_arrays(path)
    rows = stored["PointData"]["ParticleID"]
    stored["PointData"]["positions"] = stored["Points"]["Points"]
    frame = {}
    for name, (shape, dtype) in layout.items():
        if dtype.kind != "f":
            frame[name] = stored["FieldData"][name].reshape(shape).astype(dtype)
            continue
        frame[name] = np.full(shape, np.nan, dtype)
        frame[name][rows] = stored["PointData"][name].reshape(-1, *shape[1:])
    return frame
