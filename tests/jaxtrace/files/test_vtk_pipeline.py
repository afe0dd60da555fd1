import sys
from pathlib import Path

import numpy as np
import pytest

from jaxtrace.files.vtk_pipeline import (
    reporting,
    select_arrays,
    time_steps,
    vtk_class,
)
from trace_files import hexahedra, write_xml

pytest.importorskip("vtkmodules")


def reader_of(path: Path):
    reader = vtk_class("vtkIOXML", "vtkXMLUnstructuredGridReader")()
    reader.SetFileName(str(path))
    return reader


def test_only_the_arrays_asked_for_are_read(tmp_path):
    grid = hexahedra()
    grid["pressure"] = np.zeros(60)
    grid.cell_data["mark"] = np.zeros(24)
    reader = reader_of(write_xml(grid, tmp_path / "a.vtu", time=3.5))
    reader.UpdateInformation()
    assert time_steps(reader) == (3.5,)
    assert select_arrays(reader, ("velocity",)) == ("velocity", "pressure", "mark")
    reader.Update()
    data = reader.GetOutput()
    assert data.GetPointData().GetNumberOfArrays() == 1
    assert data.GetCellData().GetNumberOfArrays() == 0


def test_complaints_become_an_error_that_names_the_file(tmp_path):
    path = tmp_path / "a.vtu"
    path.write_text("<VTKFile>")
    reader = reader_of(path)
    wanted = r"a\.vtu: VTK cannot read the file: \w"
    with pytest.raises(ValueError, match=wanted), reporting(path, reader):
        reader.Update()


def test_without_vtk_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "vtkmodules.vtkIOXML", None)
    with pytest.raises(ImportError, match=r'pip install -e "\.\[trace\]"'):
        vtk_class("vtkIOXML", "vtkXMLUnstructuredGridReader")
