"""How far and how long particles travel: displacement, dispersion, residence."""

import numpy as np
from jaxtyping import Float, Int

from jaxtrace import paths
from jaxtrace.analysis.pairs import close_pairs, start_separations
from jaxtrace.types import ExitRecord, PathRecord


def mean_squared_displacement(
    trajectory: PathRecord,
) -> Float[np.ndarray, " frames"]:
    """Mean of |x(t) - x(0)|^2 over the particles of frame 0 that are still there.

    Paths are unwrapped; a frame at which none of those particles is left gives NaN.
    """
    frames, particles = trajectory.alive.shape
    total, count = np.zeros(frames), np.zeros(frames, np.int64)
    for block in paths.column_blocks(frames, particles):
        present = paths.seeded_frames(trajectory, block)
        reached = paths.unwrap(trajectory, block).astype(np.float64)
        with np.errstate(invalid="ignore"):
            squares = np.sum((reached - reached[:1]) ** 2, axis=-1)
        total += squares.sum(axis=1, where=present)
        count += present.sum(axis=1)
    return total / np.where(count > 0, count, np.nan)


def dispersion(
    trajectory: PathRecord, pairs: Int[np.ndarray, "pairs 2"] | None = None
) -> Float[np.ndarray, " frames"]:
    """Mean squared separation of pairs of particles while both are there.

    Without `pairs`, each particle is paired with the one nearest to it at frame 0.
    """
    frames = len(trajectory.times)
    if pairs is None:
        pairs = close_pairs(trajectory, radius=np.inf, neighbors=1)
    total, count = np.zeros(frames), np.zeros(frames, np.int64)
    for block in paths.column_blocks(frames, len(pairs)):
        sides = pairs[block].T
        present = np.logical_and(
            *(paths.seeded_frames(trajectory, side) for side in sides)
        )
        first, second = (
            paths.unwrap(trajectory, side).astype(np.float64) for side in sides
        )
        start = start_separations(trajectory, pairs[block])
        with np.errstate(invalid="ignore"):
            moved = (second - second[:1]) - (first - first[:1])
            squares = np.sum((start + moved) ** 2, axis=-1)
        total += squares.sum(axis=1, where=present)
        count += present.sum(axis=1)
    return total / np.where(count > 0, count, np.nan)


def exit_times(trajectory: ExitRecord) -> Float[np.ndarray, " particles"]:
    """When the first particle of each slot left, NaN while it is inside."""
    return paths.first_stays(trajectory)[1]


def residence_times(trajectory: ExitRecord) -> Float[np.ndarray, " particles"]:
    """How long the first particle of each slot was inside, NaN while it still is.

    A slot that is recycled holds several particles; `completed_residence_times` lists
    the stays of all of them.
    """
    entered, left = paths.first_stays(trajectory)
    return np.abs(left - entered)


def completed_residence_times(trajectory: ExitRecord) -> Float[np.ndarray, " stays"]:
    """Durations of every stay that ended, recycled particles included."""
    entered, left = paths.life_times(trajectory, paths.find_lives(trajectory))
    stays = np.abs(left - entered)
    return stays[np.isfinite(stays)]
