"""Fields on structured grids as users make them: arrays and axes in, samples out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxtrace.fields.base import Sampled
from jaxtrace.fields.grid import GridField, make_grid_field

Triple = tuple[float, float, float]


@dataclass(frozen=True)
class GridMeta:
    """What a grid looks like: first node, mean spacing, nodes per axis and corners.

    The spacing of an axis with one node is 1.
    """

    origin: Triple
    spacing: Triple
    shape: tuple[int, int, int]
    bounds: tuple[Triple, Triple]


def grid_meta(axes: Sequence[np.ndarray]) -> GridMeta:
    """The description of three axes."""
    low, high = ([float(axis[end]) for axis in axes] for end in (0, -1))
    spacing = [
        (last - first) / (axis.size - 1) if axis.size > 1 else 1.0
        for first, last, axis in zip(low, high, axes, strict=True)
    ]
    return GridMeta(
        _triple(low),
        _triple(spacing),
        (axes[0].size, axes[1].size, axes[2].size),
        (_triple(low), _triple(high)),
    )


def _triple(numbers: Sequence[float]) -> Triple:
    x, y, z = numbers
    return x, y, z


class StructuredGridSampler(Sampled):
    """Velocities on a grid with straight axes, uniform or not, steady or in time.

    `velocity_data` is (Nx, Ny, Nz, 3), or (T, Nx, Ny, Nz, 3) with `times`; two
    components are three with w = 0. `bounds_handling` says what is answered beyond the
    grid: "clamp" (the value at the nearest point of its surface), "zero", "nan",
    "extrapolate", or "periodic" (the first node follows one spacing after the last).
    `grid_meta` is checked against the axes where it is given.
    """

    def __init__(
        self,
        velocity_data: Any,
        grid_x: Any,
        grid_y: Any,
        grid_z: Any,
        bounds_handling: str = "clamp",
        grid_meta: GridMeta | None = None,
        *,
        times: Any = None,
        interpolation: str = "linear",
        extrapolation: str = "constant",
        dtype: Any = None,
    ) -> None:
        axes = tuple(_axis(a) for a in (grid_x, grid_y, grid_z))
        self.grid_x, self.grid_y, self.grid_z = axes
        self._frozen = make_grid_field(
            velocity_data,
            axes,
            times,
            interpolation=interpolation,
            extrapolation=extrapolation,
            outside=bounds_handling,
            dtype=dtype,
        )
        self._check_meta(grid_meta)

    @property
    def frozen(self) -> GridField:
        """The field as the pytree that compiled code takes."""
        return self._frozen

    @property
    def velocity_data(self) -> Float[Array, "..."]:
        """The velocities as they were given, with three components."""
        table = self._frozen.values
        whole = jnp.moveaxis(table.reshape(-1, 3, *self._frozen.shape), 1, 4)
        data = whole[:, : self.Nx, : self.Ny, : self.Nz]
        return data if self.is_time_dependent else data[0]

    @property
    def is_time_dependent(self) -> bool:
        """Whether there is more than one slice in time."""
        return self._frozen.values.shape[0] > 1

    @property
    def times(self) -> Float[np.ndarray, " slices"] | None:
        """The instants of the slices; None if the field is steady."""
        clock = self._frozen.clock
        return np.asarray(clock.times) if self.is_time_dependent else None

    @property
    def bounds_handling(self) -> str:
        """What is answered beyond the grid."""
        return self._frozen.outside

    @property
    def interpolation_scheme(self) -> str:
        """How velocities between nodes are made."""
        return "trilinear"

    @property
    def grid_meta(self) -> GridMeta:
        """What the grid looks like."""
        return grid_meta((self.grid_x, self.grid_y, self.grid_z))

    @property
    def Nx(self) -> int:
        """Nodes along x."""
        return self.grid_x.size

    @property
    def Ny(self) -> int:
        """Nodes along y."""
        return self.grid_y.size

    @property
    def Nz(self) -> int:
        """Nodes along z."""
        return self.grid_z.size

    @property
    def dx(self) -> float:
        """Mean spacing along x."""
        return self.grid_meta.spacing[0]

    @property
    def dy(self) -> float:
        """Mean spacing along y."""
        return self.grid_meta.spacing[1]

    @property
    def dz(self) -> float:
        """Mean spacing along z."""
        return self.grid_meta.spacing[2]

    @property
    def x_min(self) -> float:
        """The first x."""
        return float(self.grid_x[0])

    @property
    def x_max(self) -> float:
        """The last x."""
        return float(self.grid_x[-1])

    @property
    def y_min(self) -> float:
        """The first y."""
        return float(self.grid_y[0])

    @property
    def y_max(self) -> float:
        """The last y."""
        return float(self.grid_y[-1])

    @property
    def z_min(self) -> float:
        """The first z."""
        return float(self.grid_z[0])

    @property
    def z_max(self) -> float:
        """The last z."""
        return float(self.grid_z[-1])

    def __call__(self, positions: Any, t: Any = 0.0) -> Array:
        """Velocities at positions and a time."""
        return self.sample_at_positions(positions, t)

    def _check_meta(self, given: GridMeta | None) -> None:
        found = self.grid_meta
        if given is not None and tuple(given.shape) != found.shape:
            raise ValueError(
                f"grid_meta of {tuple(given.shape)} nodes does not fit axes of "
                f"{found.shape}: leave it out, it follows from the axes"
            )


def _axis(nodes: Any) -> Float[np.ndarray, " nodes"]:
    return np.atleast_1d(np.asarray(nodes, np.float64))


def create_structured_field_from_arrays(
    velocity_data: Any,
    x_coords: Any,
    y_coords: Any,
    z_coords: Any = None,
    **options: Any,
) -> StructuredGridSampler:
    """A grid field from arrays; without `z_coords` one layer at z = 0.

    A layer may leave out its axis: (Nx, Ny, 2|3), or (T, Nx, Ny, 2|3) with `times`.
    """
    if z_coords is None:
        z_coords = np.zeros(1)
        full = 4 if options.get("times") is None else 5
        if np.ndim(velocity_data) == full - 1:
            velocity_data = velocity_data[..., None, :]
    return StructuredGridSampler(velocity_data, x_coords, y_coords, z_coords, **options)


def create_structured_field_from_vtk_data(
    vtk_data: Mapping[str, Any], velocity_field_name: str = "velocity", **options: Any
) -> StructuredGridSampler:
    """A grid field from what an image file holds.

    `vtk_data` has `dimensions`, `origin`, `spacing` and the velocity, as (Nx, Ny, Nz,
    3) or as rows (N, 3) that run along x first; (T, N, 3) with `times`.
    """
    for name in ("dimensions", "origin", "spacing", velocity_field_name):
        if name not in vtk_data:
            raise ValueError(
                f"vtk_data has no {name!r}, only {', '.join(map(str, vtk_data))}"
            )
    shape = tuple(int(n) for n in vtk_data["dimensions"])
    axes = [
        float(first) + float(step) * np.arange(count)
        for first, step, count in zip(
            vtk_data["origin"], vtk_data["spacing"], shape, strict=True
        )
    ]
    if "times" in vtk_data:
        options.setdefault("times", vtk_data["times"])
    values = np.asarray(vtk_data[velocity_field_name])
    steady = options.get("times") is None
    if values.ndim == (2 if steady else 3):
        values = _unroll(values, shape)
    x, y, z = axes
    return StructuredGridSampler(values, x, y, z, **options)


def _unroll(values: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Rows that run along x first as an array indexed [..., ix, iy, iz, component]."""
    *slices, count, components = values.shape
    if count != np.prod(shape):
        raise ValueError(f"{count} velocities do not fit dimensions {tuple(shape)}")
    nx, ny, nz = shape
    return values.reshape(*slices, nz, ny, nx, components).swapaxes(-4, -2)


