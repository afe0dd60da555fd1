"""States, actions and arrays as plain host data; what cannot be converted raises."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from jaxrig.dtypes import is_key

STATE_FIELDS = (
    *("working_grid", "working_grid_mask", "target_grid", "target_grid_mask"),
    *("selected", "clipboard", "similarity_score", "step_count", "episode_done"),
    *("current_example_idx", "episode_mode"),
)


class JAXCallbackError(TypeError):
    """A value that cannot be handed to host code as plain data."""


def serialize_jax_array(array: Any) -> np.ndarray:
    """The values of an array as NumPy; typed PRNG keys as their data."""
    if isinstance(array, Tracer):
        raise JAXCallbackError(
            f"{array} has no values yet: serialize inside the function given to "
            "jax_debug_callback"
        )
    if isinstance(array, jax.Array) and is_key(array.dtype):
        array = jax.random.key_data(array)
    found = np.asarray(array)
    if found.dtype == object:
        raise JAXCallbackError(
            f"a value of type {type(array).__name__} is no array: pass numbers"
        )
    return found


def serialize_arc_state(state: Any) -> dict[str, Any]:
    """The parts of a state that a log shows: NumPy grids and Python numbers."""
    missing = [name for name in STATE_FIELDS if not hasattr(state, name)]
    if missing:
        raise JAXCallbackError(
            f"{type(state).__name__} has no {', '.join(missing)}: pass an ArcEnvState"
        )
    return {name: _plain(getattr(state, name)) for name in STATE_FIELDS}


def serialize_action(action: Any) -> dict[str, Any]:
    """The fields of a structured action, or of a dictionary, as plain data."""
    if isinstance(action, Mapping):
        fields = dict(action)
    elif dataclasses.is_dataclass(action) and not isinstance(action, type):
        names = (field.name for field in dataclasses.fields(action))
        fields = {name: getattr(action, name) for name in names}
    else:
        raise JAXCallbackError(
            f"an action of type {type(action).__name__}: pass a PointAction, "
            "BboxAction, MaskAction or a dictionary"
        )
    return {name: _plain(value) for name, value in fields.items()}


def _plain(value: Any) -> Any:
    found = serialize_jax_array(value)
    return found.item() if found.ndim == 0 else found
