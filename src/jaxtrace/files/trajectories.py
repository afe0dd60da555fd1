"""Trajectories to VTK: one file of polylines, or one file of points per frame."""

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from jaxtrace.files.collection import write_collection, write_file_series
from jaxtrace.files.columns import Column, as_points, vertices
from jaxtrace.files.formats import choose_format
from jaxtrace.files.polylines import (
    Recording,
    by_particle,
    line_counts,
    line_starts,
    path_lengths,
    recording,
    repeat_frames,
    repeat_particles,
    shown_points,
    split_lines,
)
from jaxtrace.types import PathRecord

Filename = str | os.PathLike[str]
PATTERN = "trajectory_{:04d}.vtu"
WRITERS = 8  # files at once: the time of a small file is waiting for the disk


def export_trajectory_to_vtk(
    trajectory: PathRecord,
    filename: Filename,
    include_velocities: bool = True,
    include_metadata: bool = True,
    time_series: bool = False,
    format: str = "xml",
    initial_positions: Any = None,
) -> dict[str, Any]:
    """Write a trajectory for a viewer and say what was written.

    One .vtp with a polyline per particle -> {"mode": "single", "file"}; as a series,
    the folder `<stem>_series` with one .vtu per frame and a .pvd of their times ->
    {"mode": "series", "directory", "count", "collection"}. `format="binary"` writes
    .vtk files instead; the suffix of the name is made to fit. The dead are left out,
    and lines break where a particle is recycled or wraps around a period.
    """
    record = recording(trajectory, include_velocities)
    initial = _initial(record, initial_positions) if include_metadata else {}
    if time_series:
        folder = Path(filename).with_name(f"{Path(filename).stem}_series")
        collection = write_frames(record, folder, PATTERN, initial, format)
        return {
            "mode": "series",
            "directory": str(folder),
            "count": len(record.times),
            "collection": str(collection),
        }
    data = {}
    if include_metadata:
        data = {**identity_columns(record), **time_columns(record)}
        for name, values in initial.items():
            data[name] = repeat_particles(name, values, record.shown)
    path = write_lines(record, filename, data, format)
    return {"mode": "single", "file": str(path)}


export_trajectory_vtk = export_trajectory_to_vtk


def _initial(record: Recording, given: Any) -> dict[str, np.ndarray]:
    if given is None:
        first = record.positions[:1]
        return {
            f"Initial{a}": first[0, :, i] for i, a in enumerate("XYZ") if len(first)
        }
    initial = as_points(given, "initial_positions")
    if initial.shape != record.positions.shape[1:]:
        raise ValueError(
            f"initial_positions has shape {initial.shape}, the trajectory needs "
            f"{record.positions.shape[1:]}"
        )
    return {f"Initial{axis}": initial[:, i] for i, axis in enumerate("XYZ")}


def identity_columns(record: Recording, identities: Any = None) -> dict[str, Column]:
    """The column `ParticleID`; the particles are 0, 1, ... unless named."""
    count = record.shown.shape[1]
    names = np.arange(count, dtype=np.int32) if identities is None else identities
    return {"ParticleID": repeat_particles("ParticleID", names, record.shown)}


def time_columns(record: Recording) -> dict[str, Column]:
    """The columns `TimeStep`, the number of the frame, and `Time`."""
    frames = np.arange(len(record.times), dtype=np.int32)
    return {
        "TimeStep": repeat_frames("TimeStep", frames, record.shown),
        "Time": repeat_frames("Time", record.times, record.shown),
    }


def write_lines(
    record: Recording,
    filename: Filename,
    data: Mapping[str, Column],
    format: str = "xml",
    *,
    lengths: bool = False,
) -> Path:
    """Write polylines, points particle after particle, with the point columns `data`.

    Velocities are added, and with `lengths` the cell array `PathLength`.
    """
    kind, shown = choose_format(format, "polydata"), record.shown
    starts = line_starts(record)
    in_order = starts.T[shown.T]
    verts, lines = split_lines(in_order)
    if record.velocities is not None:
        data = {**data, "Velocity": by_particle("Velocity", record.velocities, shown)}
    cells = None
    if lengths:
        # Vertices, lines of one point, come before the others and have no length.
        joined = line_counts(in_order) > 1
        real = path_lengths(record, starts)[joined]
        cells = {"PathLength": np.append(np.zeros(np.count_nonzero(~joined)), real)}
    return kind.write(
        kind.name(filename),
        by_particle("Points", record.positions, shown),
        verts=verts,
        lines=lines,
        point_data=data,
        cell_data=cells,
    )


