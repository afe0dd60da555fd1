"""`VTKTrajectoryWriter`: particles to VTK files under both documented conventions."""

import os
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from jaxtrace.files.columns import vertices
from jaxtrace.files.polylines import recording
from jaxtrace.files.trajectories import (
    PATTERN,
    export_points_vtu,
    gather_points,
    identity_columns,
    time_columns,
    write_frames,
    write_lines,
)
from jaxtrace.files.vtk_write import write_vtp
from jaxtrace.types import PathRecord

Filename = str | os.PathLike[str]


class VTKTrajectoryWriter:
    """Writes trajectories and particles; every method returns the file it wrote.

    File names are relative to `output_dir` where one is given.
    """

    def __init__(self, output_dir: Filename = "") -> None:
        self.output_dir = Path(output_dir)

    def write_trajectory(
        self,
        trajectory: PathRecord,
        filename: Filename,
        include_velocities: bool = True,
        include_particle_ids: bool = True,
        include_timestep_data: bool = True,
        format: str = "xml",
    ) -> Path:
        """Write one polyline per particle."""
        record = recording(trajectory, include_velocities)
        data = identity_columns(record) if include_particle_ids else {}
        if include_timestep_data:
            data |= time_columns(record)
        return write_lines(record, self.output_dir / filename, data, format)

    def write_time_series(
        self,
        trajectory: PathRecord,
        output_directory: Filename = "",
        filename_pattern: str = PATTERN,
        include_velocities: bool = True,
        format: str = "xml",
    ) -> Path:
        """Write one file of points per frame; return the collection of their times."""
        record = recording(trajectory, include_velocities)
        folder = self.output_dir / output_directory
        return write_frames(record, folder, filename_pattern, format=format)

    def write_particles_at_time(
        self,
        positions: Any,
        velocities: Any = None,
        time: float = 0.0,
        filename: Filename | None = None,
        format: str = "xml",
    ) -> Path:
        """Write the particles of one instant as vertices."""
        return export_points_vtu(
            positions,
            self.output_dir / (filename or "particles.vtu"),
            time=time,
            velocities=velocities,
            format=format,
        )

    def write_trajectory_points(
        self,
        trajectory_positions: Any,
        times: Any,
        filename: Filename = "particle_trajectories.vtp",
        particle_data: Mapping[str, Any] | None = None,
        time_subset: slice | None = None,
    ) -> Path:
        """Write the positions (T,N,3) of all frames as one cloud of points.

        `particle_data` holds arrays (N,...) or (T,N,...); `time_subset` takes frames.
        """
        whole, clock = np.asarray(trajectory_positions), np.asarray(times)
        frames = np.arange(len(clock))
        chosen = time_subset or slice(None)
        steps = np.broadcast_to(frames[:, np.newaxis], whole.shape[:2])
        arrays = {
            name: values[chosen] if values.shape[:2] == whole.shape[:2] else values
            for name, values in _arrays({"TimeStep": steps, **(particle_data or {})})
        }
        place, data = gather_points(whole[chosen], clock[chosen], arrays=arrays)
        return write_vtp(
            self.output_dir / filename,
            place,
            verts=vertices(len(place)),
            point_data=data,
        )

    def write_trajectory_lines(
        self,
        trajectory_positions: Any,
        times: Any,
        filename: Filename = "particle_paths.vtp",
        max_particles: int | None = None,
        particle_subset: Any = None,
    ) -> Path:
        """Write the paths of some particles (T,N,3), each line with its `PathLength`.

        `particle_subset` names the particles; else `max_particles` of them are taken,
        evenly spaced, the first and the last included.
        """
        whole = np.asarray(trajectory_positions)
        chosen = _choose(whole.shape[1], max_particles, particle_subset)
        record = recording(SimpleNamespace(positions=whole[:, chosen], times=times))
        data = {**time_columns(record), **identity_columns(record, chosen)}
        return write_lines(record, self.output_dir / filename, data, lengths=True)


def _arrays(members: Mapping[str, Any]) -> list[tuple[str, np.ndarray]]:
    return [(name, np.asarray(values)) for name, values in members.items()]


def _choose(count: int, most: int | None, subset: Any) -> np.ndarray:
    if subset is not None:
        chosen = np.asarray(subset)
        if chosen.size and not 0 <= chosen.min() <= chosen.max() < count:
            raise ValueError(
                f"particle_subset goes from {chosen.min()} to {chosen.max()}: "
                f"the {count} particles are 0 to {count - 1}"
            )
        return chosen.astype(np.int32)
    if most is not None and most < 1:
        raise ValueError(f"max_particles is {most}: it must be at least 1 or None")
    if most is None or most >= count:
        return np.arange(count, dtype=np.int32)
    return np.linspace(0, count - 1, most).round().astype(np.int32)
