"""Every documented name of the package is there, under its documented path."""

import importlib

import pytest

import jaxtrace.fields

DOCUMENTED = """
TimeSeriesField StructuredGridSampler GridMeta create_structured_field_from_arrays
create_structured_field_from_vtk_data create_uniform_grid ElementType UnstructuredMesh
UnstructuredField create_unstructured_field_2d create_unstructured_field_3d
create_unstructured_from_vtk_data precompute_element_data optimized_element_search
barycentric_coords_triangle barycentric_coords_tetrahedron tri6_shape_functions
tet10_shape_functions BaseField Field TimeDependentField create_field_from_vtk
create_field_from_data create_time_series_from_arrays create_time_series_from_function
create_time_series_from_vtk_files detect_field_type StructuredGridField
StructuredVelocityField StructuredSampler UnstructuredSampler TimeDependentVelocityField
TimeVaryingField UniformFlow Rotation Saddle Vortex DoubleGyre ABCFlow TaylorGreen
"""
PATHS = {
    "fem_time_series": "FEMTimeSeriesField build_tetrahedral_mesh "
    "create_fem_interpolator",
    "octree_fem_time_series": "OctreeFEMTimeSeriesField build_octree_mesh "
    "create_octree_fem_interpolator",
    "octree_fem_time_series_optimized": "OctreeFEMTimeSeriesFieldOptimized "
    "build_octree_mesh_optimized create_octree_fem_interpolator_optimized",
}


@pytest.mark.parametrize("name", DOCUMENTED.split())
def test_the_package_offers_what_is_documented(name):
    assert hasattr(jaxtrace.fields, name)
    assert name in jaxtrace.fields.__all__


@pytest.mark.parametrize("module", PATHS)
def test_modules_offer_what_is_documented(module):
    found = importlib.import_module(f"jaxtrace.fields.{module}")
    for name in PATHS[module].split():
        assert callable(getattr(found, name))
        assert getattr(found, name) is getattr(jaxtrace.fields, name)


def test_every_field_answers_the_same_calls():
    fields = (
        jaxtrace.fields.TimeSeriesField,
        jaxtrace.fields.StructuredGridSampler,
        jaxtrace.fields.UnstructuredField,
        *jaxtrace.fields.FLOWS.values(),
    )
    for field in fields:
        assert issubclass(field, jaxtrace.fields.BaseField)
