"""Trajectories and fields to VTK: polylines, points per frame, grids and meshes."""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from jaxtrace.io.vtk_write import (
    CellArrays,
    as_points,
    index_kind,
    vertices,
    write_collection,
    write_nodes,
    write_vtp,
    write_vtu,
)
from jaxtrace.paths import column_blocks, joined_steps
from jaxtrace.trajectory import Trajectory
from jaxtrace.types import PathRecord

Filename = str | os.PathLike[str]
Marks = Bool[np.ndarray, "frames particles"]
PATTERN = "trajectory_{:04d}.vtu"
WRITERS = 8  # files at once: the time of a small file is waiting for the disk
# Nodes of a cell -> VTK type number: vertex, line, triangle, tetra, pyramid, wedge,
# hexahedron, quadratic tetra.
CELL_TYPES = {1: 1, 2: 3, 3: 5, 4: 10, 5: 14, 6: 13, 8: 12, 10: 24}


def recording(trajectory: Any, include_velocities: bool = True) -> Trajectory:
    """Return a record with `alive` where points are drawn, checked and complete.

    Needs `positions` (T,N,3) and `times` (T,); takes `velocities` (T,N,3), `alive`
    (T,N), `generation` (T,N), `variables` and `metadata["period"]` where they are not
    None.
    """
    given = lambda name: getattr(trajectory, name, None)
    record = Trajectory(
        trajectory.positions,
        trajectory.times,
        given("velocities") if include_velocities else None,
        given("metadata"),
        alive=given("alive"),
        generation=given("generation"),
        variables=given("variables"),
    )
    record.alive = shown_points(record.positions, record.alive)
    return record


def shown_points(
    positions: np.ndarray, alive: np.ndarray | None = None
) -> Bool[np.ndarray, "*points"]:
    """Return which points (...,3) are drawn: finite in every axis and alive."""
    shown = np.isfinite(positions[..., 0])
    for axis in (1, 2):
        shown &= np.isfinite(positions[..., axis])
    if alive is not None:
        shown &= np.asarray(alive, bool)
    return shown


def line_starts(record: Trajectory) -> Marks:
    """Return which drawn points begin a line: the first of a life, or after a wrap."""
    starts = record.alive.copy()
    for block in column_blocks(*starts.shape):
        starts[1:, block] &= ~joined_steps(record, block)
    return starts


