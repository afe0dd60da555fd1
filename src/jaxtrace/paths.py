"""Motion of recorded particles: their lives, unwrapped paths, distances and speeds.

A *life* is a run of consecutive frames in which a slot is alive in one generation.
Motion is counted within lives only, so that a recycled particle's jump to the inlet
is no motion, and on unwrapped paths, so that a periodic wrap is none either.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from jaxrig.memory import MIB
from jaxtrace.sphere import EARTH_RADIUS, SPHERICAL, course
from jaxtrace.types import ExitRecord, PathRecord

# Positions per block: a block's temporaries stay near the size of a CPU cache.
BLOCK_POSITIONS = 1 << 18

Columns = slice | Int[np.ndarray, " columns"]


class Lives(NamedTuple):
    """Every life of every slot, ordered by slot and then by time."""

    particle: Int[np.ndarray, " lives"]
    first: Int[np.ndarray, " lives"]
    last: Int[np.ndarray, " lives"]


def read_period(metadata: dict[str, Any]) -> Float[np.ndarray, "3"]:
    """Return length of each axis that wraps, 0 for the axes that do not."""
    given = metadata.get("period")
    if given is None:
        return np.zeros(3)
    period = np.asarray(given, dtype=np.float64)
    if period.shape == (2,):
        period = np.append(period, 0.0)
    if period.shape != (3,) or not np.all(period >= 0):
        raise ValueError(
            f"metadata['period'] is {given!r}: give three lengths, 0 for an axis that "
            "does not wrap"
        )
    return np.where(np.isinf(period), 0.0, period)


def column_blocks(frames: int, count: int) -> Iterator[slice]:
    """Return slices over `count` columns, each of at most `BLOCK_POSITIONS` entries."""
    size = max(1, BLOCK_POSITIONS // max(frames, 1))
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))


def moving_steps(
    record: PathRecord, columns: Columns = slice(None)
) -> Bool[np.ndarray, "steps columns"]:
    """Return true where a frame interval begins and ends in the same life."""
    alive, generation = record.alive[:, columns], record.generation[:, columns]
    return alive[1:] & alive[:-1] & (generation[1:] == generation[:-1])


def life_starts(
    record: PathRecord, columns: Columns = slice(None)
) -> Bool[np.ndarray, "frames columns"]:
    """Return true on the first frame of each life."""
    starts = np.array(record.alive[:, columns])
    starts[1:] &= ~moving_steps(record, columns)
    return starts


def find_lives(record: PathRecord) -> Lives:
    """Return first and last frame of every life."""
    ends = np.array(record.alive)
    ends[:-1] &= ~moving_steps(record)
    particle, first = np.nonzero(life_starts(record).T)
    return Lives(particle, first, np.nonzero(ends.T)[1])


def latest_lives(record: PathRecord) -> Lives:
    """Return the latest life of each slot that has one."""
    lives = find_lives(record)
    latest = np.append(lives.particle[1:] != lives.particle[:-1], True)
    return Lives(*(part[latest[: part.size]] for part in lives))


def seeded_frames(
    record: PathRecord, columns: Columns = slice(None)
) -> Bool[np.ndarray, "frames columns"]:
    """Return true while the particle that was there at frame 0 is still there."""
    present = np.array(record.alive[:, columns])
    present[1:] = moving_steps(record, columns)
    return np.logical_and.accumulate(present, axis=0)


def minimum_image(
    vectors: Float[np.ndarray, "*batch 3"], period: Float[np.ndarray, "3"]
) -> Float[np.ndarray, "*batch 3"]:
    """Return the shortest of the vectors that differ by whole periods."""
    nearest = vectors - period * _whole_periods(vectors, period)
    return nearest.astype(vectors.dtype, copy=False)


def joined_steps(
    record: PathRecord, columns: Columns = slice(None)
) -> Bool[np.ndarray, "steps columns"]:
    """Return true where a line may join two frames: one life, and no periodic wrap."""
    period = read_period(record.metadata)
    joined = moving_steps(record, columns)
    if not period.any():
        return joined
    with np.errstate(invalid="ignore"):
        steps = np.diff(record.positions[:, columns], axis=0)
        wrapped = minimum_image(steps, period) != steps
    return joined & ~wrapped.any(axis=-1)


def unwrap(
    record: PathRecord, columns: Columns = slice(None)
) -> Float[np.ndarray, "frames columns 3"]:
    """Undo periodic wraps; each life starts where it was recorded.

    A step is taken to be the shortest of its periodic images, which is right while no
    particle moves half a period between two frames.
    """
    positions, period = record.positions[:, columns], read_period(record.metadata)
    if not period.any():
        return positions
    with np.errstate(invalid="ignore"):
        wraps = _whole_periods(np.diff(positions, axis=0), period)
    wraps = np.where(moving_steps(record, columns)[..., None], wraps, 0)
    images = np.zeros(positions.shape)
    np.cumsum(-wraps, axis=0, out=images[1:])
    starts = life_starts(record, columns)
    frames = np.arange(len(starts))[:, None]
    start = np.maximum.accumulate(np.where(starts, frames, 0), axis=0)
    images -= np.take_along_axis(images, start[..., None], axis=0)
    return (positions + period * images).astype(positions.dtype, copy=False)


def unwrapped_at(
    record: PathRecord,
    particles: Int[np.ndarray, " points"],
    frames: Int[np.ndarray, " points"],
) -> Float[np.ndarray, "points 3"]:
    """Return unwrapped positions of chosen particles at one chosen frame each."""
    if not frames.any() or not read_period(record.metadata).any():
        return record.positions[frames, particles]
    found = np.empty((particles.size, 3), record.positions.dtype)
    for block in column_blocks(*record.alive.shape):
        (here,) = np.nonzero((particles >= block.start) & (particles < block.stop))
        paths = unwrap(record, block)
        found[here] = paths[frames[here], particles[here] - block.start]
    return found


def residence_times(record: ExitRecord) -> Float[np.ndarray, " particles"]:
    """Return how long each slot's first particle was inside, NaN if it still is.

    A slot that is recycled holds several particles; `completed_residence_times` lists
    the stays of all of them.
    """
    lives = find_lives(record)
    entered, left = life_times(record, lives)
    particle, index = np.unique(lives.particle, return_index=True)
    stays = np.full(record.positions.shape[1], np.nan)
    stays[particle] = np.abs(left - entered)[index]
    return stays


def life_times(
    record: ExitRecord, lives: Lives
) -> tuple[Float[np.ndarray, " lives"], Float[np.ndarray, " lives"]]:
    """Return when each life began and when it ended, NaN while it goes on.

    The recorded exit time is used where it falls between the life's last frame and the
    next one, else the next frame's time: the resolution of the record. So is the time
    of release between the frame before a life and its first, else that first one's.
    """
    times = np.asarray(record.times, dtype=np.float64)
    ended = lives.last < len(times) - 1
    seen = times[lives.last]
    gone = times[np.minimum(lives.last + 1, len(times) - 1)]
    left = _between(record.exit_time[lives.particle], seen, gone, gone)
    entered, before = times[lives.first], times[np.maximum(lives.first - 1, 0)]
    if record.release_time is not None:
        released = record.release_time[lives.particle]
        entered = _between(released, before, entered, entered)
    return entered, np.where(ended, left, np.nan)


def _between(exact: Any, one: Any, other: Any, default: Any) -> np.ndarray:
    """Return recorded times that lie between two frames, elsewhere those by default."""
    # One that is stored in fewer digits than the clock may round past a frame.
    slack = np.finfo(exact.dtype).eps * np.abs(exact)
    low, high = np.minimum(one, other) - slack, np.maximum(one, other) + slack
    return np.where((exact >= low) & (exact <= high), exact, default)


def read_radius(metadata: dict[str, Any]) -> float | None:
    """Return the radius of the sphere that paths lie on; None in flat space."""
    if metadata.get("coordinate_system") != SPHERICAL:
        return None
    return float(metadata.get("radius", EARTH_RADIUS))


def ways(
    start: Float[np.ndarray, "*batch 3"],
    end: Float[np.ndarray, "*batch 3"],
    radius: float | None,
) -> Float[np.ndarray, "*batch 3"]:
    """Return vectors from start to end: on a sphere, meters east, north and up.

    Their length is that of the great circle, their direction that of setting out.
    """
    if radius is None:
        return end - start
    along = course(start, end, radius).astype(start.dtype)
    return np.concatenate([along, end[..., 2:] - start[..., 2:]], -1)


def _whole_periods(
    vectors: Float[np.ndarray, "*batch 3"], period: Float[np.ndarray, "3"]
) -> Float[np.ndarray, "*batch 3"]:
    return np.where(period > 0, np.round(vectors / np.where(period > 0, period, 1)), 0)


def displacements(record: PathRecord) -> Float[np.ndarray, " particles"]:
    """Return the distance from start to end of each slot's latest life, or NaN."""
    lives = latest_lives(record)
    start = record.positions[lives.first, lives.particle]
    end = unwrapped_at(record, lives.particle, lives.last)
    distances = np.full(record.positions.shape[1], np.nan, record.positions.dtype)
    way = ways(start, end, read_radius(record.metadata))
    distances[lives.particle] = np.linalg.norm(way, axis=-1)
    return distances


