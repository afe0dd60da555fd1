"""One page about a run: particles that move, their density and its figures."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxrig.report import Heading, Part, Report, Section, Table, Text
from jaxtrace.bounds import Box
from jaxtrace.plot.canvas import trajectory_section
from jaxtrace.tracking.trajectory import Trajectory
from jaxtrace.types import ParticleStatus
from jaxtrace.workflow.densities import DensityMap


def write_page(
    path: Path,
    title: str,
    trajectory: Trajectory,
    domain: Box,
    plane: str,
    maps: Sequence[DensityMap],
    statistics: Mapping[str, Any],
    seconds: Mapping[str, float],
    notes: Sequence[str],
) -> Path:
    """Write the page; it is one file and needs no network."""
    report = Report(title)
    report.add(moving_section(trajectory, domain, plane, maps))
    report.add(Section("Figures", *figure_parts(trajectory, statistics)))
    rate = rate_rows(trajectory, seconds)
    parts: list[Part] = [Table(("what", "value"), rate)]
    parts += [Heading("Notes"), *(Text(note) for note in notes)] if notes else []
    report.add(Section("The run", *parts))
    return report.write(path)


def moving_section(
    trajectory: Trajectory, domain: Box, plane: str, maps: Sequence[DensityMap]
) -> Section:
    """Particles over the density of the last frame, if there is one in this plane."""
    behind = [one for one in maps if one.plane == plane]
    shade = behind[0].values.T if behind else None
    words = (
        f"Behind them: the density at the end ({behind[0].method})." if behind else ""
    )
    color = "age" if trajectory.generation.any() else "position"
    corners = np.stack([domain.lo, domain.hi])
    return trajectory_section(
        "Particles",
        trajectory,
        words,
        plane,
        color,
        bounds=corners,
        background=shade,
    )


def figure_parts(trajectory: Trajectory, statistics: Mapping[str, Any]) -> list[Part]:
    """What became of the particles, and how far and fast they went."""
    columns = ("", "mean", "deviation", "smallest", "largest")
    rows = [
        (name.replace("_", " "), *(float(v) for v in statistics[name].values()))
        for name in ("displacement", "path_length", "speed")
    ]
    fate = [
        (status.name.lower(), int((trajectory.status == status).sum()))
        for status in ParticleStatus
    ]
    entered = int((trajectory.generation[-1:] - trajectory.generation[:1]).sum())
    fate = [row for row in fate if row[1]]
    fate += [("entered later", entered)] if entered else []
    return [Table(columns, rows), Table(("particles", "number"), fate)]


def rate_rows(
    trajectory: Trajectory, seconds: Mapping[str, float]
) -> list[tuple[str, Any]]:
    """Sizes, seconds and the rate of the tracking."""
    rows: list[tuple[str, Any]] = [
        ("particles", trajectory.N),
        ("recorded frames", trajectory.T),
        ("integrator", str(trajectory.metadata.get("integrator", ""))),
        ("step", float(trajectory.metadata.get("dt", np.nan))),
    ]
    rows += [(f"seconds: {name}", float(value)) for name, value in seconds.items()]
    return rows