def split_lines(
    starts: Bool[np.ndarray, " points"],
) -> tuple[CellArrays | None, CellArrays]:
    """Return vertices for lines of one point, None if there are none, and the real
    lines.
    """
    first = np.flatnonzero(starts)
    counts = np.diff(first, append=len(starts))
    kind = index_kind(len(starts))
    ends = np.cumsum(counts[counts > 1]).astype(kind)
    lonely = first[counts == 1].astype(kind)
    joined = np.ones(len(starts), bool)
    joined[lonely] = False
    lines = CellArrays(np.flatnonzero(joined).astype(kind), ends)
    if not lonely.size:
        return None, lines
    return CellArrays(lonely, np.arange(1, lonely.size + 1, dtype=kind)), lines


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
    Variables of the run are arrays of the points.
    """
    record = recording(trajectory, include_velocities)
    initial = _initial(record, initial_positions) if include_metadata else {}
    if time_series:
        folder = Path(filename).with_name(f"{Path(filename).stem}_series")
        collection = _write_frames(record, folder, initial)
        return {
            "mode": "series",
            "directory": str(folder),
            "count": len(record.times),
            "collection": str(collection),
        }
    path = with_suffix(filename, ".vtp")
    _write_lines(record, path, initial if include_metadata else None)
    return {"mode": "single", "file": str(path)}


def with_suffix(filename: Filename, suffix: str) -> Path:
    """Return the name with this suffix, in place of another VTK suffix."""
    path = Path(filename)
    if path.suffix.lower() in (".vtp", ".vtu", ".vti", ".vtr", ".vtk"):
        return path.with_suffix(suffix)
    return path.with_name(path.name + suffix)


def _initial(record: Trajectory, given: Any) -> dict[str, np.ndarray]:
    if given is None and not len(record.positions):
        return {}
    if given is None:  # where each slot was first seen: it may be released later
        first = record.alive.argmax(axis=0)
        given = record.positions[first, np.arange(record.N)]
    initial = as_points(given, "initial_positions")
    if initial.shape != record.positions.shape[1:]:
        raise ValueError(
            f"initial_positions has shape {initial.shape}, the trajectory needs "
            f"{record.positions.shape[1:]}"
        )
    return {f"Initial{axis}": initial[:, i] for i, axis in enumerate("XYZ")}


def _write_lines(
    record: Trajectory, path: Path, arrays: Mapping[str, np.ndarray] | None
) -> None:
    """Write polylines, points particle after particle.

    `arrays` (N,) are repeated along each line, beside `ParticleID`, `TimeStep` and
    `Time`; None leaves these out. Velocities and variables are added where there are
    any.
    """
    shown, data = record.alive, dict[str, np.ndarray](record.variables)
    if arrays is not None:
        frames, count = shown.shape
        whole = {"ParticleID": np.arange(count, dtype=np.int32), **arrays}
        whole["TimeStep"] = np.arange(frames, dtype=np.int32)[:, np.newaxis]
        whole["Time"] = record.times[:, np.newaxis]
        data |= {n: np.broadcast_to(v, shown.shape) for n, v in whole.items()}
    if record.velocities is not None:
        data["Velocity"] = record.velocities
    verts, lines = split_lines(line_starts(record).T[shown.T])
    write_vtp(
        path,
        np.swapaxes(record.positions, 0, 1),
        verts=verts,
        lines=lines,
        point_data={n: np.swapaxes(values, 0, 1) for n, values in data.items()},
        shown=shown.T,
    )


def _write_frames(
    record: Trajectory, folder: Path, arrays: Mapping[str, np.ndarray]
) -> Path:
    """Write one file per frame and the collection of their times; return the latter.

    `arrays` (N,) go into every file. What an earlier, longer series left behind is
    removed.
    """
    paths = [folder / PATTERN.format(i) for i in range(len(record.times))]
    moving = record.velocities
    velocities = [None] * len(paths) if moving is None else moving
    shape = record.alive.shape
    numbers = np.broadcast_to(np.arange(len(paths), dtype=np.int32)[:, None], shape)
    each = {"TimeStep": numbers, **record.variables}
    facts = [
        {**arrays, **{name: values[i] for name, values in each.items()}}
        for i in range(len(paths))
    ]
    frames = (paths, record.times, record.positions, velocities, record.alive, facts)
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write_frame, *frames))
    steps = zip(record.times.tolist(), (path.name for path in paths), strict=True)
    collection = write_collection(folder / "trajectory.pvd", steps)
    count = len(paths)
    while (stale := folder / PATTERN.format(count)).exists() and count:
        stale.unlink()
        count += 1
    return collection


def write_frame(
    path: Filename,
    time: float,
    positions: Float[np.ndarray, "particles 3"],
    velocities: np.ndarray | None,
    alive: np.ndarray | None,
    arrays: Mapping[str, np.ndarray],
) -> Path:
    """Write the particles of one instant as vertices; the absent ones are left out.

    Beside `arrays` (N,...) there are `ParticleID` and `Time`, and with velocities
    `Velocity` and `Speed`.
    """
    count, shown = len(positions), shown_points(positions, alive)
    data = {"ParticleID": np.arange(count), "Time": np.full(count, time), **arrays}
    if velocities is not None:
        speeds = np.linalg.norm(velocities, axis=-1)
        data |= {"Velocity": velocities, "Speed": speeds}
    return write_vtu(
        path,
        positions[shown],
        vertices(int(shown.sum())),
        point_data={name: values[shown] for name, values in data.items()},
        field_data={"TimeValue": np.float64(time)},
    )


def write_grid(
    path: Filename,
    axes: Sequence[Any],
    values: Any,
    name: str = "velocity",
    time: float | None = None,
) -> Path:
    """Write values (Nx, Ny[, Nz]) or (Nx, Ny[, Nz], C) on a grid of two or three axes.

    The file is a .vti where the axes are even to rounding and rise, and else a .vtr;
    a .vtr may be asked for by its suffix.
    """
    lines = [np.asarray(axis) for axis in axes]
    data = np.asarray(values)
    if len(lines) == 2:
        lines, data = [*lines, np.zeros(1)], data[:, :, np.newaxis]
    shape = tuple(axis.size for axis in lines)
    if data.shape[:3] != shape or data.ndim not in (3, 4):
        raise ValueError(f"{name!r} has shape {data.shape}, these axes need {shape}")
    facts = {} if time is None else {"TimeValue": np.float64(time)}
    rows = data.transpose(2, 1, 0, *range(3, data.ndim)).reshape(-1, *data.shape[3:])
    suffix = Path(path).suffix.lower()
    steps = [] if suffix == ".vtr" else [_even_spacing(axis) for axis in lines]
    spacing = [step for step in steps if step is not None]
    even = len(spacing) == len(lines)
    if suffix == ".vti" and not even:
        raise ValueError("the axes are not even, which a .vti file needs: use .vtr")
    path, data = with_suffix(path, ".vti" if even else ".vtr"), {name: rows}
    return write_nodes(
        path, lines, spacing if even else None, point_data=data, field_data=facts
    )


def write_points(
    path: Filename,
    positions: Any,
    values: Any,
    name: str = "velocity",
    cells: Any = None,
    time: float | None = None,
) -> Path:
    """Write values (N,) or (N, C) at positions as a .vtu file and return it.

    Rows of `cells` are node numbers: 3 of a triangle, 4 of a tetrahedron, 8 of a
    hexahedron, and so on, or `CellArrays`; without them every point is a vertex.
    """
    place, data = as_points(positions), np.asarray(values)
    if data.shape[:1] != place.shape[:1] or data.ndim not in (1, 2):
        raise ValueError(
            f"{name!r} has shape {data.shape}, {len(place)} positions need (N,) or "
            "(N, C): write one file per instant, and write_collection for their times"
        )
    shapes = vertices(len(place)) if cells is None else _cells(cells, len(place))
    facts = {} if time is None else {"TimeValue": np.float64(time)}
    path = with_suffix(path, ".vtu")
    return write_vtu(path, place, shapes, point_data={name: data}, field_data=facts)


def _cells(cells: Any, nodes: int) -> CellArrays:
    if isinstance(cells, CellArrays):
        return cells
    array = np.asarray(cells)
    if array.ndim != 2 or array.shape[1] not in CELL_TYPES:
        raise ValueError(
            f"cells have shape {array.shape}: give one row per cell of "
            f"{', '.join(map(str, CELL_TYPES))} nodes"
        )
    if array.size and not 0 <= array.min() <= array.max() < nodes:
        raise ValueError(
            f"cells name node {array.max()}, there are {nodes}: nodes are numbered "
            "from 0"
        )
    count, size = array.shape
    ends = np.arange(size, count * size + 1, size, dtype=index_kind(count * size))
    types = np.full(count, CELL_TYPES[size], np.uint8)
    return CellArrays(array.reshape(-1), ends, types)


def _even_spacing(axis: np.ndarray) -> float | None:
    """Return the spacing of an axis that rises and is even to rounding, else None."""
    if len(axis) < 2:
        return 1.0
    spacing = (float(axis[-1]) - float(axis[0])) / (len(axis) - 1)
    exact = np.linspace(float(axis[0]), float(axis[-1]), len(axis))
    rounding = 4 * np.finfo(np.result_type(axis, np.float32)).eps * np.abs(exact).max()
    even = spacing > 0 and np.all(np.abs(axis - exact) <= rounding)
    return spacing if even else None
