"""A documented path to the element fields; it only passes them on."""

from jaxtrace.fields.octree_fem_time_series import (
    OctreeFEMTimeSeriesFieldOptimized,
    build_octree_mesh_optimized,
    create_octree_fem_interpolator_optimized,
)

__all__ = [
    "OctreeFEMTimeSeriesFieldOptimized",
    "build_octree_mesh_optimized",
    "create_octree_fem_interpolator_optimized",
]