def create_uniform_grid(
    bounds: Any,
    resolution: Any,
    velocity: Callable[[Any, Any, Any], Any],
    **options: Any,
) -> StructuredGridSampler:
    """A field sampled from `velocity(x, y, z) -> (u, v, w)` at evenly spaced nodes.

    `bounds` is ((x0, x1), (y0, y1), (z0, z1)), `resolution` the nodes along each axis,
    or one number for all. The function gets arrays.
    """
    counts = np.broadcast_to(np.asarray(resolution, int), 3)
    pairs = np.asarray(bounds, np.float64)
    if pairs.shape != (3, 2):
        raise ValueError(
            f"bounds of shape {pairs.shape}: give ((x0, x1), (y0, y1), (z0, z1))"
        )
    axes = [
        np.linspace(low, high, n) if n > 1 else np.array([low])
        for (low, high), n in zip(pairs, counts, strict=True)
    ]
    mesh = np.meshgrid(*axes, indexing="ij")
    parts = [np.broadcast_to(p, mesh[0].shape) for p in velocity(*mesh)]
    x, y, z = axes
    return StructuredGridSampler(np.stack(parts, -1), x, y, z, **options)


StructuredGridField = StructuredGridSampler
StructuredVelocityField = StructuredGridSampler
StructuredSampler = StructuredGridSampler
