"""Files in and out: series of any known format to fields, trajectories to VTK."""

from jaxtrace.files.hdf5 import H5Series
from jaxtrace.io.changing_series import ChangingSeriesField
from jaxtrace.io.dataset import (
    Dataset,
    open_dataset,
    open_hdf5_series,
    open_vtk_dataset,
    open_vtk_series,
    open_vtk_structured_series,
    open_vtk_time_series,
)
from jaxtrace.io.loader import (
    MemoryOptimizedConfig,
    MemoryOptimizedLoader,
    estimate_memory_usage,
    load_optimized_dataset,
)
from jaxtrace.io.readers import VTKStructuredSeries, VTKUnstructuredTimeSeriesReader
from jaxtrace.io.registry import (
    GRID_IO_AVAILABLE,
    HDF5_IO_AVAILABLE,
    MEMORY_OPTIMIZED_AVAILABLE,
    VTK_IO_AVAILABLE,
    VTK_STRUCTURED_AVAILABLE,
    detect_format,
    format_info,
    list_supported_formats,
    validate_file_access,
)
from jaxtrace.io.vtk_writer import (
    VTKFieldWriter,
    VTKTrajectoryWriter,
    export_trajectory_to_vtk,
    export_trajectory_vtk,
)

__all__ = [
    "GRID_IO_AVAILABLE",
    "HDF5_IO_AVAILABLE",
    "MEMORY_OPTIMIZED_AVAILABLE",
    "VTK_IO_AVAILABLE",
    "VTK_STRUCTURED_AVAILABLE",
    "ChangingSeriesField",
    "Dataset",
    "H5Series",
    "MemoryOptimizedConfig",
    "MemoryOptimizedLoader",
    "VTKFieldWriter",
    "VTKStructuredSeries",
    "VTKTrajectoryWriter",
    "VTKUnstructuredTimeSeriesReader",
    "detect_format",
    "estimate_memory_usage",
    "export_trajectory_to_vtk",
    "export_trajectory_vtk",
    "format_info",
    "list_supported_formats",
    "load_optimized_dataset",
    "open_dataset",
    "open_hdf5_series",
    "open_vtk_dataset",
    "open_vtk_series",
    "open_vtk_structured_series",
    "open_vtk_time_series",
    "validate_file_access",
]
