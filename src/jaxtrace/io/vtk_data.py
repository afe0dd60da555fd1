"""VTK data objects, parts and all, as snapshots of plain arrays."""

from typing import Any

import numpy as np

from jaxtrace.io.geometry import (
    DIMENSIONS,
    Cells,
    GridAxes,
    Snapshot,
    ascending,
    grid_order,
    keep_cells,
    structured_cells,
)


def to_numpy(array: Any) -> np.ndarray:
    """Return a VTK array as NumPy sees it, without a copy."""
    from vtkmodules.util.numpy_support import vtk_to_numpy

    values = vtk_to_numpy(array)
    # Numbers of eight bytes have two names in C; NumPy's own is the one wanted.
    return values.view(np.dtype(f"{values.dtype.kind}{values.dtype.itemsize}"))


def append(datasets: list[Any]) -> Any:
    """Return several data sets, or one surface, as one unstructured grid."""
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
    """Return the VTK code of every cell of an unstructured grid."""
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
    """Return nodes and cells of an unstructured grid, checked against each other."""
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
    """Return the axes of an image, before its rotation, or of a rectilinear grid."""
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
    """Return whether the nodes are the product of three axes along x, y and z."""
    if dataset.IsA("vtkImageData"):
        return bool(dataset.GetDirectionMatrix().IsIdentity())
    return bool(dataset.IsA("vtkRectilinearGrid"))


def dimensions_of(dataset: Any) -> tuple[int, int, int]:
    """Return number of nodes of a structured data set along its three directions."""
    shape = [0, 0, 0]
    dataset.GetDimensions(shape)
    return shape[0], shape[1], shape[2]


def curvilinear_mesh(dataset: Any) -> Cells:
    """Return the cells of a structured data set of any shape."""
    if dataset.IsA("vtkStructuredGrid"):
        points = _stored_points(dataset)
    else:
        points = GridAxes(*axes_of(dataset)).points()
    if dataset.IsA("vtkImageData"):
        matrix, origin = dataset.GetDirectionMatrix(), np.array(dataset.GetOrigin())
        turn = [[matrix.GetElement(i, j) for j in range(3)] for i in range(3)]
        points = origin + (points - origin) @ np.array(turn).T
    return structured_cells(points, dimensions_of(dataset))


GHOSTS = "vtkGhostType"
# Flags of the ghost array on cells: a copy of another piece's cell, and a blanked one.
_COPY, _HIDDEN = 1, 32


def leaves(data: Any) -> list[Any]:
    """Return the data sets inside a composite one; a plain data set is its own leaf."""
    if not data.IsA("vtkCompositeDataSet"):
        return [data]
    iterator, found = data.NewIterator(), []
    iterator.InitTraversal()
    while not iterator.IsDoneWithTraversal():
        found.append(iterator.GetCurrentDataObject())
        iterator.GoToNextItem()
    return [
        part for part in found if part.IsA("vtkDataSet") and part.GetNumberOfPoints()
    ]


def named_arrays(attributes: Any) -> dict[str, np.ndarray]:
    """Return the numeric arrays of point, cell or field data by name."""
    found = {}
    for index in range(attributes.GetNumberOfArrays()):
        # Arrays of strings are none of our business; VTK answers None for them.
        array = attributes.GetArray(index)
        if array is not None:
            found[array.GetName() or f"array_{index}"] = to_numpy(array)
    return found


def _rows(attributes: Any, rows: int, name: str) -> dict[str, np.ndarray]:
    """Return the arrays as (rows, components); another length is an error."""
    arrays = named_arrays(attributes)
    for key, values in arrays.items():
        if values.shape[0] != rows:
            raise ValueError(
                f"{name}: array {key!r} has {values.shape[0]} rows where {rows} are "
                "needed; the file is damaged or was written wrongly"
            )
    return {key: values.reshape(rows, -1) for key, values in arrays.items()}


def _visible(cell_arrays: dict[str, np.ndarray], n_cells: int) -> np.ndarray:
    if GHOSTS not in cell_arrays:
        return np.ones(n_cells, bool)
    return (cell_arrays[GHOSTS][:, 0] & (_COPY | _HIDDEN)) == 0


def snapshot_of(
    data: Any, name: str, time: float | None = None, assembled: bool = False
) -> Snapshot:
    """Return the snapshot of a data object read from `name`; ValueError if empty."""
    parts = leaves(data)
    if sum(part.GetNumberOfPoints() for part in parts) == 0:
        raise ValueError(f"{name}: no points in the file")
    fields = named_arrays(data.GetFieldData()) | named_arrays(parts[0].GetFieldData())
    dataset = parts[0]
    if len(parts) > 1 or dataset.IsA("vtkPolyData"):
        dataset = append(parts)
    if dataset.IsA("vtkUnstructuredGrid"):
        dataset = split_exotic(dataset)
    n_points, n_cells = dataset.GetNumberOfPoints(), dataset.GetNumberOfCells()
    arrays = _rows(dataset.GetPointData(), n_points, name)
    cell_arrays = _rows(dataset.GetCellData(), n_cells, name)
    geometry, arrays, cell_arrays = _shaped(dataset, arrays, cell_arrays, name)
    return Snapshot(
        geometry,
        arrays,
        cell_arrays,
        time,
        name,
        assembled or len(parts) > 1,
        (*arrays, *cell_arrays),
        fields,
    )


def _shaped(
    dataset: Any,
    arrays: dict[str, np.ndarray],
    cell_arrays: dict[str, np.ndarray],
    name: str,
) -> tuple[Cells | GridAxes, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return geometry with the arrays in its shape, without ghost and hidden cells."""
    visible = _visible(cell_arrays, dataset.GetNumberOfCells())
    arrays = {k: v for k, v in arrays.items() if k != GHOSTS}
    cell_arrays = {k: v for k, v in cell_arrays.items() if k != GHOSTS}
    if is_tensor(dataset) and visible.all():
        axes, shape = axes_of(dataset), dimensions_of(dataset)
        nx, ny, nz = (max(n - 1, 1) for n in shape)
        arrays = {k: grid_order(v, shape) for k, v in arrays.items()}
        axes, arrays = ascending(axes, arrays)
        on_cells = {k: grid_order(v, (nx, ny, nz)) for k, v in cell_arrays.items()}
        _, on_cells = ascending(axes_of(dataset), on_cells)
        return GridAxes(*axes), arrays, on_cells
    if hasattr(dataset, "GetDimensions"):
        mesh = curvilinear_mesh(dataset)
    else:
        mesh = mesh_of(dataset, name)
    if visible.all():
        return mesh, arrays, cell_arrays
    kept = {k: v[visible] for k, v in cell_arrays.items()}
    return keep_cells(mesh, visible), arrays, kept
