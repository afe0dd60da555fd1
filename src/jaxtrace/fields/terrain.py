"""Terrain-following levels: heights that are functions of the depth alone.

What passes between levels follows from what passes the upright faces (continuity), so
that the bottom and the surface are closed, and a height changes as its level does: dz =
z_H dH + z_s ds. Heights are those over a surface at rest: where it moves, by eta, the
height in space is eta + z (H + eta) / H.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int


class Layer(NamedTuple):
    """The level of each position, and how it lies over the depth there."""

    level: Int[Array, " n"]
    share: Float[Array, " n"]  # of the way to the next level
    thickness: Float[Array, " n"]
    tilt: Float[Array, " n"]  # the change of z with the depth


class Stretching(eqx.Module):
    """Heights of the faces between levels over a depth H (CF, Appendix D).

    Transform 1 is z = hc s + (H - hc) C, transform 2 z = H (hc s + H C) / (hc + H); a
    plain sigma coordinate is transform 2 with hc = 0 and C = sigma.
    """

    s: Float[Array | np.ndarray, " faces"]
    curve: Float[Array | np.ndarray, " faces"]
    critical: Float[Array | np.ndarray, ""]
    transform: int = eqx.field(static=True)

    def heights(self, depth: Any, s: Any, curve: Any) -> Any:
        """Return z of faces over depths."""
        if self.transform == 1:
            return self.critical * s + (depth - self.critical) * curve
        return depth * (self.critical * s + depth * curve) / (self.critical + depth)

    def slopes(self, depth: Any, s: Any, curve: Any) -> Any:
        """Return the change of z with the depth."""
        if self.transform == 1:
            return curve
        whole, hc = self.critical + depth, self.critical
        return (hc * hc * s + curve * depth * (2 * hc + depth)) / (whole * whole)

    def find(self, z: Float[Array, " n"], depth: Float[Array, " n"]) -> Layer:
        """Return the levels of heights over depths.

        By bisection: heights increase with the number of the face.
        """
        s, curve = (jnp.asarray(t, z.dtype) for t in (self.s, self.curve))
        critical = jnp.asarray(self.critical, z.dtype)
        scaled = eqx.tree_at(lambda x: x.critical, self, critical)
        height = lambda k: scaled.heights(depth, s[k], curve[k])
        slope = lambda k: scaled.slopes(depth, s[k], curve[k])
        levels = s.shape[0] - 1
        level = jnp.zeros(z.shape, np.int32)
        step = 1 << max(levels - 1, 1).bit_length()
        while step := step // 2:
            ahead = jnp.minimum(level + step, levels - 1)
            level = jnp.where(z >= height(ahead), ahead, level)
        low, below = height(level), slope(level)
        thick = jnp.maximum(height(level + 1) - low, 1e-6)
        share = jnp.clip((z - low) / thick, 0, 1)
        tilt = below + share * (slope(level + 1) - below)
        return Layer(level, share, thick, tilt)


@dataclass(frozen=True, eq=False)
class Terrain:
    """Depths at the corners of cells, and the levels over them."""

    depth: Float[np.ndarray, "rows columns"]
    stretching: Stretching

    def heights(self) -> Float[np.ndarray, " levels"]:
        """Return the heights of levels where it is deepest."""
        s, curve = np.asarray(self.stretching.s), np.asarray(self.stretching.curve)
        return np.asarray(self.stretching.heights(self.depth.max(), s, curve))

    def thickness(self, depth: np.ndarray) -> Float[np.ndarray, "*shape levels"]:
        """Return the thickness of all levels over depths, and 0 above the last."""
        stretching = self.stretching
        z = stretching.heights(
            depth[..., None], np.asarray(stretching.s), np.asarray(stretching.curve)
        )
        return np.diff(z, axis=-1, append=z[..., -1:])

    def face_thickness(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the thickness at faces first along i, and first along j."""
        h = self.depth
        along = np.pad((h[:-1] + h[1:]) / 2, ((0, 1), (0, 0)), mode="edge")
        across = np.pad((h[:, :-1] + h[:, 1:]) / 2, ((0, 0), (0, 1)), mode="edge")
        return self.thickness(along), self.thickness(across)

    def rise(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return what passes between levels, for transports (T, rows, columns, levels).

        What would pass the surface moves it. Levels move with it in proportion to their
        height over the bottom, so that much is taken from all, as models do.
        """
        out = np.zeros_like(u)
        gain = u[:, :-1, 1:] - u[:, :-1, :-1] + v[:, 1:, :-1] - v[:, :-1, :-1]
        up = -np.cumsum(gain[..., :-1], axis=-1)
        h = self.depth
        middle = (h[:-1, :-1] + h[:-1, 1:] + h[1:, :-1] + h[1:, 1:]) / 4
        share = np.cumsum(self.thickness(middle)[..., :-1], axis=-1)
        share = share / np.maximum(share[..., -1:], 1e-12)
        out[:, :-1, :-1, 1:] = up - up[..., -1:] * share
        return out
