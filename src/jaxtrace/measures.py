"""Distances, lengths, speeds and bounds of recorded paths, summed up in figures."""

import numpy as np
from jaxtyping import Float

from jaxtrace.paths import (
    Columns,
    column_blocks,
    latest_lives,
    moving_steps,
    unwrap,
    unwrapped_at,
)
from jaxtrace.types import PathRecord

BYTES_PER_MB = 1024**2


def displacements(record: PathRecord) -> Float[np.ndarray, " particles"]:
    """Distance from start to end of each slot's latest life, NaN if it had none."""
    lives = latest_lives(record)
    start = record.positions[lives.first, lives.particle]
    end = unwrapped_at(record, lives.particle, lives.last)
    distances = np.full(record.positions.shape[1], np.nan, record.positions.dtype)
    distances[lives.particle] = np.linalg.norm(end - start, axis=-1)
    return distances


def furthest_distances(record: PathRecord) -> Float[np.ndarray, " particles"]:
    """Greatest distance from the start within each slot's latest life."""
    lives = latest_lives(record)
    distances = np.full(record.positions.shape[1], np.nan, record.positions.dtype)
    frames = np.arange(len(record.times))[:, None]
    for block in column_blocks(len(frames), lives.particle.size):
        particle, first, last = (part[block] for part in lives)
        reached = unwrap(record, particle)
        start = reached[first, np.arange(particle.size)]
        with np.errstate(invalid="ignore"):
            length = np.linalg.norm(reached - start, axis=-1)
        within = (frames >= first) & (frames <= last)
        distances[particle] = length.max(axis=0, where=within, initial=0)
    return distances


def path_lengths(record: PathRecord) -> Float[np.ndarray, " particles"]:
    """Summed step lengths over all lives of each slot, NaN if it had none."""
    lengths = np.full(record.positions.shape[1], np.nan, record.positions.dtype)
    for block in column_blocks(*record.alive.shape):
        steps = np.linalg.norm(step_vectors(record, block), axis=-1)
        moving = moving_steps(record, block)
        total = np.sum(steps, axis=0, dtype=np.float64, where=moving)
        lengths[block] = np.where(record.alive[:, block].any(axis=0), total, np.nan)
    return lengths


def speeds(record: PathRecord) -> Float[np.ndarray, "steps particles"]:
    """Speed in each frame interval.

    With recorded velocities it is the speed at the start of the interval, NaN where the
    slot is empty; otherwise step length over duration, NaN where the step does not lie
    within one life or takes no time.
    """
    if record.velocities is not None:
        known = np.linalg.norm(record.velocities[:-1], axis=-1)
        return np.where(record.alive[:-1], known, np.nan).astype(known.dtype)
    rates = np.empty(moving_steps(record).shape, record.positions.dtype)
    durations = _durations(record)
    for block in column_blocks(*record.alive.shape):
        steps = np.linalg.norm(step_vectors(record, block), axis=-1)
        rates[:, block] = steps / np.abs(durations)
    return rates


def frame_velocities(
    record: PathRecord, columns: Columns = slice(None)
) -> Float[np.ndarray, "frames columns 3"]:
    """Recorded velocities, else the mean of the two steps that meet at each frame.

    Where only one of the steps lies within the life it is taken alone; a life of one
    frame has velocity 0.
    """
    if record.velocities is not None:
        return record.velocities[:, columns]
    rates = step_vectors(record, columns) / _durations(record)[..., None]
    known = np.isfinite(rates)
    rates = np.where(known, rates, 0)
    shape = (len(record.times), *rates.shape[1:])
    total, count = np.zeros(shape, record.positions.dtype), np.zeros(shape, np.int8)
    for frames in (slice(None, -1), slice(1, None)):
        total[frames] += rates
        count[frames] += known
    return total / np.maximum(count, 1).astype(total.dtype)


def step_vectors(
    record: PathRecord, columns: Columns = slice(None)
) -> Float[np.ndarray, "steps columns 3"]:
    """Motion in each frame interval, NaN where it does not lie within one life."""
    with np.errstate(invalid="ignore"):
        steps = np.diff(unwrap(record, columns), axis=0)
    steps[~moving_steps(record, columns)] = np.nan
    return steps


def bounds(
    record: PathRecord,
) -> tuple[Float[np.ndarray, "3"], Float[np.ndarray, "3"]]:
    """Lowest and highest recorded coordinates of alive particles, NaN if none."""
    where, positions = record.alive[..., None], record.positions
    if not where.any():
        nowhere = np.full(3, np.nan, positions.dtype)
        return nowhere, nowhere.copy()
    lowest = positions.min(axis=(0, 1), where=where, initial=np.inf)
    highest = positions.max(axis=(0, 1), where=where, initial=-np.inf)
    return lowest, highest


def memory_mb(record: PathRecord) -> float:
    """Host memory held by the arrays of all frames, in MiB."""
    arrays = [record.positions, record.times, record.velocities, record.alive]
    if any(record.generation.strides):  # else one broadcast zero
        arrays.append(record.generation)
    return sum(array.nbytes for array in arrays if array is not None) / BYTES_PER_MB


def summarize(values: Float[np.ndarray, "*shape"]) -> dict[str, float]:
    """Mean, standard deviation and extremes of the finite values, NaN if none."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return dict.fromkeys(("mean", "std", "min", "max"), float("nan"))
    return {
        "mean": float(finite.mean(dtype=np.float64)),
        "std": float(finite.std(dtype=np.float64)),
        "min": float(finite.min()),
        "max": float(finite.max()),
    }


def _durations(record: PathRecord) -> Float[np.ndarray, "steps 1"]:
    durations = np.diff(record.times)[:, None]
    return np.where(durations != 0, durations, np.nan)
