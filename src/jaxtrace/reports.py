"""The text report of a run: the field, the seeding, the results and the work."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jaxrig.atomic import write_file
from jaxrig.memory import MIB, tree_bytes
from jaxtrace.analysis.statistics import compute_trajectory_statistics
from jaxtrace.fields.base import AbstractField
from jaxtrace.memory import memory_report
from jaxtrace.paths import memory_mb
from jaxtrace.trajectory import Trajectory

WIDTH = 28  # of the column of names
LISTED = 6  # longer arrays are given by their shape and extremes


def generate_summary_report(
    field: Any,
    trajectory: Trajectory,
    stats: Mapping[str, Any] | None = None,
    strategy: Mapping[str, Any] | str | None = None,
    density_results: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    output_dir: Any = "output",
    filename: str = "analysis_summary.txt",
    timing_info: Mapping[str, float] | None = None,
) -> Path:
    """Write what the field is, how it was tracked, what came of it and what it took.

    Without `stats` they are computed. `strategy` says how particles were seeded;
    densities, `metadata` and `timing_info`, seconds by name, are added where they are
    given. The rate is that of the seconds named `tracking`.
    """
    frames, particles = trajectory.alive.shape
    # A frame may take several steps, and not every frame is recorded.
    facts = trajectory.metadata
    each = facts.get("substeps", 1) * facts.get("recording_interval", 1)
    work: dict[str, Any] = {"particle-steps": particles * max(frames - 1, 0) * each}
    if seconds := (timing_info or {}).get("tracking"):
        work["particle-steps per second"] = work["particle-steps"] / seconds
    if stats is None:
        stats = compute_trajectory_statistics(trajectory)
    sections = {
        "Field": field_facts(field),
        "Seeding": {"strategy": strategy} if isinstance(strategy, str) else strategy,
        "Run": trajectory.metadata,
        "Results": stats,
        "Density": density_results,
        "Work": work,
        "Seconds": timing_info,
        "Memory": {
            "trajectory (MiB)": memory_mb(trajectory),
            "now": str(memory_report()).splitlines(),
        },
        "Notes": metadata,
    }
    title = "Particle tracking: summary"
    lines = [title, "=" * len(title), ""]
    for name, entries in sections.items():
        if entries:
            lines += [name, "-" * len(name), *_lines(entries, ""), ""]
    return write_file(Path(output_dir) / filename, "\n".join(lines))


def field_facts(field: Any) -> dict[str, Any]:
    """Return what a field, of this package or not, says of itself."""
    space, time = _call(field, "get_spatial_bounds"), _call(field, "get_time_bounds")
    nodes = getattr(field, "positions", None)
    facts = {
        "kind": getattr(field, "__name__", type(field).__name__),
        "interpolation": getattr(field, "interpolation_scheme", None),
        "nodes": getattr(field, "N", None if nodes is None else len(nodes)),
        "time slices": getattr(field, "T", None),
        "lowest corner": None if space is None else space[0],
        "highest corner": None if space is None else space[1],
        "from time": None if time is None else time[0],
        "to time": None if time is None else time[1],
        "memory (MiB)": tree_bytes(field) / MIB
        if isinstance(field, AbstractField)
        else _call(field, "memory_usage_mb"),
    }
    return {name: value for name, value in facts.items() if value is not None}


def _call(field: Any, method: str) -> Any:
    """Return what a method answers, None where there is none."""
    answer = getattr(field, method, None)
    return answer() if callable(answer) else None


def _lines(entries: Mapping[Any, Any], indent: str) -> Iterator[str]:
    for name, value in entries.items():
        label = f"{indent}{name}"
        if isinstance(value, Mapping):
            yield label
            yield from _lines(value, f"{indent}  ")
        elif isinstance(value, list | tuple) and isinstance(next(iter(value), 0), str):
            yield label
            yield from (f"{indent}  {line}" for line in value)
        elif value is not None:
            yield f"{label:<{WIDTH}}  {_words(value)}"


def _words(value: Any) -> str:
    if isinstance(value, str | bool | np.bool_):
        return str(value)
    if isinstance(value, int | np.integer):
        return f"{int(value):,}"
    if isinstance(value, float | np.floating):
        return f"{float(value):.6g}" if math.isfinite(value) else str(float(value))
    if isinstance(value, list | tuple) and any(np.ndim(one) for one in value):
        return "; ".join(_words(one) for one in value)
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        return str(value)
    if array.size <= LISTED:
        return ", ".join(_words(one) for one in array.ravel().tolist()) or "none"
    finite = array[np.isfinite(array)]
    ends = f"{finite.min():.6g} to {finite.max():.6g}" if finite.size else "not finite"
    return f"{' x '.join(map(str, array.shape))} values, {ends}"
