"""One stored instant once it is out of its file: geometry and arrays."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Integer, Shaped

Nodal = Shaped[np.ndarray, "nodes components"]
Gridded = Shaped[np.ndarray, "nx ny nz components"]


@dataclass(frozen=True, eq=False)
class Cells:
    """A mesh: nodes, and cells as slices of one flat connectivity list.

    Cell `c` has the VTK code `types[c]` and the nodes
    `connectivity[offsets[c]:offsets[c + 1]]`; a mesh without cells is a point cloud.
    """

    points: Float[np.ndarray, "nodes 3"]
    connectivity: Integer[np.ndarray, " entries"]
    offsets: Integer[np.ndarray, " cells_and_one"]
    types: Integer[np.ndarray, " cells"]

    @property
    def n_points(self) -> int:
        """Number of nodes."""
        return self.points.shape[0]

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return self.types.shape[0]

    def same_as(self, other: "Cells") -> bool:
        """Whether nodes and cells are equal, bit for bit."""
        return self is other or all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in ("types", "points", "connectivity", "offsets")
        )


@dataclass(frozen=True, eq=False)
class GridAxes:
    """A tensor-product grid: three increasing axes, a flat direction has one node."""

    x: Float[np.ndarray, " nx"]
    y: Float[np.ndarray, " ny"]
    z: Float[np.ndarray, " nz"]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of nodes along x, y and z."""
        return self.x.size, self.y.size, self.z.size

    @property
    def n_points(self) -> int:
        """Number of nodes."""
        return self.x.size * self.y.size * self.z.size

    def same_as(self, other: "GridAxes") -> bool:
        """Whether the three axes are equal, bit for bit."""
        return self is other or all(
            np.array_equal(getattr(self, axis), getattr(other, axis)) for axis in "xyz"
        )

    def points(self) -> Float[np.ndarray, "nodes 3"]:
        """The nodes, x fastest."""
        z, y, x = np.meshgrid(self.z, self.y, self.x, indexing="ij")
        return np.stack([x.ravel(), y.ravel(), z.ravel()], axis=-1)


Geometry = Cells | GridAxes


@dataclass(frozen=True, eq=False)
class Snapshot:
    """One instant: geometry with named arrays on its nodes and on its cells.

    Arrays are (N, C) on a mesh and (Nx, Ny, Nz, C) on a grid.
    """

    geometry: Geometry
    arrays: dict[str, np.ndarray]
    cell_arrays: dict[str, np.ndarray]
    time: float | None
    source: str
    #: Put together from several parts, whose shared nodes are stored once per part.
    assembled: bool = False
    #: Every array the file holds, also those that were not asked for.
    available: tuple[str, ...] = ()
    field_data: dict[str, np.ndarray] = field(default_factory=dict)


def grid_order(
    values: Shaped[np.ndarray, "nodes components"], shape: tuple[int, int, int]
) -> Gridded:
    """Values stored x fastest as an array indexed [ix, iy, iz, component]."""
    nx, ny, nz = shape
    return values.reshape(nz, ny, nx, values.shape[-1]).transpose(2, 1, 0, 3)


def storage_order(values: Gridded) -> Nodal:
    """Values indexed [ix, iy, iz, component] as rows, x fastest."""
    return values.transpose(2, 1, 0, 3).reshape(-1, values.shape[-1])


def ascending(
    axes: tuple[np.ndarray, ...], arrays: dict[str, np.ndarray]
) -> tuple[tuple[np.ndarray, ...], dict[str, np.ndarray]]:
    """Flip the axes that run downwards, and with them the leading array axes."""
    for index, axis in enumerate(axes):
        steps = np.diff(axis)
        if steps.size and not (np.all(steps > 0) or np.all(steps < 0)):
            raise ValueError(
                f"axis {'xyz'[index]} must run strictly up or down, "
                f"it has {axis.size} values from {axis[0]} to {axis[-1]}"
            )
    down = tuple(i for i, a in enumerate(axes) if a.size > 1 and a[1] < a[0])
    flipped = tuple(a[::-1] if i in down else a for i, a in enumerate(axes))
    return flipped, {name: np.flip(values, down) for name, values in arrays.items()}
