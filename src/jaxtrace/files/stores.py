"""`open_store`: a run streamed to disk as .zarr, .h5 or .pvd, by the file's suffix."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jaxrig.atomic import remove_leftovers
from jaxtrace.files.frame_store import FrameStore
from jaxtrace.files.hdf5_store import HDF5Store
from jaxtrace.files.vtk_store import VTKStore
from jaxtrace.files.zarr_store import ZarrStore

KINDS: dict[str, type[ZarrStore] | type[HDF5Store] | type[VTKStore]] = {
    ".zarr": ZarrStore,
    ".h5": HDF5Store,
    ".hdf5": HDF5Store,
    ".pvd": VTKStore,
}
MODES = ("r", "a", "w", "x")


def open_store(
    path: str | os.PathLike[str],
    mode: str = "x",
    *,
    metadata: Mapping[str, Any] | None = None,
) -> FrameStore:
    """Open a store of frames.

    "r" reads, "a" goes on with a store or begins it, "w" begins it anew in the place of
    an earlier one, and "x" begins it and refuses if there is one.

        with open_store("run.zarr", "w") as store:
            store.append(times, {"positions": positions})
    """
    path = Path(path)
    if path.suffix.lower() not in KINDS or mode not in MODES:
        raise ValueError(
            f"{path.name!r} in mode {mode!r}: the name ends in {', '.join(KINDS)} and "
            f"the mode is one of {', '.join(MODES)}"
        )
    kind = KINDS[path.suffix.lower()]
    if path.exists() and mode == "x":
        raise FileExistsError(f"{path} exists: use mode 'w' to replace or 'a' to go on")
    if not path.exists() and mode == "r":
        raise FileNotFoundError(f"{path} does not exist")
    if mode != "r":
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(path.parent)
    if mode == "w" or not path.exists():
        kind.create(path)
    store = kind(path, writable=mode != "r")
    if metadata is not None:
        store.describe(metadata)
    return store
