"""B-grids as POP and MOM write them: u and v at corners, w between the layers.

Corner [j, i] is the north-east one of cell [j, i]. Over a layer u and v are constant;
w is constant across a cell and linear from its bottom to its top.
"""

import dataclasses
from typing import Any

import numpy as np

from jaxtrace.fields.curved_grid import CurvilinearGrid
from jaxtrace.io.cf import canonical, read_rise, read_vertical
from jaxtrace.io.grid_part import Choices, Part, dimension_roles


def has_layers(dataset: Any, names: tuple[str, ...]) -> bool:
    """Return whether a third component lies between the levels of the first two."""
    if len(names) < 3:
        return False
    u, w = dataset[names[0]], dataset[names[2]]
    apart = set(w.dims) - set(u.dims)
    return u.ndim == w.ndim > 2 and u.shape[-2:] == w.shape[-2:] and bool(apart)


def join_faces(
    middle: np.ndarray, between: np.ndarray, label: str, names: tuple[str, str]
) -> np.ndarray:
    """Return heights of all faces around levels, upward: a missing end is added."""
    z = between
    if z.size == middle.size and not np.allclose(z, middle):
        if z[0] < middle[0]:  # bottoms, without the surface
            z = np.append(z, min(2 * middle[-1] - z[-1], 0.0))
        else:
            z = np.concatenate([[2 * middle[0] - z[0]], z])
    apart = z.size == middle.size + 1
    if not (apart and np.all((z[1:] > middle) & (z[:-1] < middle))):
        raise ValueError(
            f"{label}: {between.size} depths of {names[0]!r} do not lie between the "
            f"{middle.size} of {names[1]!r}; to stay on levels give "
            "velocity_field_name= the two horizontal variables only"
        )
    return z


class LayeredPart(Part):
    """One dataset of a B-grid with vertical velocities."""

    def _find_dimensions(self, dataset: Any, choices: Choices) -> None:
        *self._variables, self._rise = self._variables
        super()._find_dimensions(dataset, choices)
        known = {"y": self._rise.dims[-2], "x": self._rise.dims[-1]}
        self._rise_roles = dimension_roles(self._rise, self.label, known)
        self._as_sites()
        self._said.append("B-grid: u and v constant over a layer, w linear")

    def _place(self, dataset: Any) -> CurvilinearGrid:
        grid, w = super()._place(dataset), self._rise
        flat = not isinstance(grid, CurvilinearGrid) or self.radius is None
        if flat or self._terrain is not None:
            raise ValueError(
                f"{self.label}: B-grids are understood on a sphere, on levels that do "
                "not follow the terrain; give "
                "velocity_field_name= the two horizontal variables only"
            )
        units = canonical(w.attrs.get("units", "m/s"))
        self._rise_factor = read_rise(w, units, self._vertical, self.label)
        levels = w.coords[self._rise_roles["z"]]
        factor = read_vertical(levels, self._ocean, self.label).factor
        z = np.sort(factor * np.asarray(levels.values, np.float64))
        self._falls = bool(factor * (levels.values[-1] - levels.values[0]) < 0)
        faces = join_faces(grid.z, z, self.label, (str(w.name), self.names[0]))
        self._first = 0 if np.isclose(faces[0], z[0]) else 1
        return dataclasses.replace(grid, z=faces, layered=True)

    def read(self, row: int, dtype: np.dtype) -> np.ndarray:
        """Return one instant: u and v of layers, and w through their bottoms."""
        out = np.zeros((*self.axes.shape, 3), dtype)
        out[:, :, :-1] = super().read(row, dtype)
        out[:, :, -1, :2] = out[:, :, -2, :2]  # of no layer, but masked as the last
        w = self._slab(self._rise, self._rise_roles, "yxz", row, dtype)
        w = np.nan_to_num(w)
        w = (np.flip(w, -1) if self._falls else w) * self._rise_factor
        w = w[1:, self._keep[0][1:]]
        out[:-1, :-1, self._first : self._first + w.shape[-1], 2] = w
        return out
