"""Which array is the velocity, as three finite components in the wanted precision."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxtrace.io.geometry import Snapshot

#: Names tried in this order when none is given.
VELOCITY_NAMES = (
    "velocity", "Velocity", "VELOCITY", "U", "u", "vel", "Vel", "VEL",
    "Displacement", "displacement", "DISPLACEMENT", "VelocityField", "velocity_field",
    "FlowVelocity", "flow_velocity", "v", "V", "fluid_velocity", "Result", "RESULT",
    "NodeVel", "NODEVEL",
)  # fmt: skip
#: Scalars that together are a velocity, tried after those names as vectors.
COMPONENT_NAMES = (
    ("u", "v", "w"), ("U", "V", "W"), ("vx", "vy", "vz"), ("Vx", "Vy", "Vz"),
    ("ux", "uy", "uz"), ("Ux", "Uy", "Uz"),
    ("velocity_x", "velocity_y", "velocity_z"),
    ("Velocity_X", "Velocity_Y", "Velocity_Z"),
    ("VelocityX", "VelocityY", "VelocityZ"),
    ("velocity_0", "velocity_1", "velocity_2"),
    ("x_velocity", "y_velocity", "z_velocity"),
)  # fmt: skip

VelocityName = str | Sequence[str] | None
Choice = tuple[str, ...]


def wanted_names(name: VelocityName) -> tuple[str, ...]:
    """Return the arrays worth reading to find the velocity."""
    if name is None:
        return tuple(dict.fromkeys((*VELOCITY_NAMES, *sum(COMPONENT_NAMES, ()))))
    return (name,) if isinstance(name, str) else tuple(name)


def pick_velocity(
    snapshot: Snapshot, name: VelocityName = None
) -> tuple[Choice, bool, np.ndarray]:
    """Return names of the velocity, whether it lies on cells, and its values.

    Vectors come first, then scalars that belong together, then a lone scalar, then a
    vector of another name if it is like one or the only one; nodes come before cells.
    """
    for choice, lone in [*_choices(name), *_guesses(snapshot, name)]:
        for on_cells in (False, True):
            arrays = snapshot.cell_arrays if on_cells else snapshot.arrays
            # A third component may be missing, the first two may not.
            present = itertools.takewhile(arrays.__contains__, choice)
            parts = [arrays[part] for part in present]
            if _fits(parts, choice, lone):
                return choice[: len(parts)], on_cells, np.concatenate(parts, axis=-1)
    there = ", ".join(snapshot.available) or "none"
    asked = "velocity" if name is None else repr(", ".join(wanted_names(name)))
    read = {*snapshot.arrays, *snapshot.cell_arrays}
    known = [n for n in wanted_names(name) if n in {*snapshot.available} - read]
    if known:
        raise ValueError(
            f"{snapshot.source}: {known[0]} has no values here, only in other slices: "
            "leave this one out with skip_initial_timesteps=1, or remove it"
        )
    raise ValueError(
        f"{snapshot.source}: no {asked} array; the arrays are {there}: give one as "
        "velocity_field_name="
    )


def _choices(name: VelocityName) -> list[tuple[Choice, bool]]:
    """Return candidates in order, each with whether any component count will do."""
    if isinstance(name, str):
        return [((name,), True)]
    if name is not None:
        return [(tuple(name), True)]
    vectors = [((name,), False) for name in VELOCITY_NAMES]
    scalars = [((name,), True) for name in VELOCITY_NAMES]
    return [*vectors, *((names, False) for names in COMPONENT_NAMES), *scalars]


def _guesses(snapshot: Snapshot, name: VelocityName) -> list[tuple[Choice, bool]]:
    """Return vectors that may be the velocity where no usual name is there."""
    if name is not None:
        return []
    both = {**snapshot.cell_arrays, **snapshot.arrays}
    vectors = [key for key, values in both.items() if values.shape[-1] in (2, 3)]
    named = [key for key in vectors if "vel" in key.lower()]
    return [((key,), False) for key in named or vectors[: len(vectors) == 1]]


def _fits(parts: list[np.ndarray], choice: Choice, lone: bool) -> bool:
    if lone:
        return len(parts) == len(choice)
    if len(choice) == 1:
        return len(parts) == 1 and parts[0].shape[-1] > 1
    return len(parts) >= 2 and all(part.shape[-1] == 1 for part in parts)


def three_components(values: np.ndarray, dtype: Any) -> np.ndarray:
    """Return three components: missing ones are zero, those after the third are cut."""
    shape = (*values.shape[:-1], 3)
    out = np.zeros(shape, dtype)
    kept = min(values.shape[-1], 3)
    out[..., :kept] = values[..., :kept]
    return out


def check_values(values: np.ndarray, what: str, source: str, allow_nan: bool) -> None:
    """Raise ValueError for values in the wrong byte order, and for those not finite."""
    if looks_swapped(values):
        raise ValueError(
            f"{source}: {what} makes sense only with its bytes swapped; the file is in "
            "another byte order than it says"
        )
    if allow_nan:
        return
    bad = values.size - int(np.count_nonzero(np.isfinite(values)))
    if bad and bad == values.size:
        raise ValueError(
            f"{source}: no value of {what} is finite: give another array as "
            "velocity_field_name=, or other files"
        )
    if bad:
        raise ValueError(
            f"{source}: {bad} of {values.size} values of {what} are not finite; "
            "give allow_nan=True to keep them"
        )


def looks_swapped(values: np.ndarray, sample: int = 4096) -> bool:
    """Return whether many values are absurd as they stand and none with bytes swapped.

    Absurd is an exponent in the outer half of what the type can hold. Swapping makes
    exponents of the last bits of the mantissa, so that half of them or, for round
    numbers, all of them are absurd. A spread sample decides.
    """
    if values.dtype.kind != "f":
        return False
    flat = values.reshape(-1)[:: max(1, values.size // sample)]
    flat = np.ascontiguousarray(flat[flat != 0])

    def absurd(values: np.ndarray) -> float:
        finite = np.isfinite(values)
        exponents = np.frexp(np.where(finite, values, 1))[1]
        far = np.abs(exponents) > np.finfo(values.dtype).maxexp / 2
        return float(np.mean(~finite | far))

    return flat.size > 0 and absurd(flat) > 0.2 and absurd(flat.byteswap()) < 0.01
