"""Grids of rows and columns of positions, and how their velocities are stored."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jaxtrace.fields.base import Corner
from jaxtrace.fields.quads import unit_vectors
from jaxtrace.fields.terrain import face_thickness, find_rise
from jaxtrace.sphere import Sphere, make_sphere


@dataclass(frozen=True, eq=False)
class CurvilinearGrid:
    """Rows and columns of positions, and levels: where values of a grid are.

    Without `faces` values are at the positions, which are nodes, and on the levels `z`.
    With `faces` the positions are corners of cells, `z` the faces between levels (one
    number where there are none), and the value [j, i, k] has the velocities through the
    faces of cell [j, i, k] that come first along i, j and z. With `layered` levels (a
    B-grid) `z` are the faces between layers too, and the value [j, i, k] has u and v at
    node [j, i] in layer k, and w through the bottom of cell [j, i, k]. Flat grids have
    no radius. Levels may have `heights` in each column; if they are `moving`, heights
    are a fourth component of the values. Particles that are given no w `stay` on them.
    `stepped` ones are level but for thin cells at the bottom.
    The nodes of a mesh of `triangles` are one column; its rim is a `coast`, or open.
    """

    x: Float[np.ndarray, "rows columns"]
    y: Float[np.ndarray, "rows columns"]
    z: Float[np.ndarray, " levels"]
    radius: float | None = None
    land: Bool[np.ndarray, "rows columns levels"] | None = None  # nodes, or cells
    shore: str = "beach"
    faces: bool = False
    scalar: bool = False  # components are no vectors: a variable and its mask
    #: Meters along the faces first along i and j; without, those between corners.
    lengths: tuple[np.ndarray, np.ndarray] | None = None
    heights: Float[np.ndarray, "rows columns levels"] | None = None
    moving: bool = False
    stay: bool = False
    stepped: bool = False
    triangles: Int[np.ndarray, "cells 3"] | None = None
    coast: bool = False
    layered: bool = False

    @property
    def shape(self) -> tuple[int, int, int]:
        """Return rows, columns and levels."""
        return (*self.x.shape, self.z.size)  # type: ignore[return-value]

    @property
    def n_points(self) -> int:
        """Number of values."""
        return self.x.size * self.z.size

    @property
    def words(self) -> str:
        """Return the kind and the size of the grid, in words."""
        if self.triangles is not None:
            levels = f" on {self.z.size} levels" if self.z.size > 1 else ""
            return (
                f"mesh of {self.x.size:,} nodes and {len(self.triangles):,} "
                f"triangles{levels}"
            )
        kind = "C-grid" if self.faces else "B-grid" if self.layered else "grid"
        return f"curvilinear {kind} of {' x '.join(map(str, self.shape))} positions"

    @property
    def folded(self) -> bool:
        """Return whether levels have heights of their own in each column."""
        return self.moving or self.heights is not None

    @property
    def vectors(self) -> bool:
        """Return whether values are stored as vectors in space."""
        return self.radius is not None and not self.faces and not self.scalar

    @cached_property
    def corners(self) -> Float[np.ndarray, "rows columns 3"]:
        """Return positions in space: on the unit sphere, or at height 1."""
        if self.radius is not None:
            return unit_vectors(self.x, self.y)
        return np.stack([self.x, self.y, np.ones_like(self.x)], -1)

    def points(self) -> Float[np.ndarray, "nodes 3"]:
        """Return the positions of all values, levels fastest."""
        columns = [np.broadcast_to(a[..., None], self.shape) for a in (self.x, self.y)]
        z = np.broadcast_to(self.z, self.shape)
        return np.stack([*columns, z], -1).reshape(-1, 3)

    @cached_property
    def span(self) -> tuple[float, float, bool]:
        """Return the ends of the longitudes, and whether they go all the way round."""
        x = self.x[np.isfinite(self.x)]
        if self.radius is None:
            return float(x.min()), float(x.max()), False
        at = np.unique(np.mod(x, 360))
        gaps = np.diff(at, append=at[0] + 360)
        widest = int(np.argmax(gaps))
        if gaps[widest] < 20:
            west = 0.0 if x.min() >= 0 and x.max() > 180 else -180.0
            return west, west + 360, True
        west = at[(widest + 1) % at.size]
        east = west + 360 - gaps[widest]
        turn = 360 * np.round((x.min() - west) / 360) if x.min() < 0 else 0.0
        return float(west + turn), float(east + turn), False

    def bounds(self) -> tuple[Corner, Corner]:
        """Return the lowest and the highest corner around all positions."""
        west, east, _ = self.span
        low, high = np.nanmin(self.y), np.nanmax(self.y)
        return np.array([west, low, self.z[0]]), np.array([east, high, self.z[-1]])

    def sphere(self, top: float) -> Sphere | None:
        """Return the sphere, whose longitudes begin where the grid does."""
        if self.radius is None:
            return None
        west, east, closed = self.span
        return make_sphere(
            self.radius, west if closed else (west + east) / 2 - 180, top
        )

    def spacing(self) -> Float[np.ndarray, "2 rows columns"]:
        """Return meters to the next position along i and along j, the last held.

        On a mesh they are both those of the shortest edge.
        """
        unit = self.radius or 1.0
        if self.triangles is not None:
            shortest = np.full(self.x.shape, np.inf)
            at = self.corners[self.triangles, 0]
            for a, b in ((0, 1), (1, 2), (2, 0)):
                length = unit * np.linalg.norm(at[:, a] - at[:, b], axis=-1)
                for end in (a, b):
                    np.minimum.at(shortest[:, 0], self.triangles[:, end], length)
            return np.stack([shortest, shortest])
        along = [np.linalg.norm(np.diff(self.corners, axis=a), axis=-1) for a in (1, 0)]
        if self.radius is not None:
            along = [2 * np.arcsin(np.minimum(chord / 2, 1)) for chord in along]
        columns = np.pad(along[0], ((0, 0), (0, 1)), mode="edge")
        rows = np.pad(along[1], ((0, 1), (0, 0)), mode="edge")
        return unit * np.stack([columns, rows])


def pack_curvilinear(
    grid: CurvilinearGrid, values: Any, dtype: Any
) -> Float[np.ndarray, "slices components places"]:
    """Return velocities (T, rows * columns * levels, 3) as the field stores them.

    Heights of levels that move are a fourth component, and come last.
    """
    values = np.asarray(values).reshape(-1, *grid.shape, 4 if grid.moving else 3)
    u, v, w = (values[..., c] for c in range(3))
    heights = values[..., 3] if grid.moving else grid.heights
    parts: list[np.ndarray] = [u, v]
    if grid.faces:
        columns, rows = grid.spacing() if grid.lengths is None else grid.lengths[::-1]
        parts = [u * rows[..., None], v * columns[..., None]]
        if heights is not None:
            thick = face_thickness(heights)
            parts = [np.nan_to_num(p) * t for p, t in zip(parts, thick, strict=True)]
            area = cell_areas(grid)[..., None]
            up = find_rise(heights, *parts) if grid.stay else w * area
            parts.append(up)
        elif grid.z.size > 1:
            parts.append(w * cell_areas(grid)[..., None])
    else:
        if grid.vectors:
            x, y = np.radians(np.nan_to_num(grid.x)), np.radians(np.nan_to_num(grid.y))
            sin, cos, high = (f[..., None] for f in (np.sin(x), np.cos(x), np.sin(y)))
            parts = [-sin * u - high * cos * v, cos * u - high * sin * v]
            parts.append(np.cos(y)[..., None] * v)
        if not grid.stay and (w.any() or grid.z.size > 1):
            parts.append(w)
    if grid.moving:
        parts.append(values[..., 3])
    table = np.stack([np.nan_to_num(p) for p in parts], 1)
    return table.reshape(len(values), len(parts), -1).astype(dtype)


def unpack_curvilinear(grid: CurvilinearGrid, stored: Any) -> Array:
    """Return velocities (T, rows * columns * levels, 3) that a field stores."""
    parts = jnp.asarray(stored).reshape(*stored.shape[:2], *grid.shape)
    heights = grid.heights
    if grid.moving:
        parts, heights = parts[:, :-1], np.asarray(parts[:, -1])
    if grid.faces:
        columns, rows = grid.spacing() if grid.lengths is None else grid.lengths[::-1]
        sizes = [s[..., None] for s in (rows, columns, cell_areas(grid))]
        if heights is not None:
            thick = (*face_thickness(heights), 1.0)
            sizes = [s * t for s, t in zip(sizes, thick, strict=True)]
        found = [
            parts[:, c] / jnp.asarray(np.where(s > 0, s, 1), parts.dtype)
            for c, s in enumerate(sizes[: parts.shape[1]])
        ]
    else:
        x, y = np.radians(np.nan_to_num(grid.x)), np.radians(np.nan_to_num(grid.y))
        turn = lambda a: jnp.asarray(a[..., None], parts.dtype)
        sin, cos, high, wide = map(turn, (np.sin(x), np.cos(x), np.sin(y), np.cos(y)))
        found = [parts[:, c] for c in range(parts.shape[1])]
        if grid.vectors:
            east = cos * parts[:, 1] - sin * parts[:, 0]
            radial = cos * parts[:, 0] + sin * parts[:, 1]
            found = [east, wide * parts[:, 2] - high * radial, *found[3:]]
    found += [jnp.zeros_like(found[0])] * (3 - len(found))
    return jnp.stack(found, -1).reshape(len(parts), -1, 3)


def cell_areas(grid: CurvilinearGrid) -> Float[np.ndarray, "rows columns"]:
    """Return the areas of cells, of the bilinear patch between their corners."""
    p = grid.corners
    across = p[:-1, 1:] + p[1:, 1:] - p[:-1, :-1] - p[1:, :-1]
    along = p[1:, :-1] + p[1:, 1:] - p[:-1, :-1] - p[:-1, 1:]
    area = np.linalg.norm(np.cross(across, along), axis=-1) / 4
    return (grid.radius or 1.0) ** 2 * np.pad(np.nan_to_num(area), ((0, 1), (0, 1)))


def closed_cells(closed: Bool[np.ndarray, "rows columns levels 2"]) -> np.ndarray:
    """Return the cells (rows, columns, levels) whose four upright faces are closed."""
    u, v = closed[..., 0], closed[..., 1]
    cells = np.ones(u.shape, bool)
    cells[:-1, :-1] = u[:-1, :-1] & u[:-1, 1:] & v[:-1, :-1] & v[1:, :-1]
    return cells
