"""Files from one format to another: recorded paths, and series of velocities."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from jaxrig.machine import missing_extra
from jaxtrace.files.collection import write_collection
from jaxtrace.files.columns import Cells as Columns
from jaxtrace.files.columns import column
from jaxtrace.files.frame_store import FrameStore
from jaxtrace.files.snapshot import Cells, GridAxes, storage_order
from jaxtrace.files.stores import KINDS, open_store
from jaxtrace.files.trajectories import export_trajectory_to_vtk
from jaxtrace.files.vtk_write import write_vtr, write_vtu
from jaxtrace.io.sources import open_slices
from jaxtrace.tracking.trajectory import Trajectory

Progress = Callable[[int, int], None]
FRAMES_AT_ONCE = 64
LABELED = (".nc", ".zarr")
SERIES_TARGETS = (".pvd", *LABELED)


def quiet(done: int, total: int) -> None:
    """Show no progress."""


def is_store(path: Path) -> bool:
    """Whether a path holds recorded frames, and not velocities."""
    if path.suffix.lower() not in KINDS or not path.exists():
        return False
    try:
        with open_store(path, "r") as store:
            return "positions" in store.layout
    except ValueError:  # another kind of file of this suffix
        return False


def read_trajectory(path: Path) -> Trajectory:
    """The trajectory of a store."""
    with open_store(path, "r") as store:
        times, arrays = store.read()
        return Trajectory(
            arrays["positions"],
            times,
            arrays.get("velocities"),
            store.metadata,
            generation=arrays.get("generation"),
        )


def convert(
    source: str | Path, target: str | Path, progress: Progress = quiet
) -> list[Path]:
    """Write the content of one path in the format of another; return what was written.

    Recorded paths (.zarr, .h5, .pvd) go to any of these or to lines (.vtp);
    velocities of any readable kind go to a VTK series (.pvd), those on grids also to
    netCDF (.nc) or zarr.
    """
    target = Path(target)
    if target.exists():
        raise FileExistsError(f"{target} exists: remove it or give another name")
    if is_store(Path(source)):
        return _convert_paths(Path(source), target, progress)
    if target.suffix.lower() not in SERIES_TARGETS:
        raise ValueError(
            f"{target.name!r}: velocities are written as {', '.join(SERIES_TARGETS)}"
        )
    slices = open_slices(str(source))
    if target.suffix.lower() == ".pvd":
        return _write_vtk(slices, target, progress)
    return [_write_labeled(slices, target, progress)]


def _convert_paths(source: Path, target: Path, progress: Progress) -> list[Path]:
    suffix = target.suffix.lower()
    if suffix == ".vtp":
        written = export_trajectory_to_vtk(read_trajectory(source), target)
        return [Path(written["file"])]
    if suffix not in KINDS:
        known = ", ".join([*KINDS, ".vtp"])
        raise ValueError(f"{target.name!r}: recorded paths are written as {known}")
    with (
        open_store(source, "r") as before,
        open_store(target, "x", metadata=before.metadata) as after,
    ):
        for first in range(0, before.frames, FRAMES_AT_ONCE):
            times, arrays = before.read(first, first + FRAMES_AT_ONCE)
            after.append(times, arrays)
            progress(first + len(times), before.frames)
    return [target]


def _write_vtk(slices: Any, target: Path, progress: Progress) -> list[Path]:
    """One file per slice in a folder beside the collection of their times."""
    folder = target.with_name(f"{target.stem}_slices")
    folder.mkdir(parents=True, exist_ok=True)
    steps = []
    for index, time in enumerate(np.asarray(slices.times).tolist()):
        geometry, values = slices.read_slice(index)
        stem = folder / f"velocity_{index:04d}"
        facts = {"TimeValue": np.float64(time)}
        path = _write_slice(stem, geometry, values, facts)
        steps.append((time, f"{folder.name}/{path.name}"))
        progress(index + 1, len(slices))
    return [write_collection(target, steps)]


def _write_slice(
    stem: Path, geometry: Cells | GridAxes, values: np.ndarray, facts: dict[str, Any]
) -> Path:
    if isinstance(geometry, GridAxes):
        axes = (geometry.x, geometry.y, geometry.z)
        data = {"velocity": storage_order(values)}
        path = stem.with_suffix(".vtr")
        return write_vtr(path, axes, point_data=data, field_data=facts)
    cells = Columns(
        column("connectivity", geometry.connectivity),
        column("offsets", geometry.offsets[1:]),
        column("types", geometry.types.astype(np.uint8)),
    )
    path, data = stem.with_suffix(".vtu"), {"velocity": values}
    return write_vtu(path, geometry.points, cells, point_data=data, field_data=facts)


def _write_labeled(slices: Any, target: Path, progress: Progress) -> Path:
    try:
        import xarray
    except ImportError as error:
        raise missing_extra("writing labeled grids needs xarray", "trace") from error
    geometry, first = slices.read_slice(0)
    if not isinstance(geometry, GridAxes):
        raise ValueError(
            f"{target.name!r} holds grids, and these velocities are on a mesh: "
            "convert them to .pvd"
        )
    whole = np.empty((len(slices), *first.shape), first.dtype)
    for index in range(len(slices)):
        whole[index] = slices.read_slice(index)[1]
        progress(index + 1, len(slices))
    order = ("time", "z", "y", "x")
    data = {
        name: (order, whole[..., c].transpose(0, 3, 2, 1))
        for c, name in enumerate("uvw")
    }
    axes = {axis: getattr(geometry, axis) for axis in "xyz"}
    found = xarray.Dataset(data, {"time": np.asarray(slices.times), **axes})
    part = target.with_name(f".{target.name}.part")  # whole or not there at all
    if target.suffix.lower() == ".zarr":
        found.to_zarr(part, consolidated=False)
    else:
        found.to_netcdf(part)
    return part.rename(target)


def describe_store(store: FrameStore) -> dict[str, Any]:
    """What a store of frames holds, in words."""
    ends = [store.read(at, at + 1)[0] for at in (0, max(store.frames - 1, 0))]
    arrays = [
        f"{name} {item.shape} {item.dtype}" for name, item in store.layout.items()
    ]
    facts: dict[str, Any] = {"frames": store.frames, "arrays": ", ".join(arrays)}
    if store.frames:
        facts["times"] = " to ".join(f"{float(end[0]):.6g}" for end in ends)
    return facts | {str(k): str(v) for k, v in store.metadata.items()}
