"""Series of files as steps that are read one at a time, in order of time."""

from collections.abc import Collection, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from jaxtrace.files.join import join_snapshots
from jaxtrace.files.patterns import PathSpec, find_steps
from jaxtrace.files.snapshot import Snapshot
from jaxtrace.files.step_lists import Step
from jaxtrace.files.times import TIME_SOURCES, choose_clock, name_number
from jaxtrace.files.vtk_read import StatedTime, peek_time, read_snapshot
from jaxtrace.files.vtk_series import CASE_EXTENSIONS, CaseSteps


@runtime_checkable
class Steps(Protocol):
    """A source of snapshots: when they are, what to call them, and how to read one."""

    times: Float[np.ndarray, " steps"]
    time_source: str
    labels: tuple[str, ...]

    def read(self, index: int, names: Collection[str] | None = None) -> Snapshot:
        """Read one instant; with `names`, only those arrays where possible."""
        ...


class FileSteps:
    """One file, or one set of part files, for each instant."""

    def __init__(self, steps: Sequence[Step], time_source: str | None = None) -> None:
        labels = [", ".join(str(file) for file in step.files) for step in steps]
        clock = choose_clock(labels, _stated(steps, time_source), time_source)
        self._steps = [steps[i] for i in clock.order]
        self.times: Float[np.ndarray, " steps"] = clock.times
        self.time_source = TIME_SOURCES[clock.source]
        self.labels = tuple(labels[i] for i in clock.order)

    def read(self, index: int, names: Collection[str] | None = None) -> Snapshot:
        """Read one instant; with `names`, only those arrays where possible."""
        files = self._steps[index].files
        return join_snapshots([read_snapshot(file, names) for file in files])


def open_steps(spec: PathSpec, time_source: str | None = None) -> Steps:
    """The steps of a file, glob, list, folder, collection or solver case."""
    steps = find_steps(spec)
    first = steps[0].files[0]
    if first.suffix.lower() in CASE_EXTENSIONS:
        if time_source is not None:
            raise ValueError(
                f"{first}: a solver's case has its own times, leave out "
                f"time_source={time_source!r}"
            )
        return CaseSteps(first)
    return FileSteps(steps, time_source)


def _stated(
    steps: Sequence[Step], time_source: str | None
) -> dict[str, list[float | None]]:
    """What the files, their list and their names say about the time of each step."""
    peeks = [StatedTime()] * len(steps)
    if time_source in (None, "field", "array"):
        peeks = [peek_time(step.files[0]) for step in steps]
    return {
        "field": [peek.field for peek in peeks],
        "collection": [step.time for step in steps],
        "array": [peek.array for peek in peeks],
        "name": [name_number(step.files[0]) for step in steps],
    }
