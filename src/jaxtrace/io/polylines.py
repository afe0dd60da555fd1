"""Recorded particles as polylines: which points are drawn and where lines break."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from jaxtrace.io.vtk_write import (
    CellColumns,
    Column,
    as_kind,
    as_points,
    column,
    index_kind,
    integers,
    rows_per_block,
)
from jaxtrace.paths import column_blocks, joined_steps, read_period

Frames = Shaped[np.ndarray, "frames particles *rest"]
Marks = Bool[np.ndarray, "frames particles"]


@dataclass(frozen=True, eq=False)
class Recorded:
    """Recorded paths as files hold them; `alive` marks the points that are drawn."""

    positions: Float[np.ndarray, "frames particles 3"]
    times: Shaped[np.ndarray, " frames"]
    velocities: Float[np.ndarray, "frames particles 3"] | None
    generation: Shaped[np.ndarray, "frames particles"]
    alive: Marks
    metadata: dict[str, Any]


def recording(trajectory: Any, include_velocities: bool = True) -> Recorded:
    """Take the arrays of a trajectory and check that they belong together.

    Needs `positions` (T,N,3) and `times` (T,); takes `velocities` (T,N,3), `alive`
    (T,N), `generation` (T,N) and `metadata["period"]` where they are not None.
    """
    positions = as_points(trajectory.positions)
    velocities, alive, generation = (
        _optional(trajectory, name, positions)
        for name in ("velocities", "alive", "generation")
    )
    if not include_velocities:
        velocities = None
    times = np.asarray(trajectory.times)
    if positions.ndim != 3 or times.shape != positions.shape[:1]:
        raise ValueError(
            f"positions {positions.shape} and times {times.shape} do not belong "
            f"together: they are (T,N,3) and (T,)"
        )
    metadata = dict(getattr(trajectory, "metadata", None) or {})
    read_period(metadata)  # refuses a wrong one before anything is written
    return Recorded(
        positions,
        times,
        None if velocities is None else as_points(velocities, "velocities"),
        np.zeros(positions.shape[:2], np.int8) if generation is None else generation,
        shown_points(positions, alive),
        metadata,
    )


def _optional(trajectory: Any, name: str, positions: np.ndarray) -> np.ndarray | None:
    value = getattr(trajectory, name, None)
    if value is None:
        return None
    array = np.asarray(value)
    if array.shape[:2] != positions.shape[:2]:
        raise ValueError(
            f"{name} has shape {array.shape} beside positions {positions.shape}: "
            f"the first two lengths must agree"
        )
    return array


def shown_points(
    positions: np.ndarray, alive: np.ndarray | None
) -> Bool[np.ndarray, "*points"]:
    """Return which points (...,3) are drawn: finite in every axis and alive."""
    shown = np.isfinite(positions[..., 0])
    for axis in (1, 2):
        shown &= np.isfinite(positions[..., axis])
    if alive is not None:
        shown &= np.asarray(alive, bool)
    return shown


def line_starts(record: Recorded) -> Marks:
    """Return which drawn points begin a line: the first of a life, or after a wrap."""
    starts = record.alive.copy()
    for block in column_blocks(*starts.shape):
        starts[1:, block] &= ~joined_steps(record, block)
    return starts


def split_lines(
    starts: Bool[np.ndarray, " points"],
) -> tuple[CellColumns | None, CellColumns]:
    """Return vertices for lines of one point, None if there are none, and the real
    lines.
    """
    first, counts = np.flatnonzero(starts), line_counts(starts)
    kind = index_kind(len(starts))
    ends = column("offsets", np.cumsum(counts[counts > 1]).astype(kind))
    lonely = first[counts == 1].astype(kind)
    if not len(lonely):
        return None, CellColumns(
            integers("connectivity", len(starts), len(starts)), ends
        )
    joined = np.ones(len(starts), bool)
    joined[lonely] = False
    connectivity = column("connectivity", np.flatnonzero(joined).astype(kind))
    verts = CellColumns(
        column("connectivity", lonely),
        integers("offsets", len(lonely), len(lonely), start=1),
    )
    return verts, CellColumns(connectivity, ends)


def line_counts(starts: Bool[np.ndarray, " points"]) -> Int[np.ndarray, " lines"]:
    """Return how many points each line has."""
    return np.diff(np.flatnonzero(starts), append=len(starts))


def by_particle(name: str, values: Frames, shown: Marks) -> Column:
    """Return a column of the drawn points of (T,N,...), particle after particle."""
    frames = len(values)
    components = int(np.prod(values.shape[2:]))
    dtype = as_kind(values.dtype, name)
    step = rows_per_block(frames * components * dtype.itemsize)

    def blocks() -> Iterator[np.ndarray]:
        for begin in range(0, values.shape[1], step):
            part = slice(begin, begin + step)
            block, marks = np.swapaxes(values[:, part], 0, 1), shown[:, part].T
            yield block if marks.all() else block[marks]

    return Column(name, dtype, int(shown.sum()), components, blocks)


def repeat_particles(
    name: str, values: Shaped[np.ndarray, " particles"], shown: Marks
) -> Column:
    """Return a column that gives every drawn point the value of its particle."""
    whole = np.broadcast_to(values, shown.shape)
    return by_particle(name, whole, shown)


def repeat_frames(
    name: str, values: Shaped[np.ndarray, " frames"], shown: Marks
) -> Column:
    """Return a column that gives every drawn point the value of its frame."""
    whole = np.broadcast_to(values[:, np.newaxis], shown.shape)
    return by_particle(name, whole, shown)
