"""Time series on meshes with a search tree, by the documented names.

There is one search for all element fields, exact and balanced by itself; the numbers
that shape an octree are accepted and nothing depends on them.
"""

import functools
from typing import Any

from jaxtrace.fields.fem_time_series import (
    FEMTimeSeriesField,
    Interpolator,
    build_tetrahedral_mesh,
    create_fem_interpolator,
)
from jaxtrace.fields.unstructured import element_mesh, interpolate_nodal
from jaxtrace.fields.unstructured_mesh import UnstructuredMesh


class OctreeFEMTimeSeriesField(FEMTimeSeriesField):
    """A time series on elements; `max_elements_per_leaf` and `max_depth` are free."""

    def __init__(
        self,
        data: Any,
        times: Any,
        positions: Any,
        connectivity: Any,
        interpolation: str = "linear",
        extrapolation: str = "constant",
        _source_info: dict[str, Any] | None = None,
        max_elements_per_leaf: int = 32,
        max_depth: int = 12,
        **options: Any,
    ) -> None:
        del max_elements_per_leaf, max_depth
        super().__init__(
            data,
            times,
            positions,
            connectivity,
            interpolation,
            extrapolation,
            _source_info,
            **options,
        )

    @property
    def octree_mesh(self) -> UnstructuredMesh:
        """The nodes and elements."""
        return element_mesh(self._nodes, self.elements)

    @property
    def octree_interpolator(self) -> Interpolator:
        """A function of positions (M, 3) and nodal values (N, 3) giving (M, 3)."""
        return functools.partial(interpolate_nodal, self.frozen)


def build_octree_mesh(
    points: Any, connectivity: Any, max_elements_per_leaf: int = 32, max_depth: int = 12
) -> UnstructuredMesh:
    """A mesh of tetrahedra (M, 4); its search tree shapes itself."""
    del max_elements_per_leaf, max_depth
    return build_tetrahedral_mesh(points, connectivity)


OctreeFEMTimeSeriesFieldOptimized = OctreeFEMTimeSeriesField
build_octree_mesh_optimized = build_octree_mesh
create_octree_fem_interpolator = create_fem_interpolator
create_octree_fem_interpolator_optimized = create_fem_interpolator
