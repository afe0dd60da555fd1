"""Files in and out: velocities of any known format to fields, trajectories to files."""

from jaxtrace.io.convert import convert
from jaxtrace.io.loader import (
    Dataset,
    load_optimized_dataset,
    load_variable,
    open_dataset,
)
from jaxtrace.io.store import open_store
from jaxtrace.io.vtk_export import (
    export_trajectory_to_vtk,
    write_grid,
    write_points,
)
from jaxtrace.io.vtk_write import write_collection

__all__ = [
    "Dataset",
    "convert",
    "export_trajectory_to_vtk",
    "load_optimized_dataset",
    "load_variable",
    "open_dataset",
    "open_store",
    "write_collection",
    "write_grid",
    "write_points",
]
