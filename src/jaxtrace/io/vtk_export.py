"""Trajectories to VTK: one file of polylines, or one file of points per frame."""

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from jaxtrace.io.polylines import (
    Recorded,
    by_particle,
    line_starts,
    recording,
    repeat_frames,
    repeat_particles,
    shown_points,
    split_lines,
)
from jaxtrace.io.vtk_write import (
    as_points,
    vertices,
    write_collection,
    write_vtp,
    write_vtu,
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
    initial_positions: Any = None,
) -> dict[str, Any]:
    """Write a trajectory for a viewer and say what was written.

    One .vtp with a polyline per particle -> {"mode": "single", "file"}; as a series,
    the folder `<stem>_series` with one .vtu per frame and a .pvd of their times ->
    {"mode": "series", "directory", "count", "collection"}. Particles that are not alive
    are left out, and lines break where one is recycled or wraps around a period.
    """
    record = recording(trajectory, include_velocities)
    initial = _initial(record, initial_positions) if include_metadata else {}
    if time_series:
        folder = Path(filename).with_name(f"{Path(filename).stem}_series")
        collection = write_frames(record, folder, initial)
        return {
            "mode": "series",
            "directory": str(folder),
            "count": len(record.times),
            "collection": str(collection),
        }
    path = with_suffix(filename, ".vtp")
    write_lines(record, path, initial if include_metadata else None)
    return {"mode": "single", "file": str(path)}


def with_suffix(filename: Filename, suffix: str) -> Path:
    """Return the name with this suffix, in place of another VTK suffix."""
    path = Path(filename)
    if path.suffix.lower() in (".vtp", ".vtu", ".vti", ".vtr", ".vts", ".vtk"):
        return path.with_suffix(suffix)
    return path.with_name(path.name + suffix)


def _initial(record: Recorded, given: Any) -> dict[str, np.ndarray]:
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


def write_lines(
    record: Recorded, path: Path, arrays: Mapping[str, np.ndarray] | None
) -> Path:
    """Write polylines, points particle after particle.

    `arrays` (N,) are repeated along each line, beside `ParticleID`, `TimeStep` and
    `Time`; None leaves these out. Velocities are added where there are any.
    """
    shown, data = record.alive, {}
    if arrays is not None:
        frames, count = shown.shape
        numbers = {"ParticleID": np.arange(count, dtype=np.int32), **arrays}
        clock = {"TimeStep": np.arange(frames, dtype=np.int32), "Time": record.times}
        data = {n: repeat_particles(n, v, shown) for n, v in numbers.items()}
        data |= {n: repeat_frames(n, v, shown) for n, v in clock.items()}
    if record.velocities is not None:
        data["Velocity"] = by_particle("Velocity", record.velocities, shown)
    verts, lines = split_lines(line_starts(record).T[shown.T])
    points = by_particle("Points", record.positions, shown)
    return write_vtp(path, points, verts=verts, lines=lines, point_data=data)


def write_frames(
    record: Recorded, folder: Filename, arrays: Mapping[str, Any] | None = None
) -> Path:
    """Write one file per frame and the collection of their times; return the latter.

    `arrays` (N,...) go into every file. What an earlier, longer series left behind is
    removed.
    """
    folder = Path(folder)
    paths = [folder / PATTERN.format(i) for i in range(len(record.times))]
    with ThreadPoolExecutor(WRITERS) as pool:
        list(
            pool.map(
                partial(_write_frame, record, arrays or {}), paths, range(len(paths))
            )
        )
    steps = zip(record.times.tolist(), (path.name for path in paths), strict=True)
    collection = write_collection(folder / "trajectory.pvd", steps)
    count = len(paths)
    while (stale := folder / PATTERN.format(count)).exists() and count:
        stale.unlink()
        count += 1
    return collection


def _write_frame(
    record: Recorded, arrays: Mapping[str, Any], path: Path, index: int
) -> None:
    velocities = record.velocities
    export_points_vtu(
        record.positions[index],
        path,
        time=record.times[index],
        velocities=None if velocities is None else velocities[index],
        alive=record.alive[index],
        arrays={
            "TimeStep": np.full(record.alive.shape[1], index, np.int32),
            **arrays,
        },
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
) -> Path:
    """Write particles as vertex cells, with `ParticleID`, `Time` and `arrays`.

    Positions are (N,3) at one time, or (K,N,3) at K times, one frame after the other;
    velocities of the same shape add `Velocity` and `Speed`, and every other array
    begins like them, (N,...) or (K,N,...). Particles that are not alive are left out.
    """
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
    return write_vtu(
        with_suffix(filename, ".vtu"),
        place[shown],
        vertices(int(shown.sum())),
        point_data={n: _like(v, shape, n)[shown] for n, v in members.items()},
        field_data={"TimeValue": np.float64(time)} if np.ndim(time) == 0 else None,
    )


def _like(values: Any, shape: tuple[int, ...], name: str) -> np.ndarray:
    """Return the array with leading axes `shape`; (N,...) serves every frame."""
    array = np.asarray(values)
    if array.shape[: len(shape)] != shape and array.shape[:1] == shape[-1:]:
        array = np.broadcast_to(array, (*shape[:-1], *array.shape))
    if array.shape[: len(shape)] != shape:
        raise ValueError(f"{name!r} has shape {array.shape}, it needs {shape} first")
    return array
