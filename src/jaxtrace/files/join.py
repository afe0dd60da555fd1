"""Several snapshots of one instant, a file for each part, as one."""

from collections.abc import Sequence

import numpy as np

from jaxtrace.files.cells import grid_to_cells
from jaxtrace.files.snapshot import Cells, GridAxes, Snapshot, storage_order


def as_mesh(snapshot: Snapshot) -> Snapshot:
    """The snapshot with its grid, if it has one, turned into cells."""
    if isinstance(snapshot.geometry, Cells):
        return snapshot
    return Snapshot(
        grid_to_cells(snapshot.geometry),
        {name: storage_order(v) for name, v in snapshot.arrays.items()},
        {name: storage_order(v) for name, v in snapshot.cell_arrays.items()},
        snapshot.time,
        snapshot.source,
        snapshot.assembled,
        snapshot.available,
        snapshot.field_data,
    )


def join_snapshots(parts: Sequence[Snapshot]) -> Snapshot:
    """One snapshot of all parts, with the arrays that every part has."""
    if len(parts) == 1:
        return parts[0]
    meshes = [as_mesh(part) for part in parts]
    return Snapshot(
        join_cells([_cells(mesh.geometry) for mesh in meshes]),
        _stacked([mesh.arrays for mesh in meshes]),
        _stacked([mesh.cell_arrays for mesh in meshes]),
        meshes[0].time,
        ", ".join(part.source for part in parts),
        True,
        tuple(dict.fromkeys(name for part in parts for name in part.available)),
        meshes[0].field_data,
    )


def join_cells(meshes: Sequence[Cells]) -> Cells:
    """The meshes one after the other, not yet connected."""
    shifts = np.cumsum([0] + [mesh.n_points for mesh in meshes])
    entries = np.cumsum([0] + [mesh.connectivity.size for mesh in meshes])
    starts = zip(meshes, entries, strict=False)
    return Cells(
        np.concatenate([mesh.points for mesh in meshes]),
        np.concatenate(
            [m.connectivity + s for m, s in zip(meshes, shifts, strict=False)]
        ),
        np.concatenate([m.offsets[:-1] + s for m, s in starts] + [entries[-1:]]),
        np.concatenate([mesh.types for mesh in meshes]),
    )


def _stacked(parts: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    widths = [{name: v.shape[1] for name, v in part.items()}.items() for part in parts]
    shared = set(widths[0]).intersection(*widths[1:])
    names = [name for name, _ in widths[0] if name in dict(shared)]
    return {name: np.concatenate([part[name] for part in parts]) for name in names}


def _cells(geometry: Cells | GridAxes) -> Cells:
    assert isinstance(geometry, Cells)
    return geometry
