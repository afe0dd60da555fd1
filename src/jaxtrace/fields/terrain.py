"""Terrain-following levels of C-grids: heights that are functions of the depth alone.

What passes between levels follows from what passes the upright faces (continuity), so
that the bottom and the surface are closed, and a height changes as its level does: dz =
z_H dH + z_s ds. The free surface is taken at rest.
"""

from dataclasses import dataclass, fields
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxtrace.fields.base import CellHint
from jaxtrace.fields.clock import Instant
from jaxtrace.fields.curvilinear import (
    CurvilinearField,
    CurvilinearGrid,
    Positions,
    StaggeredField,
)
from jaxtrace.fields.quads import NOWHERE, Cells, Place


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


@dataclass(frozen=True, eq=False)
class Terrain:
    """Depths at the corners of cells, and the levels over them."""

    depth: Float[np.ndarray, "rows columns"]
    stretching: Stretching

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

        What would pass the surface, which is at rest, is taken from all levels in
        proportion to their thickness, as models do.
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


class TerrainField(StaggeredField):
    """Transports through the faces of cells between terrain-following levels."""

    depth: Any = None  # at corners
    stretching: Any = None

    def _level(self, positions: Positions) -> tuple[Cells, Array]:
        """Return the lowest level: what is dry is dry at all of them."""
        zero = jnp.zeros_like(positions[:, 0])
        return zero.astype(np.int32), zero.astype(self.values.dtype)

    def velocity(
        self, positions: Positions, instant: Instant, cell_hint: CellHint
    ) -> tuple[Positions, Cells]:
        """Return the velocity that carries the transports through the cell."""
        place, hint = self._find(positions, cell_hint, self._level(positions)[0])
        dtype = self.values.dtype
        xi, eta = (jnp.clip(x, 0, 1).astype(dtype) for x in (place.xi, place.eta))
        depth, depth_xi, depth_eta = self._depth(place, dtype)
        level, low, high = self._between(positions[:, 2].astype(dtype), depth)
        thick = jnp.maximum(low.gap, 1e-6)
        share = jnp.clip((positions[:, 2].astype(dtype) - low.z) / thick, 0, 1)
        row = self.quads.width * self._shelves
        along = self._transport(0, place.cell, level, self._shelves, xi, instant)
        across = self._transport(1, place.cell, level, row, eta, instant)
        through = self._transport(2, place.cell, level, 1, share, instant)
        unit = 1.0 if self.sphere is None else jnp.asarray(self.sphere.radius, dtype)
        e_xi, e_eta, n_xi, n_eta = (unit * s.astype(dtype) for s in place.slopes)
        area = jnp.abs(e_xi * n_eta - e_eta * n_xi)
        known = (hint != NOWHERE) & (area > 0)
        per = jnp.where(known, 1 / jnp.where(area > 0, area, 1), 0)
        d_xi, d_eta = along * per / thick, across * per / thick
        tilt = low.slope + share * (high - low.slope)
        up = tilt * (depth_xi * d_xi + depth_eta * d_eta) + through * per
        found = [e_xi * d_xi + e_eta * d_eta, n_xi * d_xi + n_eta * d_eta, up]
        return jnp.stack(found, 1).astype(positions.dtype), hint

    def _depth(self, place: Place, dtype: Any) -> tuple[Array, Array, Array]:
        """Return the depth, bilinear in a cell, and its changes with xi and eta."""
        xi, eta = (jnp.clip(x, 0, 1).astype(dtype) for x in (place.xi, place.eta))
        table = jnp.asarray(self.depth, dtype)
        a, b, c, d = (
            table.at[i.astype(np.uint32)].get(mode="promise_in_bounds")
            for i in self.quads.corners(place.cell)
        )
        twist = a - b - c + d
        depth_xi, depth_eta = b - a + eta * twist, c - a + xi * twist
        return a + xi * (b - a) + eta * (c - a + xi * twist), depth_xi, depth_eta

    def _hold(self, positions: Positions, place: Place) -> Positions:
        """Return positions between the bottom and the surface.

        A step across a kink of the bottom ends beside its level, by the square of dt.
        """
        depth = self._depth(place, positions.dtype)[0]
        return positions.at[:, 2].set(jnp.clip(positions[:, 2], -depth, 0))

    def _between(self, z: Array, depth: Array) -> tuple[Cells, "_Face", Array]:
        """Return the level of heights, the face below it, and the slope of that above.

        By bisection: heights increase with the number of the face.
        """
        stretching, dtype = self.stretching, z.dtype
        s, curve = (jnp.asarray(t, dtype) for t in (stretching.s, stretching.curve))
        scaled = eqx.tree_at(
            lambda x: x.critical, stretching, jnp.asarray(stretching.critical, dtype)
        )
        height = lambda k: scaled.heights(depth, s[k], curve[k])
        levels = s.shape[0] - 1
        level = jnp.zeros(z.shape, np.int32)
        step = 1 << max(levels - 1, 1).bit_length()
        while step := step // 2:
            ahead = jnp.minimum(level + step, levels - 1)
            level = jnp.where(z >= height(ahead), ahead, level)
        low = height(level)
        slope = lambda k: scaled.slopes(depth, s[k], curve[k])
        face = _Face(low, height(level + 1) - low, slope(level))
        return level, face, slope(level + 1)


def over_terrain(grid: CurvilinearGrid, field: CurvilinearField) -> TerrainField:
    """Return the field of a grid whose levels follow the terrain."""
    given = {f.name: getattr(field, f.name) for f in fields(field)}
    terrain = grid.terrain
    depth = np.nan_to_num(terrain.depth, nan=1.0).reshape(-1)
    return TerrainField(**given, depth=depth, stretching=terrain.stretching)


class _Face(eqx.Module):
    """The lower face of a level: its height, the way to the upper one, its slope."""

    z: Array
    gap: Array
    slope: Array
