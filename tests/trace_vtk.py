"""Files as the VTK library reads them, and bare trajectories to write."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

vtk = pytest.importorskip("vtk")
numpy_support = pytest.importorskip("vtk.util.numpy_support")

READERS = {
    ".vtp": "vtkXMLPolyDataReader",
    ".vtu": "vtkXMLUnstructuredGridReader",
    ".vti": "vtkXMLImageDataReader",
    ".vtr": "vtkXMLRectilinearGridReader",
    ".vts": "vtkXMLStructuredGridReader",
    ".vtk": "vtkDataSetReader",
}


def load(path):
    """The data set of a file; fails on anything the reader complains about."""
    reader = getattr(vtk, READERS[Path(path).suffix])()
    errors = []
    reader.AddObserver("ErrorEvent", lambda *_: errors.append(str(path)))
    reader.AddObserver("WarningEvent", lambda *_: errors.append(str(path)))
    reader.SetFileName(str(path))
    reader.Update()
    assert not errors, f"VTK cannot read {path}"
    return reader.GetOutput()


def as_numpy(array):
    return numpy_support.vtk_to_numpy(array)


def arrays(data):
    """Arrays by name of point, cell or field data."""
    count = data.GetNumberOfArrays()
    return {
        data.GetArrayName(i): as_numpy(data.GetAbstractArray(i)) for i in range(count)
    }


def points(dataset):
    return as_numpy(dataset.GetPoints().GetData())


def dimensions(grid):
    found = [0, 0, 0]
    grid.GetDimensions(found)
    return tuple(found)


def cells(dataset):
    """Every cell as a tuple of point numbers."""
    found = []
    for index in range(dataset.GetNumberOfCells()):
        ids = dataset.GetCell(index).GetPointIds()
        found.append(tuple(ids.GetId(i) for i in range(ids.GetNumberOfIds())))
    return found


def trajectory(positions, times=None, **fields) -> Any:
    """What a writer reads of a trajectory, with nothing but what is given."""
    positions = np.asarray(positions)
    return SimpleNamespace(
        positions=positions,
        times=np.arange(len(positions), dtype=float) if times is None else times,
        velocities=fields.get("velocities"),
        alive=fields.get("alive"),
        generation=fields.get("generation"),
        metadata=fields.get("metadata", {}),
    )


def random_walks(frames, particles, seed=0, dtype=np.float32):
    """Smooth random positions and velocities (T,N,3)."""
    rng = np.random.default_rng(seed)
    steps = rng.normal(size=(frames, particles, 3))
    return steps.cumsum(axis=0).astype(dtype), steps.astype(dtype)
