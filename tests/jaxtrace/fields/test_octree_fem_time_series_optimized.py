"""The documented path leads to the one implementation."""

from jaxtrace.fields import octree_fem_time_series as home
from jaxtrace.fields import octree_fem_time_series_optimized as path


def test_the_path_passes_the_same_objects_on():
    assert path.OctreeFEMTimeSeriesFieldOptimized is home.OctreeFEMTimeSeriesField
    assert path.build_octree_mesh_optimized is home.build_octree_mesh
    interpolator = path.create_octree_fem_interpolator_optimized
    assert interpolator is home.create_octree_fem_interpolator
