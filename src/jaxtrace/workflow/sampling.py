"""Variables of the files along the recorded paths, sampled where and when they are."""

from typing import Any

import numpy as np
from jaxtyping import Float

from jaxtrace.io.formats import find_format
from jaxtrace.io.loader import load_field
from jaxtrace.io.store import FrameStore
from jaxtrace.workflow.tables import Data

FRAMES_AT_ONCE = 64
AXES = "xyz"


def sample_store(store: FrameStore, name: str, field: Any) -> list[str]:
    """Add a variable to a store: at every position, at its time; return its arrays.

    A vector becomes an array per component. Where there is no particle it is NaN.
    """
    count = next(iter(store.layout.values())).shape[0]
    found = np.full((store.frames, count, 3), np.nan, np.float32)
    for first in range(0, store.frames, FRAMES_AT_ONCE):
        _, arrays = store.read(first, first + FRAMES_AT_ONCE)
        when = store.read_observed(first, first + FRAMES_AT_ONCE)
        for index, positions in enumerate(arrays["positions"]):
            found[first + index] = _sample_frame(field, positions, when[index])
    there = found[np.isfinite(found[..., 0])]
    if not there[:, 1:].any():
        store.annotate({name: found[..., 0]})
        return [name]
    parts = {f"{name}_{axis}": found[..., i] for i, axis in enumerate(AXES)}
    store.annotate(parts)
    return list(parts)


def _sample_frame(
    field: Any,
    positions: Float[np.ndarray, "particles 3"],
    when: Float[np.ndarray, " particles"],
) -> Float[np.ndarray, "particles 3"]:
    """Return the values of one frame; one that was just released has its own time."""
    found = np.full(positions.shape, np.nan, np.float32)
    for time in np.unique(when[np.isfinite(when)]).tolist():
        rows = when == time
        # All rows are asked for: the same shape needs no other program.
        places = np.where(rows[:, None], positions, positions[np.argmax(rows)])
        values = np.asarray(field.sample_at_positions(places, time))
        found[rows] = values[rows]
    return found


def load_variable(table: Data, name: str, options: dict[str, Any]) -> Any:
    """Read a variable of the files of a case as a field of its own."""
    if find_format(table.pattern).name == "grid":
        # As if it were a velocity of both directions, in the units of the file; land
        # is no value.
        options = {**options, "velocity_field_name": (name, name), "land": "nan"}
        options["velocity_units"] = "m/s"
        return _First(load_field(table.pattern, **options).field)
    options = {**options, "velocity_field_name": name}
    return load_field(table.pattern, **options).field


class _First:
    """The first component of a field that repeats it."""

    def __init__(self, field: Any) -> None:
        self.field = field

    def sample_at_positions(self, positions: np.ndarray, time: float) -> np.ndarray:
        """Return the value and zeros in place of its copies."""
        found = np.array(self.field.sample_at_positions(positions, time))
        found[:, 1:] = 0
        return found
