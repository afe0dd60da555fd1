"""The pictures of a run: particles, paths, densities and a cut across the flow."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from jaxtrace.bounds import Box
from jaxtrace.plot.maps import plot_density_2d, plot_slice_yz
from jaxtrace.plot.static import plot_particles_2d, plot_trajectory_2d
from jaxtrace.tracking.trajectory import Trajectory
from jaxtrace.workflow.densities import DensityMap
from jaxtrace.workflow.tables import Pictures

DOTS = 10_000.0  # square points that all dots of a picture share


def draw(
    table: Pictures,
    folder: Path,
    trajectory: Trajectory,
    domain: Box,
    maps: list[DensityMap],
    cuts: list[DensityMap],
    place: float,
) -> list[Path]:
    """Draw what the table asks for into a folder; return the files.

    `cuts` are densities in the yz plane at x = `place`.
    """
    corners = [domain.lo.tolist(), domain.hi.tolist()]
    common = {"show": False}
    jobs: list[tuple[str, Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = []
    if "particles" in table.which:
        options = {"plane": table.plane, "bounds": corners, "title": _when(trajectory)}
        options["s"] = float(np.clip(DOTS / max(trajectory.N, 1), 1.0, 12.0))
        jobs.append(("final_particles", plot_particles_2d, (trajectory,), options))
    if "trajectories" in table.which:
        options = {"plane": table.plane, "bounds": corners, "s": 3.0}
        options["max_points"] = table.max_paths
        jobs.append(("trajectories", plot_trajectory_2d, (trajectory,), options))
    if "density" in table.which:
        for one in maps:
            options = {
                "plane": one.plane,
                "title": f"{one.method}, {_when(trajectory)}",
            }
            grid = (one.x, one.y, one.values)
            jobs.append((f"density_{one.method}", plot_density_2d, grid, options))
    if "slice" in table.which:
        for one in cuts:
            options = {"x0": place, "levels": table.slice_levels}
            options["cutoff_min"] = table.slice_cutoff_min
            options["cutoff_max"] = table.slice_cutoff_max
            grid = (one.x, one.y, one.values)
            jobs.append((f"slice_yz_{one.method}", plot_slice_yz, grid, options))
    files = []
    for name, plot, arguments, options in jobs:
        path = folder / f"{name}.png"
        plot(*arguments, **options, **common, save_path=path)
        files.append(path)
    return files


def _when(trajectory: Trajectory) -> str:
    return f"t = {trajectory.times[-1]:.4g}"
