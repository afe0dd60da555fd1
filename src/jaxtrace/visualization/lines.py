"""Paths as stretches to draw: none leads over a periodic wrap or to another life."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from jaxtrace.paths import Columns, minimum_image, moving_steps, read_period
from jaxtrace.types import PathRecord


class Stretch(NamedTuple):
    """Positions on consecutive frames that one line may join."""

    particle: int
    points: Float[np.ndarray, "points 3"]


def joined_steps(
    record: PathRecord, columns: Columns = slice(None)
) -> Bool[np.ndarray, "steps columns"]:
    """True where a particle went from frame to frame without a wrap or a new life."""
    period = read_period(record.metadata)
    joined = moving_steps(record, columns)
    if not period.any():
        return joined
    with np.errstate(invalid="ignore"):
        steps = np.diff(record.positions[:, columns], axis=0)
        wrapped = minimum_image(steps, period) != steps
    return joined & ~wrapped.any(axis=-1)


def find_stretches(
    record: PathRecord, chosen: Int[np.ndarray, " chosen"], last: int
) -> list[Stretch]:
    """The stretches of chosen particles up to a frame, in the order chosen."""
    joined = joined_steps(record, chosen)[:last]
    found = []
    for column, particle in enumerate(chosen.tolist()):
        (cuts,) = np.nonzero(~joined[:, column])
        path = record.positions[: last + 1, particle]
        pieces = np.split(path, cuts + 1)
        found += [Stretch(particle, piece) for piece in pieces if len(piece) > 1]
    return found
