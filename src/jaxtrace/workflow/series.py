"""The velocity of files as a field: in memory where it fits, else slice by slice."""

from typing import Any

from jaxtrace.config import memory_budget_bytes
from jaxtrace.io.loader import load_optimized_dataset
from jaxtrace.settings import GIB
from jaxtrace.workflow.tables import Data

MIB = 1024**2


def load_field(data: Data, dtype: str) -> tuple[Any, tuple[str, ...]]:
    """The field of a table of data, and what was done to make it, in words."""
    options: dict[str, Any] = {
        "interpolation": data.interpolation,
        "extrapolation": data.extrapolation,
    }
    if data.outside is not None:
        options["outside"] = data.outside
    field = load_optimized_dataset(
        data.pattern,
        memory_budget_bytes() / MIB,
        data.max_timesteps_to_load,
        data.time_range,
        dtype,
        velocity_field_name=data.velocity_name,
        skip_initial_timesteps=data.skip_initial_timesteps,
        use_stable_mesh_only=data.use_stable_mesh_only,
        **options,
    )
    return field, field_notes(field, data.pattern)


def field_notes(field: Any, pattern: str) -> tuple[str, ...]:
    """Where a loaded field comes from, in words."""
    told = field._source_info
    count = len(told["files"])
    scheme = getattr(field, "interpolation_scheme", None)
    lines = [f"{count} {'slice' if count == 1 else 'slices'} of {pattern}"]
    lines += [str(note) for note in told.get("notes", ())]
    lines += [f"interpolation: {scheme}"] if scheme else []
    if told.get("streamed"):
        limit = memory_budget_bytes() / GIB
        lines.append(f"slices beyond {limit:.3g} GiB are read as the run needs them")
    return tuple(lines)
