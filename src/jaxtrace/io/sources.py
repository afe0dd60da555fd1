"""Series in any known format as slices in time, by one set of options."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float, Integer

from jaxrig.settings import nearest
from jaxtrace.files.grids import open_grid
from jaxtrace.files.patterns import pick_evenly
from jaxtrace.files.series import Slices, open_series
from jaxtrace.files.slices import float_dtype
from jaxtrace.files.snapshot import Geometry, GridAxes
from jaxtrace.io.hdf5_slices import H5Slices
from jaxtrace.io.registry import detect_format, require_format

#: What the options are called here, and by the reader of each format.
OPTIONS: dict[str, dict[str, str]] = {
    "vtk": {
        "velocity_field_name": "velocity_name",
        "allow_nan": "allow_nan",
        "merge_points": "merge_points",
        "time_source": "time_source",
    },
    "hdf5": {
        "velocity_field_name": "dataset",
        "dataset": "dataset",
        "allow_nan": "allow_nan",
    },
    "grid": {
        "velocity_field_name": "velocity_name",
        "land": "land",
        "engine": "engine",
    },
}
SELECTION = (
    "max_time_steps",
    "time_range",
    "dtype",
    "skip_initial_timesteps",
    "use_stable_mesh_only",
)
_OPENERS: dict[str, Callable[..., Slices]] = {
    "hdf5": H5Slices,
    "grid": open_grid,
}


class PickedSlices:
    """Some slices of a series, in its order."""

    def __init__(self, slices: Slices, picked: Integer[np.ndarray, " picked"]) -> None:
        self._slices, self._picked = slices, picked
        self.times: Float[np.ndarray, " picked"] = slices.times[picked]
        self.labels = tuple(slices.labels[i] for i in picked)

    def __len__(self) -> int:
        return self._picked.size

    def describe(self) -> tuple[str, ...]:
        """Where the data come from and what was done to them, in words."""
        return self._slices.describe()

    def read_slice(self, index: int) -> tuple[Any, np.ndarray]:
        """Geometry and velocity at one instant; an equal geometry is the same."""
        return self._slices.read_slice(int(self._picked[index]))


def open_slices(
    spec: Any,
    format_type: str | None = None,
    *,
    max_time_steps: int | None = None,
    time_range: tuple[float, float] | None = None,
    dtype: str = "float32",
    skip_initial_timesteps: int = 0,
    use_stable_mesh_only: bool = False,
    **options: Any,
) -> Slices:
    """The slices of a series; nothing of the data is read yet.

    `spec` is a file, glob, list or folder, or an xarray dataset. Slices are chosen in
    this order: those inside `time_range` (both ends count), without the first
    `skip_initial_timesteps`, only those of the commonest number of nodes if
    `use_stable_mesh_only`, at most `max_time_steps` evenly spaced ones. Other options
    are velocity_field_name and those that `OPTIONS` lists for a format; None leaves
    one to the reader.
    """
    name = format_of(spec, format_type)
    names = OPTIONS[name]
    given = {option: v for option, v in options.items() if v is not None}
    for option in given:
        if option not in names:
            raise TypeError(_unknown(option, name))
    passed = {names[option]: value for option, value in given.items()}
    passed |= {"time_range": time_range, "dtype": float_dtype(dtype).name}
    if name == "vtk":
        return open_series(
            spec,
            max_time_steps=max_time_steps,
            skip_initial=skip_initial_timesteps,
            stable_mesh_only=use_stable_mesh_only,
            **passed,
        )
    # The mesh of the other formats cannot change.
    return _pick(_OPENERS[name](spec, **passed), skip_initial_timesteps, max_time_steps)


def format_of(spec: Any, format_type: str | None = None) -> str:
    """The format to read a source by, whose packages are installed."""
    if format_type is None:
        format_type = "grid" if hasattr(spec, "data_vars") else detect_format(spec)
    return require_format(format_type).name


def source_name(spec: Any) -> str:
    """What to call a source: the path or paths, or that it is a dataset in memory."""
    if hasattr(spec, "data_vars"):
        return str(spec.encoding.get("source", "a dataset in memory"))
    if isinstance(spec, str | os.PathLike):
        return str(spec)
    return ", ".join(str(file) for file in spec)


def _pick(slices: Slices, skip: int, most: int | None) -> Slices:
    if skip < 0:
        raise ValueError(f"skip_initial_timesteps must not be negative, got {skip}")
    left = np.arange(skip, len(slices))
    if not left.size:
        raise ValueError(
            f"no slices left of {len(slices)} with skip_initial_timesteps={skip}"
        )
    return PickedSlices(slices, left[pick_evenly(left.size, most)])


def _unknown(name: str, format_name: str) -> str:
    known = [*OPTIONS[format_name], *SELECTION]
    return f"no option {name!r} for {format_name} files; {nearest(name, known)}"


def noted(slices: Slices, what: str) -> str:
    """What a series says of its "velocity" or its "times": where they come from."""
    lines = (line for line in slices.describe() if line.startswith(f"{what}: "))
    return next(lines).removeprefix(f"{what}: ").split(", averaged")[0]


def node_arrays(geometry: Geometry) -> dict[str, Any]:
    """Nodes and cells by their names in a loaded series; cells may be None.

    The nodes of a grid run along z first, as flattened arrays (Nx, Ny, Nz) do.
    """
    if isinstance(geometry, GridAxes):
        mesh = np.meshgrid(geometry.x, geometry.y, geometry.z, indexing="ij")
        points = np.stack([axis.ravel() for axis in mesh], axis=1)
        return {"positions": points} | _no_cells()
    if geometry.n_cells == 0:
        return {"positions": geometry.points} | _no_cells()
    return {
        "positions": geometry.points,
        "connectivity": geometry.connectivity,
        "cell_types": geometry.types,
        "cell_offsets": geometry.offsets,
    }


def _no_cells() -> dict[str, Any]:
    return {"connectivity": None, "cell_types": None, "cell_offsets": None}
