"""Where documents look for the writers of VTK files; they live in `jaxtrace.files`."""

from jaxtrace.files.field_writer import VTKFieldWriter
from jaxtrace.files.trajectories import export_trajectory_to_vtk
from jaxtrace.files.writers import VTKTrajectoryWriter

export_trajectory_vtk = export_trajectory_to_vtk

__all__ = [
    "VTKFieldWriter",
    "VTKTrajectoryWriter",
    "export_trajectory_to_vtk",
    "export_trajectory_vtk",
]