def path_lengths(record: PathRecord) -> Float[np.ndarray, " particles"]:
    """Return summed step lengths over all lives of each slot, NaN if it had none."""
    lengths = np.full(record.positions.shape[1], np.nan, record.positions.dtype)
    for block in column_blocks(*record.alive.shape):
        steps = np.linalg.norm(step_vectors(record, block), axis=-1)
        moving = moving_steps(record, block)
        total = np.sum(steps, axis=0, dtype=np.float64, where=moving)
        lengths[block] = np.where(record.alive[:, block].any(axis=0), total, np.nan)
    return lengths


def own_velocities(
    record: PathRecord,
) -> Float[np.ndarray, "frames particles 3"] | None:
    """Return recorded velocities, those of the flow, if particles go with it alone."""
    return record.velocities if record.metadata.get("passive", True) else None


def speeds(record: PathRecord) -> Float[np.ndarray, "steps particles"]:
    """Return speed in each frame interval.

    With recorded velocities of passive tracers it is the speed at the start of the
    interval, NaN where the slot is empty; otherwise step length over duration, NaN
    where the step does not lie within one life or takes no time.
    """
    velocities = own_velocities(record)
    if velocities is not None:
        known = np.linalg.norm(velocities[:-1], axis=-1)
        return np.where(record.alive[:-1], known, np.nan).astype(known.dtype)
    rates = np.empty(moving_steps(record).shape, record.positions.dtype)
    durations = np.diff(record.times)[:, None]
    durations = np.where(durations != 0, durations, np.nan)
    for block in column_blocks(*record.alive.shape):
        steps = np.linalg.norm(step_vectors(record, block), axis=-1)
        rates[:, block] = steps / np.abs(durations)
    return rates


