"""Files from one format to another: recorded trajectories, and series of velocities."""

import importlib
import json
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from jaxrig.atomic import atomic_write, remove_path
from jaxrig.machine import import_extra
from jaxtrace.fields.curved_grid import CurvilinearGrid
from jaxtrace.fields.interpolation import TensorGrid
from jaxtrace.io.formats import open_slices
from jaxtrace.io.geometry import Cells
from jaxtrace.io.hdf5 import EXTENSIONS as HDF5_EXTENSIONS
from jaxtrace.io.hdf5 import open_hdf5
from jaxtrace.io.series import Slices
from jaxtrace.io.store import (
    FORMAT_VERSION,
    RECORDED,
    SUFFIX,
    TIMES,
    Frames,
    FrameStore,
    join_components,
    open_store,
)
from jaxtrace.io.vtk_export import (
    export_trajectory_to_vtk,
    shown_points,
    write_frame,
    write_grid,
    write_points,
)
from jaxtrace.io.vtk_write import CellArrays, write_collection
from jaxtrace.trajectory import Trajectory

Progress = Callable[[int, int], None]
FRAMES_AT_ONCE = 64
GROUP = "trajectories"  # of an HDF5 file
ENDS = ("status", "exit_time", "release_time")  # of each particle
NETCDF = ".nc"
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

    Recorded trajectories (.zarr, .h5, .nc) become .vtp, .pvd, .h5, .nc, .npz, .csv or
    .parquet; velocities of any readable kind become a VTK series (.pvd), those on grids
    also netCDF (.nc) or zarr.
    """
    source, target = Path(source), Path(target)
    if target.exists():
        raise FileExistsError(f"{target} exists: remove it or give another name")
    if holds_trajectories(source):
        return _export(source, target, progress)
    slices, suffix = open_slices(str(source)), target.suffix.lower()
    if suffix not in SERIES_TARGETS:
        raise ValueError(
            f"{target.name!r}: velocities are written as {', '.join(SERIES_TARGETS)}"
        )
    write = _write_series if suffix == ".pvd" else _write_labeled
    return write(slices, target, progress)


def holds_trajectories(path: str | os.PathLike[str]) -> bool:
    """Return whether a path holds recorded trajectories, and not velocities."""
    path = Path(path)
    if not path.exists() or (path.is_file() and not path.stat().st_size):
        return False
    if path.suffix.lower() in HDF5_EXTENSIONS:
        with open_hdf5(path) as root:
            return GROUP in root
    if path.suffix.lower() == NETCDF:
        with _open_netcdf(path) as found:
            return found.attrs.get("featureType") == "trajectory"
    if path.suffix.lower() != SUFFIX:
        return False
    try:
        with open_store(path, "r") as store:
            return "positions" in store.layout
    except ValueError:  # another kind of zarr folder
        return False


def read_recorded(path: str | os.PathLike[str]) -> Trajectory:
    """Read a whole recorded run from a .zarr store or an exported .h5 or .nc file."""
    times, arrays, metadata, particles = _read_arrays(Path(path))
    return Trajectory(
        arrays["positions"],
        times,
        arrays.get("velocities"),
        metadata,
        generation=arrays.get("generation"),
        status=particles.get("status"),
        exit_time=particles.get("exit_time"),
        variables={n: a for n, a in arrays.items() if n not in RECORDED},
        release_time=particles.get("release_time"),
    )


def _read_arrays(path: Path) -> tuple[np.ndarray, Frames, Mapping[str, Any], Frames]:
    """Return times, arrays by frame, facts about the run, and arrays by particle."""
    if path.suffix.lower() in HDF5_EXTENSIONS:
        with open_hdf5(path) as root:
            group = root[GROUP]
            whole = {name: array[()] for name, array in group.items()}
            metadata = json.loads(group.attrs.get("metadata", "{}"))
            particles = {n: whole.pop(n) for n in ENDS if n in whole}
            times, _ = whole.pop("times"), whole.pop("ids", None)
            return times, whole, metadata, particles
    if path.suffix.lower() == NETCDF:
        return _from_netcdf(path)
    with open_store(path, "r") as store:
        return *store.read(), store.metadata, store.read_particles()


def _import_xarray() -> Any:
    return import_extra("xarray", "netCDF files", "trace")


def _open_netcdf(path: Path) -> Any:
    try:
        return _import_xarray().open_dataset(path, decode_times=False)
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} is not a readable netCDF file: {error}") from error


def _from_netcdf(path: Path) -> tuple[np.ndarray, Frames, Mapping[str, Any], Frames]:
    with _open_netcdf(path) as found:
        columns = {str(n): v.values for n, v in found.variables.items()}
        metadata = json.loads(found.attrs.get("metadata", "{}"))
    arrays: Frames = {
        name: np.stack([p.T for p in parts], -1) if len(parts) > 1 else parts[0].T
        for name, parts in join_components(columns).items()
    }
    return columns[TIMES], arrays, metadata, columns


def streaming_path(output: str | os.PathLike[str]) -> Path:
    """Return the store that a run streams to before it is exported to `output`."""
    path = Path(output)
    if path.suffix.lower() not in (SUFFIX, *EXPORTS):
        known = ", ".join((SUFFIX, *EXPORTS))
        raise ValueError(f"{path.name!r}: a run is written as {known}")
    if path.suffix.lower() == ".parquet":
        _pyarrow()  # before the run rather than after it
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
    times, arrays, metadata, particles = _read_arrays(source)
    known = {name: particles[name] for name in ENDS if name in particles}
    aside = target.with_name(f".{target.name}{SUFFIX}")
    if target.suffix.lower() == SUFFIX:
        with open_store(target, "x", metadata=metadata) as store:
            store.append(times, arrays)
            store.finish(known)
        return target
    try:
        with open_store(aside, "w", metadata=metadata) as store:
            store.append(times, arrays)
            store.finish(known)
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
def _aside(target: Path) -> Generator[Path, None, None]:
    """Yield a name to write to, which becomes the target if the block succeeds."""
    part = target.with_name(f".{target.name}.part")
    remove_path(part)
    yield part
    os.replace(part, target)


def _to_hdf5(store: FrameStore, target: Path, progress: Progress) -> None:
    """Write the group `trajectories`: an array per name, `times`, `ids`, metadata."""
    h5py = import_extra("h5py", "HDF5 files", "trace")
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
        ends = store.read_particles() | {"ids": np.arange(particles)}
        for name, values in ends.items():
            group.create_dataset(name, data=values)
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
    export_trajectory_to_vtk(read_recorded(store.path), target)
    progress(store.frames, store.frames)


def _to_npz(store: FrameStore, target: Path, progress: Progress) -> None:
    times, arrays = store.read()
    arrays |= store.read_particles()
    with atomic_write(target) as file:
        np.savez_compressed(file, allow_pickle=False, times=times, **arrays)
    progress(store.frames, store.frames)


def _to_netcdf(store: FrameStore, target: Path, progress: Progress) -> None:
    """Write the trajectories of the CF conventions as they are in the store."""
    xarray = _import_xarray()
    found = xarray.open_zarr(store.path, consolidated=False, decode_times=False)
    with _aside(target) as part:
        found.drop_encoding().to_netcdf(part, engine="h5netcdf")
    progress(store.frames, store.frames)


def _rows(store: FrameStore, progress: Progress) -> Iterator[dict[str, np.ndarray]]:
    """Yield columns by name, a row per particle and frame; absent ones have none."""
    for first, times, arrays in _in_parts(store, progress):
        positions = arrays.pop("positions")
        shown = shown_points(positions)
        frames, particles = np.nonzero(shown)
        when = store.read_observed(first, first + len(times))[shown]
        columns = {"frame": first + frames, "time": when, "particle": particles}
        columns |= zip(store.axes, positions[shown].T, strict=True)
        if "velocities" in arrays:
            columns |= zip("uvw", arrays.pop("velocities")[shown].T, strict=True)
        columns |= {n: v[shown] for n, v in arrays.items() if v.ndim == 2}
        yield columns


def as_dates(times: np.ndarray, metadata: Mapping[str, Any]) -> np.ndarray | None:
    """Return times as dates; None for a run whose times are plain numbers."""
    if "time_units" not in metadata:
        return None
    units = {"units": metadata["time_units"]}
    units["calendar"] = metadata.get("calendar") or "standard"
    xarray = _import_xarray()
    coded = xarray.Dataset({"time": ("row", np.asarray(times, np.float64), units)})
    return xarray.decode_cf(coded)["time"].values


def span_words(times: np.ndarray, metadata: Mapping[str, Any]) -> str:
    """Return the first and the last of times, with their dates if they have any."""
    ends = np.asarray(times, np.float64)[[0, -1]]
    dates = as_dates(ends, metadata) if metadata.get("time_units") else None
    words = [f"{time:.6g}" for time in ends]
    if dates is not None:
        told = (str(date).replace("T", " ")[:16] for date in dates)
        words = [f"{word} ({date})" for word, date in zip(words, told, strict=True)]
    return " to ".join(words)


def dates_to_numbers(dates: Sequence[str], metadata: Mapping[str, Any]) -> list[float]:
    """Return ISO dates as numbers in the time units and calendar of a run."""
    calendar = metadata.get("calendar") or "standard"
    cftime = import_extra("cftime", "dates", "trace")
    found = [cftime.num2date(0, f"seconds since {date}", calendar) for date in dates]
    numbers = cftime.date2num(found, metadata["time_units"], calendar)
    return np.asarray(numbers, float).tolist()


def _to_csv(store: FrameStore, target: Path, progress: Progress) -> None:
    """Write one row per particle and frame; a run with dates has them as text."""
    pandas = import_extra("pandas", ".csv files", "trace")
    with atomic_write(target) as file:
        for part, columns in enumerate(_rows(store, progress)):
            # Rows of one instant share the text of their time.
            when, row = np.unique(columns["time"], return_inverse=True)
            dates = as_dates(when, store.metadata)
            words = (
                [f"{t:.17g}" for t in when] if dates is None else map(_date_text, dates)
            )
            columns["time"] = np.array(list(words), object)[row]
            table = pandas.DataFrame(columns)
            table.to_csv(file, header=not part, index=False)


def _date_text(date: Any) -> str:
    if isinstance(date, np.datetime64):
        return str(date.astype("datetime64[ms]"))
    return date.isoformat()


def _pyarrow() -> tuple[Any, Any]:
    try:
        names = ("pyarrow", "pyarrow.parquet")
        whole, parquet = (importlib.import_module(name) for name in names)
    except ImportError as error:
        raise ImportError(
            "parquet files need pyarrow, which is not installed: install it, or write "
            ".csv or .nc"
        ) from error
    return whole, parquet


def _to_parquet(store: FrameStore, target: Path, progress: Progress) -> None:
    """Write the same rows, a row group for some frames at a time."""
    pyarrow, parquet = _pyarrow()
    with _aside(target) as part:
        writer = None
        for columns in _rows(store, progress):
            dates = as_dates(columns["time"], store.metadata)
            if dates is not None and dates.dtype.kind == "M":
                columns["time"] = dates
            table = pyarrow.table(columns)
            writer = writer or parquet.ParquetWriter(part, table.schema)
            writer.write_table(table)
        if writer is None:
            raise ValueError(f"{store.path} holds no frames: nothing to write")
        writer.close()


EXPORTS: dict[str, Callable[[FrameStore, Path, Progress], None]] = {
    ".vtp": _to_lines,
    ".pvd": _to_collection,
    ".h5": _to_hdf5,
    ".hdf5": _to_hdf5,
    ".npz": _to_npz,
    ".csv": _to_csv,
    ".nc": _to_netcdf,
    ".parquet": _to_parquet,
}


def _write_series(slices: Slices, target: Path, progress: Progress) -> Path:
    """Write one file per slice in a folder beside the collection of their times."""
    folder = target.with_name(f"{target.stem}_slices")
    steps = []
    for index, time in enumerate(np.asarray(slices.times).tolist()):
        geometry, values = slices.read_slice(index)
        if isinstance(geometry, CurvilinearGrid):
            raise ValueError(
                f"{slices.labels[index]}: velocities of a curvilinear grid are in "
                "labeled files already; convert the trajectories of a run"
            )
        path = _write_slice(folder / f"velocity_{index:04d}", geometry, values, time)
        steps.append((time, f"{folder.name}/{path.name}"))
        progress(index + 1, len(slices))
    return write_collection(target, steps)


def _write_slice(
    stem: Path, geometry: Cells | TensorGrid, values: np.ndarray, time: float
) -> Path:
    if isinstance(geometry, TensorGrid):
        path = stem.with_suffix(".vtr")
        return write_grid(path, geometry.axes, values, time=time)
    ends, types = geometry.offsets[1:], geometry.types.astype(np.uint8)
    cells = CellArrays(geometry.connectivity, ends, types)
    return write_points(stem, geometry.points, values, cells=cells, time=time)


def _write_labeled(slices: Slices, target: Path, progress: Progress) -> Path:
    xarray = _import_xarray()
    geometry, first = slices.read_slice(0)
    if not isinstance(geometry, TensorGrid):
        raise ValueError(
            f"{target.name!r} holds grids of straight axes, and these velocities are "
            "on a mesh or curvilinear: convert them to .pvd, if on a mesh"
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
    axes = zip("xyz", geometry.axes, strict=True)
    found = xarray.Dataset(data, {"time": np.asarray(slices.times), **dict(axes)})
    with _aside(target) as part:
        if target.suffix.lower() == ".zarr":
            found.to_zarr(part, consolidated=False)
        else:
            found.to_netcdf(part)
    return target
