"""The package's configuration: one store, changed by `configure`, read everywhere.

Nothing is set at import: until `configure` names a setting, JAX stays as it was.
"""

import dataclasses
import math
import os
import warnings
from dataclasses import dataclass
from typing import Annotated, Any

import jax
import numpy as np

from jaxrig.devices import (
    KINDS,
    Device,
    devices_are_open,
    pick_devices,
    set_accelerator_memory,
)
from jaxrig.machine import usable_cores
from jaxrig.memory import host_memory
from jaxrig.settings import Checked, flag, maybe, one_of, whole, wrong
from jaxtrace.settings import DTYPES, GIB

PRECISIONS = {"fastest": "bfloat16", "high": "float32", "highest": "highest"}
WORKSPACE_FACTOR = 4  # memory of a run over memory of its record


def _dtype(value: Any, name: str) -> str:
    try:
        found = value if value is None else np.dtype(value).name
    except TypeError:  # not a dtype at all
        found = value
    return one_of(*DTYPES)(found, name)


def _gigabytes(value: Any, name: str) -> float:
    plain = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not plain or not math.isfinite(value):
        raise wrong(name, value, "a number of GiB; 0 or less means half the memory")
    return float(value) if value > 0 else max(0.5 * host_memory().total / GIB, 2.0)


@dataclass(frozen=True)
class Settings(Checked):
    """Every setting and its default; `device="auto"` is what JAX prefers."""

    dtype: Annotated[str, _dtype] = "float32"
    device: Annotated[str, one_of(*KINDS)] = "auto"
    device_id: Annotated[int | None, maybe(whole(0))] = None
    memory_limit_gb: Annotated[float, _gigabytes] = 8.0
    precision: Annotated[str, one_of(*PRECISIONS)] = "highest"
    oom_recovery: Annotated[bool, flag] = True
    use_jax_jit: Annotated[bool, flag] = True
    show_progress: Annotated[bool, flag] = False
    cores: Annotated[int | None, maybe(whole())] = None


_store = [Settings()]
_found: dict[str, Any] = {}  # JAX options before this module first changed them


def configure(**changes: Any) -> None:
    """Change settings of the package, all or none; `Settings` lists them.

    `dtype="float64"` turns on 64 bits in JAX, `device` chooses where arrays go from
    now on, `memory_limit_gb` bounds what trackers and chunked operations take, `cores`
    how many cores of a CPU they keep busy (None: all).
    """
    changes = Settings.read(changes)
    if "device" in changes:
        changes.setdefault("device_id", None)  # an index belongs to a kind
    after = dataclasses.replace(_store[0], **changes)
    if "memory_limit_gb" in changes:
        _take_memory_as_needed()
    if "device" in changes or "device_id" in changes:
        after, device = _choose_device(after)
        _set_jax("jax_default_device", device)
    if after.dtype == "float64":
        _set_jax("jax_enable_x64", True)
    elif "dtype" in changes:
        _restore_jax("jax_enable_x64")
    if "precision" in changes:
        _set_jax("jax_default_matmul_precision", PRECISIONS[after.precision])
    _store[0] = after


def get_config() -> Settings:
    """Return the present settings."""
    return _store[0]


def reset_config() -> None:
    """Restore the defaults, and JAX to how it was found."""
    for option in tuple(_found):
        _restore_jax(option)
    _store[0] = Settings()


def working_dtype() -> np.dtype:
    """Return the floating dtype that fields, integration and trajectories use."""
    return np.dtype(get_config().dtype)


def working_device() -> Device:
    """Return the device that arrays go to; opens devices."""
    chosen = jax.config.jax_default_device  # type: ignore[attr-defined]
    if chosen is None or isinstance(chosen, str):
        return jax.local_devices(backend=chosen)[0]
    return chosen


def working_cores() -> int:
    """Return how many parts of the particles to work on at once; one on a GPU."""
    if working_device().platform != "cpu":
        return 1
    return get_config().cores or usable_cores()


def working_accelerators() -> int | None:
    """Return how many accelerators there are; a CPU is one device with many cores."""
    kind = working_device().platform
    return None if kind == "cpu" else len(jax.local_devices(backend=kind))


def memory_budget_bytes() -> int:
    """Return the bytes that a run, and every chunked operation, may take."""
    return int(get_config().memory_limit_gb * GIB)


def _set_jax(option: str, value: Any) -> None:
    _found.setdefault(option, jax.config.values[option])
    jax.config.update(option, value)


def _restore_jax(option: str) -> None:
    if option in _found:
        jax.config.update(option, _found.pop(option))


def _take_memory_as_needed() -> None:
    """Keep JAX from taking most of an accelerator at once, unless the user chose."""
    if not devices_are_open() and "XLA_PYTHON_CLIENT_PREALLOCATE" not in os.environ:
        set_accelerator_memory(preallocate=False)


def _choose_device(settings: Settings) -> tuple[Settings, Device | None]:
    """Return the device meant, None for JAX's choice; the CPU where there is none."""
    if settings.device == "auto" and settings.device_id is None:
        return settings, None
    try:
        devices = pick_devices(settings.device)
    except ValueError as error:
        warnings.warn(f"{error}; using the CPU", RuntimeWarning, stacklevel=3)
        settings = dataclasses.replace(settings, device="cpu", device_id=None)
        devices = pick_devices("cpu")
    index = settings.device_id
    if index is None:
        return settings, devices[0]
    if index >= len(devices):
        raise ValueError(
            f"device_id={index} is out of range: there are {len(devices)} "
            f"{settings.device} devices, numbered from 0"
        )
    return settings, devices[index]
