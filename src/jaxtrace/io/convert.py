"""Files from one format to another: recorded trajectories, and series of velocities."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from jaxrig.atomic import atomic_write, remove_path
from jaxrig.machine import missing_extra
from jaxtrace.io.formats import open_slices
from jaxtrace.io.geometry import Cells, GridAxes, storage_order
from jaxtrace.io.hdf5 import EXTENSIONS as HDF5_EXTENSIONS
from jaxtrace.io.hdf5 import open_hdf5
from jaxtrace.io.series import Slices
from jaxtrace.io.store import FORMAT_VERSION, SUFFIX, Frames, FrameStore, open_store
from jaxtrace.io.vtk_export import (
    export_trajectory_to_vtk,
    shown_points,
    write_frame,
)
from jaxtrace.io.vtk_write import (
    CellColumns,
    column,
    write_collection,
    write_vtr,
    write_vtu,
)
from jaxtrace.trajectory import Trajectory

Progress = Callable[[int, int], None]
FRAMES_AT_ONCE = 64
GROUP = "trajectories"  # of an HDF5 file
PACKING = {"compression": "gzip", "compression_opts": 4, "shuffle": True}
SERIES_TARGETS = (".pvd", ".nc", ".zarr")


def _quiet(done: int, total: int) -> None:
    """Show no progress."""


def convert(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    progress: Progress = _quiet,
) -> Path:
    """Write the content of one path in the format of another's suffix; return it.

    Recorded trajectories (.zarr, .h5) become .vtp, .pvd, .h5, .npz or .csv; velocities
    of any readable kind become a VTK series (.pvd), those on grids also netCDF (.nc) or
    zarr.
    """
    source, target = Path(source), Path(target)
    if target.exists():
        raise FileExistsError(f"{target} exists: remove it or give another name")
    if holds_trajectories(source):
        return _export(source, target, progress)
    suffix = target.suffix.lower()
    if suffix not in SERIES_TARGETS:
        raise ValueError(
            f"{target.name!r}: velocities are written as {', '.join(SERIES_TARGETS)}"
        )
    write = _write_series if suffix == ".pvd" else _write_labeled
    return write(open_slices(str(source)), target, progress)


def holds_trajectories(path: str | os.PathLike[str]) -> bool:
    """Return whether a path holds recorded trajectories, and not velocities."""
    path = Path(path)
    if not path.exists():
        return False
    if path.suffix.lower() in HDF5_EXTENSIONS:
        with open_hdf5(path) as root:
            return GROUP in root
    if path.suffix.lower() != SUFFIX:
        return False
    try:
        with open_store(path, "r") as store:
            return "positions" in store.layout
    except ValueError:  # another kind of zarr folder
        return False


def read_recorded(path: str | os.PathLike[str]) -> Trajectory:
    """Read a whole recorded run from a .zarr store or an exported .h5 file."""
    return _recorded(*_read_arrays(Path(path)))


def _read_arrays(path: Path) -> tuple[np.ndarray, Frames, Mapping[str, Any]]:
    if path.suffix.lower() in HDF5_EXTENSIONS:
        with open_hdf5(path) as root:
            group = root[GROUP]
            arrays = {n: a[()] for n, a in group.items() if n not in ("times", "ids")}
            metadata = json.loads(group.attrs.get("metadata", "{}"))
            return group["times"][()], arrays, metadata
    with open_store(path, "r") as store:
        return *store.read(), store.metadata


def _recorded(
    times: np.ndarray, arrays: Frames, metadata: Mapping[str, Any]
) -> Trajectory:
    velocities, generation = arrays.get("velocities"), arrays.get("generation")
    return Trajectory(
        arrays["positions"], times, velocities, metadata, generation=generation
    )


def streaming_path(output: str | os.PathLike[str]) -> Path:
    """Return the store that a run streams to before it is exported to `output`."""
    path = Path(output)
    if path.suffix.lower() not in (SUFFIX, *EXPORTS):
        known = ", ".join((SUFFIX, *EXPORTS))
        raise ValueError(f"{path.name!r}: a run is written as {known}")
    return path.with_suffix(SUFFIX)


def export_store(
    store: FrameStore, target: str | os.PathLike[str], progress: Progress = _quiet
) -> Path:
    """Write the frames of a store in the format of a suffix, whole or not at all.

    An earlier file of that name is replaced.
    """
    target = Path(target)
    suffix = target.suffix.lower()
    if suffix not in EXPORTS:
        raise ValueError(
            f"{target.name!r}: trajectories are written as {', '.join(EXPORTS)}"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    EXPORTS[suffix](store, target, progress)
    return target


def _export(source: Path, target: Path, progress: Progress) -> Path:
    if source.suffix.lower() == SUFFIX:
        with open_store(source, "r") as store:
            return export_store(store, target, progress)
    # An exported file is read whole, and written by way of a store beside it.
    times, arrays, metadata = _read_arrays(source)
    aside = target.with_name(f".{target.name}{SUFFIX}")
    if target.suffix.lower() == SUFFIX:
        with open_store(target, "x", metadata=metadata) as store:
            store.append(times, arrays)
        return target
    try:
        with open_store(aside, "w", metadata=metadata) as store:
            store.append(times, arrays)
            return export_store(store, target, progress)
    finally:
        remove_path(aside)


def _in_parts(
    store: FrameStore, progress: Progress
) -> Iterator[tuple[int, np.ndarray, Frames]]:
    """Yield the first frame, the times and the arrays of a few frames at a time."""
    for first in range(0, store.frames, FRAMES_AT_ONCE):
        times, arrays = store.read(first, first + FRAMES_AT_ONCE)
        yield first, times, arrays
        progress(first + len(times), store.frames)


@contextmanager
def _aside(target: Path) -> Iterator[Path]:
    """Yield a name to write to, which becomes the target if the block succeeds."""
    part = target.with_name(f".{target.name}.part")
    remove_path(part)
    yield part
    os.replace(part, target)


def _to_hdf5(store: FrameStore, target: Path, progress: Progress) -> None:
    """Write the group `trajectories`: an array per name, `times`, `ids`, metadata."""
    try:
        import h5py
    except ImportError as error:
        raise missing_extra("HDF5 files need h5py", "trace") from error
    with _aside(target) as part, h5py.File(part, "w") as file:
        group = file.create_group(GROUP)
        frames, layout = store.frames, store.layout
        particles = next(iter(layout.values())).shape[0] if layout else 0
        rows = {
            name: group.create_dataset(
                name, (frames, *shape), dtype, chunks=True, **PACKING
            )
            for name, (shape, dtype) in layout.items()
        }
        times = group.create_dataset("times", (frames,), "f8")
        group.create_dataset("ids", data=np.arange(particles))
        for first, clock, arrays in _in_parts(store, progress):
            last = first + len(clock)
            times[first:last] = clock
            for name, values in arrays.items():
                rows[name][first:last] = values
        group.attrs.update(
            format_version=FORMAT_VERSION,
            num_timesteps=frames,
            num_particles=particles,
            metadata=json.dumps(store.metadata),
        )


def _to_collection(store: FrameStore, target: Path, progress: Progress) -> None:
    """Write one .vtu per frame into `<stem>_frames`, and the .pvd of their times."""
    folder = target.with_name(f"{target.stem}_frames")
    steps: list[tuple[float, str]] = []
    for first, times, arrays in _in_parts(store, progress):
        for index, time in enumerate(times.tolist()):
            name = f"frame_{first + index:06d}.vtu"
            frame = {n: v[index] for n, v in arrays.items()}
            moving = frame.pop("positions"), frame.pop("velocities", None)
            write_frame(folder / name, time, *moving, None, frame)
            steps.append((time, f"{folder.name}/{name}"))
    write_collection(target, steps)


def _to_lines(store: FrameStore, target: Path, progress: Progress) -> None:
    whole = _recorded(*store.read(), store.metadata)
    export_trajectory_to_vtk(whole, target)
    progress(store.frames, store.frames)


def _to_npz(store: FrameStore, target: Path, progress: Progress) -> None:
    times, arrays = store.read()
    with atomic_write(target) as file:
        np.savez_compressed(file, allow_pickle=False, times=times, **arrays)
    progress(store.frames, store.frames)


def _to_csv(store: FrameStore, target: Path, progress: Progress) -> None:
    """Write one row per particle and frame; absent particles have none."""
    with atomic_write(target) as file:
        moving = "velocities" in store.layout
        names = "frame,time,particle,x,y,z" + (",u,v,w" if moving else "")
        file.write(f"{names}\n".encode())
        for first, times, arrays in _in_parts(store, progress):
            shown = shown_points(arrays["positions"])
            frames, particles = np.nonzero(shown)
            columns = [first + frames, times[frames], particles]
            columns += list(arrays["positions"][shown].T)
            columns += list(arrays["velocities"][shown].T) if moving else []
            formats = ["%d", "%.17g", "%d"] + ["%.9g"] * (len(columns) - 3)
            np.savetxt(file, np.column_stack(columns), formats, ",")


EXPORTS: dict[str, Callable[[FrameStore, Path, Progress], None]] = {
    ".vtp": _to_lines,
    ".pvd": _to_collection,
    ".h5": _to_hdf5,
    ".hdf5": _to_hdf5,
    ".npz": _to_npz,
    ".csv": _to_csv,
}


def _write_series(slices: Slices, target: Path, progress: Progress) -> Path:
    """Write one file per slice in a folder beside the collection of their times."""
    folder = target.with_name(f"{target.stem}_slices")
    steps = []
    for index, time in enumerate(np.asarray(slices.times).tolist()):
        geometry, values = slices.read_slice(index)
        path = _write_slice(folder / f"velocity_{index:04d}", geometry, values, time)
        steps.append((time, f"{folder.name}/{path.name}"))
        progress(index + 1, len(slices))
    return write_collection(target, steps)


def _write_slice(
    stem: Path, geometry: Cells | GridAxes, values: np.ndarray, time: float
) -> Path:
    facts = {"TimeValue": np.float64(time)}
    if isinstance(geometry, GridAxes):
        axes = (geometry.x, geometry.y, geometry.z)
        data = {"velocity": storage_order(values)}
        path = stem.with_suffix(".vtr")
        return write_vtr(path, axes, point_data=data, field_data=facts)
    cells = CellColumns(
        column("connectivity", geometry.connectivity),
        column("offsets", geometry.offsets[1:]),
        column("types", geometry.types.astype(np.uint8)),
    )
    path, data = stem.with_suffix(".vtu"), {"velocity": values}
    return write_vtu(path, geometry.points, cells, point_data=data, field_data=facts)


def _write_labeled(slices: Slices, target: Path, progress: Progress) -> Path:
    try:
        import xarray
    except ImportError as error:
        raise missing_extra("writing labeled grids needs xarray", "trace") from error
    geometry, first = slices.read_slice(0)
    if not isinstance(geometry, GridAxes):
        raise ValueError(
            f"{target.name!r} holds grids, and these velocities are on a mesh: "
            "convert them to .pvd"
        )
    whole = np.empty((len(slices), *first.shape), first.dtype)
    for index in range(len(slices)):
        whole[index] = slices.read(index)
        progress(index + 1, len(slices))
    order = ("time", "z", "y", "x")
    data = {
        name: (order, whole[..., c].transpose(0, 3, 2, 1))
        for c, name in enumerate("uvw")
    }
    axes = {axis: getattr(geometry, axis) for axis in "xyz"}
    found = xarray.Dataset(data, {"time": np.asarray(slices.times), **axes})
    with _aside(target) as part:
        if target.suffix.lower() == ".zarr":
            found.to_zarr(part, consolidated=False)
        else:
            found.to_netcdf(part)
    return target
