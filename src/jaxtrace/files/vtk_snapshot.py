"""Any VTK data object, parts and all, as one `Snapshot` of plain arrays."""

from typing import Any

import numpy as np

from jaxtrace.files.cells import keep_cells
from jaxtrace.files.snapshot import (
    Cells,
    GridAxes,
    Snapshot,
    ascending,
    grid_order,
)
from jaxtrace.files.vtk_geometry import (
    append,
    axes_of,
    curvilinear_mesh,
    dimensions_of,
    is_tensor,
    mesh_of,
    split_exotic,
    to_numpy,
)

GHOSTS = "vtkGhostType"
# Flags of the ghost array on cells: a copy of another piece's cell, and a blanked one.
_COPY, _HIDDEN = 1, 32


def leaves(data: Any) -> list[Any]:
    """The data sets inside a composite one; a plain data set is its own leaf."""
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
    """The numeric arrays of point, cell or field data by name."""
    found = {}
    for index in range(attributes.GetNumberOfArrays()):
        # Arrays of strings are none of our business; VTK answers None for them.
        array = attributes.GetArray(index)
        if array is not None:
            found[array.GetName() or f"array_{index}"] = to_numpy(array)
    return found


def _rows(attributes: Any, rows: int, name: str) -> dict[str, np.ndarray]:
    """The arrays as (rows, components); another length is an error."""
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
    """The arrays of a data object read from `name`; ValueError if it is empty."""
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
    """Geometry with the arrays in its shape, without ghost and hidden cells."""
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
