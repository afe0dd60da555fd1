"""Time series on the elements of a mesh, by the documented names."""

from collections.abc import Callable
from typing import Any

from jaxtyping import Array

from jaxtrace.fields.time_series import TimeSeriesField
from jaxtrace.fields.unstructured import UnstructuredField
from jaxtrace.fields.unstructured_mesh import ElementType, UnstructuredMesh

Interpolator = Callable[[Any, Any], Array]


class FEMTimeSeriesField(TimeSeriesField):
    """A time series interpolated by the shape functions of its elements, always.

    `connectivity` is rows (M, 4) of tetrahedra, rows of another kind, or VTK's flat
    list with `cell_types` and `cell_offsets`. Elements are searched exactly at any
    `fem_grid_resolution`: scripts may give it, nothing depends on it. `contains` says
    which positions are lost.
    """

    def __init__(
        self,
        data: Any,
        times: Any,
        positions: Any,
        connectivity: Any,
        interpolation: str = "linear",
        extrapolation: str = "constant",
        _source_info: dict[str, Any] | None = None,
        fem_grid_resolution: int = 32,
        *,
        cell_types: Any = None,
        cell_offsets: Any = None,
        outside: str = "nearest_element",
    ) -> None:
        del fem_grid_resolution
        super().__init__(
            data,
            times,
            positions,
            interpolation,
            extrapolation,
            _source_info,
            connectivity=connectivity,
            cell_types=cell_types,
            cell_offsets=cell_offsets,
            spatial_interpolation="elements",
            outside=outside,
        )


def build_tetrahedral_mesh(
    points: Any, connectivity: Any, grid_resolution: int = 32
) -> UnstructuredMesh:
    """A mesh of tetrahedra (M, 4); its search is exact at any resolution."""
    del grid_resolution
    return UnstructuredMesh(points, connectivity, ElementType.TETRA)


def create_fem_interpolator(mesh: UnstructuredMesh) -> Interpolator:
    """A function of positions (M, 3) and nodal values (N, 3) that answers (M, 3)."""
    return UnstructuredField(mesh).sample