def write_frames(
    record: Recording,
    folder: Filename,
    pattern: str = PATTERN,
    arrays: Mapping[str, Any] | None = None,
    format: str = "xml",
) -> Path:
    """Write one file per frame and the collection of their times; return the latter.

    `arrays` (N,...) go into every file. What an earlier, longer series of the same
    pattern left behind is removed.
    """
    kind, folder = choose_format(format, "grid"), Path(folder)
    paths = [kind.name(folder / pattern.format(i)) for i in range(len(record.times))]
    if len(set(paths)) < len(paths):
        raise ValueError(f"{pattern!r} has no frame number: use 'name_{{:04d}}.vtu'")
    frame = partial(_write_frame, record, arrays or {}, format)
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(frame, range(len(paths)), paths))
    names = [path.relative_to(folder).as_posix() for path in paths]
    steps = list(zip(record.times.tolist(), names, strict=True))
    stem = pattern.partition("{")[0].rstrip("_-.") or "series"
    if format == "xml":
        collection = write_collection(folder / f"{stem}.pvd", steps)
    else:
        collection = write_file_series(folder / f"{stem}.vtk.series", steps)
    count = len(paths)
    while (stale := kind.name(folder / pattern.format(count))).exists() and count:
        stale.unlink()
        count += 1
    return collection


def _write_frame(
    record: Recording, arrays: Mapping[str, Any], format: str, index: int, path: Path
) -> None:
    velocities = record.velocities
    export_points_vtu(
        record.positions[index],
        path,
        time=record.times[index],
        velocities=None if velocities is None else velocities[index],
        alive=record.shown[index],
        arrays={
            "TimeStep": np.full(record.shown.shape[1], index, np.int32),
            **arrays,
        },
        format=format,
    )


def export_points_vtu(
    positions: Any,
    filename: Filename,
    *,
    time: Any = 0.0,
    velocities: Any = None,
    alive: Any = None,
    particle_ids: Any = None,
    arrays: Mapping[str, Any] | None = None,
    format: str = "xml",
) -> Path:
    """Write particles as vertex cells, with `ParticleID`, `Time` and `arrays`.

    Positions are (N,3) at one time, or (K,N,3) at K times, one frame after the other;
    velocities of the same shape add `Velocity` and `Speed`, and every other array
    begins like them, (N,...) or (K,N,...). The dead are left out.
    """
    kind = choose_format(format, "grid")
    place, data = gather_points(
        positions, time, velocities, alive, particle_ids, arrays
    )
    return kind.write(
        kind.name(filename),
        place,
        vertices(len(place)),
        point_data=data,
        field_data={"TimeValue": np.float64(time)} if np.ndim(time) == 0 else None,
    )


def gather_points(
    positions: Any,
    time: Any,
    velocities: Any = None,
    alive: Any = None,
    particle_ids: Any = None,
    arrays: Mapping[str, Any] | None = None,
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The living points (P,3) and their arrays, as `export_points_vtu` writes them."""
    place = as_points(positions)
    shape = place.shape[:-1]
    if place.ndim not in (2, 3) or np.shape(time) != shape[:-1]:
        raise ValueError(
            f"positions {place.shape} do not belong to time {np.shape(time)}: "
            f"they are (N,3) and one number, or (K,N,3) and (K,)"
        )
    when = np.broadcast_to(np.asarray(time)[..., np.newaxis], shape)
    identities = np.arange(shape[-1]) if particle_ids is None else particle_ids
    members: dict[str, Any] = {"ParticleID": identities, "Time": when}
    if velocities is not None:
        flow = as_points(velocities, "velocities")
        members |= {"Velocity": flow, "Speed": np.linalg.norm(flow, axis=-1)}
    members |= arrays or {}
    shown = shown_points(place, None if alive is None else _like(alive, shape, "alive"))
    return place[shown], {n: _like(v, shape, n)[shown] for n, v in members.items()}


def _like(values: Any, shape: tuple[int, ...], name: str) -> np.ndarray:
    """The array with the leading axes `shape`; one of (N,...) serves every frame."""
    array = np.asarray(values)
    if array.shape[: len(shape)] != shape and array.shape[:1] == shape[-1:]:
        array = np.broadcast_to(array, (*shape[:-1], *array.shape))
    if array.shape[: len(shape)] != shape:
        raise ValueError(f"{name!r} has shape {array.shape}, it needs {shape} first")
    return array