def step_vectors(
    record: PathRecord, columns: Columns = slice(None)
) -> Float[np.ndarray, "steps columns 3"]:
    """Return the motion in each frame interval, NaN if not within one life."""
    with np.errstate(invalid="ignore"):
        there = unwrap(record, columns)
        steps = ways(there[:-1], there[1:], read_radius(record.metadata))
    steps[~moving_steps(record, columns)] = np.nan
    return steps


def bounds(
    record: PathRecord,
) -> tuple[Float[np.ndarray, "3"], Float[np.ndarray, "3"]]:
    """Return the corners of the box around all alive particles, NaN if none."""
    where, positions = record.alive[..., None], record.positions
    if not where.any():
        nowhere = np.full(3, np.nan, positions.dtype)
        return nowhere, nowhere.copy()
    lowest = positions.min(axis=(0, 1), where=where, initial=np.inf)
    highest = positions.max(axis=(0, 1), where=where, initial=-np.inf)
    return lowest, highest


def memory_mb(record: PathRecord) -> float:
    """Return host memory held by the arrays of all frames, in MiB."""
    arrays = [record.positions, record.times, record.velocities, record.alive]
    if any(record.generation.strides):  # else one broadcast zero
        arrays.append(record.generation)
    return sum(array.nbytes for array in arrays if array is not None) / MIB


def summarize(values: Float[np.ndarray, "*shape"]) -> dict[str, float]:
    """Return mean, standard deviation and extremes of finite values, or NaN."""
    finite, names = values[np.isfinite(values)], ("mean", "std", "min", "max")
    if not finite.size:
        return dict.fromkeys(names, float("nan"))
    wide = finite.astype(np.float64)
    return {name: float(getattr(wide, name)()) for name in names}
