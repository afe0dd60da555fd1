from jaxtrace import io
from jaxtrace.files import field_writer, trajectories, writers
from jaxtrace.io import vtk_writer


def test_the_documented_module_leads_to_the_writers():
    assert vtk_writer.VTKFieldWriter is field_writer.VTKFieldWriter
    assert vtk_writer.VTKTrajectoryWriter is writers.VTKTrajectoryWriter
    assert vtk_writer.export_trajectory_vtk is trajectories.export_trajectory_to_vtk
    for name in vtk_writer.__all__:
        assert getattr(io, name) is getattr(vtk_writer, name)
