"""Velocity fields: on grids, on meshes, at scattered points, by formula."""

from jaxtrace.fields.analytic import (
    FLOWS,
    ABCFlow,
    AnalyticFlow,
    DoubleGyre,
    MovingEddy,
    Rotation,
    Saddle,
    TaylorGreen,
    UniformFlow,
    Vortex,
)
from jaxtrace.fields.base import AbstractField, Sampled
from jaxtrace.fields.base import Sampled as BaseField
from jaxtrace.fields.base import Sampled as Field
from jaxtrace.fields.base import Sampled as TimeDependentField
from jaxtrace.fields.cells import (
    barycentric_coords_tetrahedron,
    barycentric_coords_triangle,
    tet10_shape_functions,
    tri6_shape_functions,
)
from jaxtrace.fields.changing import (
    ChangingMeshField,
    MeshSlice,
    make_changing_field,
)
from jaxtrace.fields.factories import (
    create_field_from_data,
    create_field_from_vtk,
    create_time_series_from_arrays,
    create_time_series_from_function,
    create_time_series_from_vtk_files,
    detect_field_type,
    field_from_series,
)
from jaxtrace.fields.fem_time_series import (
    FEMTimeSeriesField,
    build_tetrahedral_mesh,
    create_fem_interpolator,
)
from jaxtrace.fields.function import FunctionField, as_field
from jaxtrace.fields.grid import GridField, make_grid_field
from jaxtrace.fields.mesh import MeshField, make_mesh_field
from jaxtrace.fields.octree_fem_time_series import (
    OctreeFEMTimeSeriesField,
    OctreeFEMTimeSeriesFieldOptimized,
    build_octree_mesh,
    build_octree_mesh_optimized,
    create_octree_fem_interpolator,
    create_octree_fem_interpolator_optimized,
)
from jaxtrace.fields.scattered import NearestField, make_scattered_field
from jaxtrace.fields.streamed import StreamedField
from jaxtrace.fields.structured import (
    GridMeta,
    StructuredGridField,
    StructuredGridSampler,
    StructuredSampler,
    StructuredVelocityField,
    create_structured_field_from_arrays,
    create_structured_field_from_vtk_data,
    create_uniform_grid,
)
from jaxtrace.fields.time_series import (
    TimeDependentVelocityField,
    TimeSeriesField,
    TimeVaryingField,
)
from jaxtrace.fields.unstructured import (
    UnstructuredField,
    UnstructuredSampler,
    create_unstructured_field_2d,
    create_unstructured_field_3d,
    create_unstructured_from_vtk_data,
)
from jaxtrace.fields.unstructured_mesh import (
    ElementType,
    UnstructuredMesh,
    optimized_element_search,
    precompute_element_data,
)

__all__ = [
    "FLOWS",
    "ABCFlow",
    "AbstractField",
    "AnalyticFlow",
    "BaseField",
    "ChangingMeshField",
    "DoubleGyre",
    "ElementType",
    "FEMTimeSeriesField",
    "Field",
    "FunctionField",
    "GridField",
    "GridMeta",
    "MeshField",
    "MeshSlice",
    "MovingEddy",
    "NearestField",
    "OctreeFEMTimeSeriesField",
    "OctreeFEMTimeSeriesFieldOptimized",
    "Rotation",
    "Saddle",
    "Sampled",
    "StreamedField",
    "StructuredGridField",
    "StructuredGridSampler",
    "StructuredSampler",
    "StructuredVelocityField",
    "TaylorGreen",
    "TimeDependentField",
    "TimeDependentVelocityField",
    "TimeSeriesField",
    "TimeVaryingField",
    "UniformFlow",
    "UnstructuredField",
    "UnstructuredMesh",
    "UnstructuredSampler",
    "Vortex",
    "as_field",
    "barycentric_coords_tetrahedron",
    "barycentric_coords_triangle",
    "build_octree_mesh",
    "build_octree_mesh_optimized",
    "build_tetrahedral_mesh",
    "create_fem_interpolator",
    "create_field_from_data",
    "create_field_from_vtk",
    "create_octree_fem_interpolator",
    "create_octree_fem_interpolator_optimized",
    "create_structured_field_from_arrays",
    "create_structured_field_from_vtk_data",
    "create_time_series_from_arrays",
    "create_time_series_from_function",
    "create_time_series_from_vtk_files",
    "create_uniform_grid",
    "create_unstructured_field_2d",
    "create_unstructured_field_3d",
    "create_unstructured_from_vtk_data",
    "detect_field_type",
    "field_from_series",
    "make_changing_field",
    "make_grid_field",
    "make_mesh_field",
    "make_scattered_field",
    "optimized_element_search",
    "precompute_element_data",
    "tet10_shape_functions",
    "tri6_shape_functions",
]
