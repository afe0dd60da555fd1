"""The geometry of a VTK data set as plain arrays: axes for grids, else cells."""

from typing import Any

import numpy as np

from jaxtrace.files.cells import DIMENSIONS, structured_cells
from jaxtrace.files.snapshot import Cells, GridAxes


def to_numpy(array: Any) -> np.ndarray:
    """A VTK array as NumPy sees it, without a copy."""
    from vtkmodules.util.numpy_support import vtk_to_numpy

    values = vtk_to_numpy(array)
    # Numbers of eight bytes have two names in C; NumPy's own is the one wanted.
    return values.view(np.dtype(f"{values.dtype.kind}{values.dtype.itemsize}"))


def append(datasets: list[Any]) -> Any:
    """Several data sets, or one surface, as one unstructured grid."""
    from vtkmodules.vtkFiltersCore import vtkAppendFilter

    join = vtkAppendFilter()
    for dataset in datasets:
        join.AddInputData(dataset)
    join.Update()
    return join.GetOutput()


def split_exotic(grid: Any) -> Any:
    """Split every cell into simplices if some cell is of a kind without a rule here.

    Polygons, polyhedra, strips and the larger quadratic cells are such kinds.
    """
    from vtkmodules.vtkFiltersGeneral import vtkDataSetTriangleFilter

    if np.isin(cell_types(grid), list(DIMENSIONS)).all():
        return grid
    triangulate = vtkDataSetTriangleFilter()
    triangulate.SetInputData(grid)
    triangulate.Update()
    return triangulate.GetOutput()


def cell_types(grid: Any) -> np.ndarray:
    """The VTK code of every cell of an unstructured grid."""
    from vtkmodules.vtkCommonCore import vtkVersion

    version = vtkVersion.GetVTKMajorVersion(), vtkVersion.GetVTKMinorVersion()
    codes = grid.GetCellTypes() if version >= (9, 6) else grid.GetCellTypesArray()
    return np.zeros(0, np.uint8) if codes is None else to_numpy(codes)


def _stored_points(dataset: Any) -> np.ndarray:
    if dataset.GetNumberOfPoints() == 0:
        return np.zeros((0, 3))
    points = to_numpy(dataset.GetPoints().GetData())
    return points if points.dtype.kind == "f" else points.astype(np.float64)


def mesh_of(grid: Any, name: str) -> Cells:
    """The nodes and cells of an unstructured grid, checked against each other."""
    types, points = cell_types(grid), _stored_points(grid)
    if types.size == 0:
        return Cells(points, np.zeros(0, np.int64), np.zeros(1, np.int64), types)
    cells = grid.GetCells()
    connectivity = to_numpy(cells.GetConnectivityArray())
    low, high = connectivity.min(initial=0), connectivity.max(initial=0)
    if low < 0 or high >= len(points):
        raise ValueError(
            f"{name}: cells refer to nodes {low} to {high} of {len(points)}; "
            "the file is damaged or in another byte order than it says"
        )
    return Cells(points, connectivity, to_numpy(cells.GetOffsetsArray()), types)


def axes_of(grid: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The three axes of an image, before its rotation, or of a rectilinear grid."""
    if grid.IsA("vtkRectilinearGrid"):
        stored = (getattr(grid, f"Get{axis}Coordinates")() for axis in "XYZ")
        x, y, z = (to_numpy(axis).astype(np.float64) for axis in stored)
    else:
        origin, spacing, extent = grid.GetOrigin(), grid.GetSpacing(), grid.GetExtent()
        x, y, z = (
            origin[i] + spacing[i] * np.arange(extent[2 * i], extent[2 * i + 1] + 1)
            for i in range(3)
        )
    return x, y, z


def is_tensor(dataset: Any) -> bool:
    """Whether the nodes are the product of three axes along x, y and z."""
    if dataset.IsA("vtkImageData"):
        return bool(dataset.GetDirectionMatrix().IsIdentity())
    return bool(dataset.IsA("vtkRectilinearGrid"))


def dimensions_of(dataset: Any) -> tuple[int, int, int]:
    """Number of nodes of a structured data set along its three directions."""
    shape = [0, 0, 0]
    dataset.GetDimensions(shape)
    return shape[0], shape[1], shape[2]


def curvilinear_mesh(dataset: Any) -> Cells:
    """The cells of a structured data set of any shape."""
    if dataset.IsA("vtkStructuredGrid"):
        points = _stored_points(dataset)
    else:
        points = GridAxes(*axes_of(dataset)).points()
    if dataset.IsA("vtkImageData"):
        matrix, origin = dataset.GetDirectionMatrix(), np.array(dataset.GetOrigin())
        turn = [[matrix.GetElement(i, j) for j in range(3)] for i in range(3)]
        points = origin + (points - origin) @ np.array(turn).T
    return structured_cells(points, dimensions_of(dataset))
