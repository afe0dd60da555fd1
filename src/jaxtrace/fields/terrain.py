"""Levels with heights of their own in every column: over terrain, below a free surface.

Heights are a table over nodes, or one per slice where the surface moves; between nodes
and instants they are interpolated as velocities are. A level has a height at a place,
a slope and a rate of rise, and particles are in space: z is up from the zero of the
file's own heights.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Float, Int

SHALLOWEST = 0.1  # meters of water where it is dry


class Layer(NamedTuple):
    """The level of each position, and how it lies and moves there."""

    level: Int[Array, " n"]
    share: Float[Array, " n"]  # of the way to the next level
    thickness: Float[Array, " n"]
    slopes: tuple[Float[Array, " n"], Float[Array, " n"]]  # with xi and with eta
    rate: Float[Array, " n"]  # of rise


@dataclass(frozen=True, eq=False)
class Stretching:
    """Heights of levels over a depth H at rest (CF, Appendix D).

    Transform 1 is z = hc s + (H - hc) C, transform 2 z = H (hc s + H C) / (hc + H); a
    plain sigma coordinate is transform 2 with hc = 0 and C = sigma. Below a surface at
    zeta all of them are zeta + z (H + zeta) / H.
    """

    s: Float[np.ndarray, " levels"]
    curve: Float[np.ndarray, " levels"]
    critical: float
    transform: int

    def heights(
        self, depth: np.ndarray, zeta: np.ndarray | float = 0.0
    ) -> Float[np.ndarray, "*columns levels"]:
        """Return z of levels in columns; where it is dry a little water is left."""
        whole = np.maximum(depth, SHALLOWEST)[..., None]
        s, curve, hc = self.s, self.curve, self.critical
        if self.transform == 1:
            z = hc * s + (whole - hc) * curve
        else:
            z = whole * (hc * s + whole * curve) / (hc + whole)
        high = np.maximum(depth + zeta, SHALLOWEST)
        return (high - depth)[..., None] + z * (high[..., None] / whole)


def face_thickness(
    heights: Float[np.ndarray, "*slices rows columns levels"],
) -> tuple[np.ndarray, np.ndarray]:
    """Return the thickness of levels at faces first along i, and first along j.

    It is that in the middle of the face, and 0 above the last level.
    """
    thick = np.diff(heights, axis=-1, append=heights[..., -1:])
    along, across = thick.copy(), thick.copy()
    along[..., :-1, :, :] += thick[..., 1:, :, :]
    across[..., :-1, :] += thick[..., 1:, :]
    along[..., :-1, :, :] /= 2
    across[..., :-1, :] /= 2
    return along, across


def find_rise(
    heights: Float[np.ndarray, "*slices rows columns levels"],
    u: np.ndarray,
    v: np.ndarray,
) -> np.ndarray:
    """Return what passes between levels, for transports (T, rows, columns, levels).

    It follows from continuity. What would pass the surface moves it. Levels move with
    it in proportion to their height over the bottom, so that much is taken from all, as
    models do.
    """
    out = np.zeros_like(u)
    gain = u[:, :-1, 1:] - u[:, :-1, :-1] + v[:, 1:, :-1] - v[:, :-1, :-1]
    up = -np.cumsum(gain[..., :-1], axis=-1)
    z = heights
    z = (
        z[..., :-1, :-1, :]
        + z[..., :-1, 1:, :]
        + z[..., 1:, :-1, :]
        + z[..., 1:, 1:, :]
    )
    share = z[..., 1:] - z[..., :1]
    share = share / np.maximum(share[..., -1:], 1e-12)
    out[:, :-1, :-1, 1:] = up - up[..., -1:] * share
    return out


def stepped_heights(
    faces: Float[np.ndarray, " faces"],
    thickness: Float[np.ndarray, "rows columns levels"],
) -> Float[np.ndarray, "corners_j corners_i faces"]:
    """Return heights of faces at corners of cells, of which the lowest are thinner.

    Levels of full cells lie between `faces`, upward; a thickness of 0 is land. The
    floor of a thin cell is above the face it has there, unless there is water below: a
    thin cell at the top counts as whole. A corner is at the mean of the floors around
    it, so that floors are slopes between the middles of faces.
    """
    whole = np.diff(faces)
    thin = (thickness > 0) & (thickness < (1 - 1e-6) * whole)
    below = np.concatenate([np.zeros_like(thickness[..., :1]), thickness[..., :-1]], -1)
    # Without land in the table, what is below a thin cell is land.
    lowest = thin & (below == 0) if (thickness == 0).any() else thin
    after = np.cumsum(lowest[..., ::-1], -1)[..., ::-1] - lowest > 0
    wet = (thickness > 0) & ~after
    floor = np.where(lowest, faces[1:] - thickness, faces[:-1])
    rows, columns, levels = thickness.shape
    total, count = np.zeros((2, rows + 1, columns + 1, levels))
    for j in (slice(0, -1), slice(1, None)):
        for i in (slice(0, -1), slice(1, None)):
            total[j, i] += np.where(wet, floor, 0)
            count[j, i] += wet
    z = np.where(count > 0, total / np.maximum(count, 1), faces[:-1])
    return np.concatenate([z, np.full_like(z[..., :1], faces[-1])], -1)
