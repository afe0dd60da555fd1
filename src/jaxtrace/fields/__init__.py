"""Velocity fields: on grids, on meshes, at scattered points, by formula."""

from jaxtrace.fields.analytic import (
    ABCFlow,
    DoubleGyre,
    MovingEddy,
    Rotation,
    Saddle,
    TaylorGreen,
    UniformFlow,
    Vortex,
    as_field,
)
from jaxtrace.fields.base import AbstractField
from jaxtrace.fields.changing_mesh import MeshSlice, make_changing_field
from jaxtrace.fields.grid import StructuredGridSampler
from jaxtrace.fields.time_series import TimeSeriesField
from jaxtrace.fields.unstructured import UnstructuredField, UnstructuredMesh

__all__ = [
    "ABCFlow",
    "AbstractField",
    "DoubleGyre",
    "MeshSlice",
    "MovingEddy",
    "Rotation",
    "Saddle",
    "StructuredGridSampler",
    "TaylorGreen",
    "TimeSeriesField",
    "UniformFlow",
    "UnstructuredField",
    "UnstructuredMesh",
    "Vortex",
    "as_field",
    "make_changing_field",
]
