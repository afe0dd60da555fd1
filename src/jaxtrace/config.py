"""Settings of the package: one store, changed by `configure` and read everywhere.

Nothing is set at import: until `configure` names a setting, JAX stays as it was.
"""

import dataclasses
import os
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxrig.devices import (
    Device,
    devices_are_open,
    pick_devices,
    set_accelerator_memory,
)
from jaxrig.memory import host_memory
from jaxtrace.settings import (
    DTYPES,
    GIB,
    NAMES,
    PRECISIONS,
    Settings,
    check_settings,
    unknown_setting,
)

WORKSPACE_FACTOR = 4  # memory of a run over memory of its record
MIN_BATCH_SIZE = 100


class Config:
    """The live settings: read them as attributes, change them by `update`."""

    settings: Settings

    def __init__(self) -> None:
        object.__setattr__(self, "settings", Settings())

    def __getattr__(self, name: str) -> Any:
        if name not in NAMES:
            raise AttributeError(unknown_setting(name))
        return getattr(self.settings, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self.update(**{name: value})

    def __repr__(self) -> str:
        return f"Config({self.settings})"

    @property
    def device(self) -> str:
        """The kind of device in use; asks JAX when the choice is left to it."""
        kind = self.settings.device
        return working_device().platform if kind == "auto" else kind

    def update(self, **changes: Any) -> None:
        """Change settings: all of them, or none when one is wrong."""
        checked = check_settings(changes)
        if "device" in checked:
            checked.setdefault("device_id", None)  # an index belongs to a kind
        after = dataclasses.replace(self.settings, **checked)
        if "memory_limit_gb" in checked:
            _take_memory_as_needed()
        if "device" in checked or "device_id" in checked:
            after, device = _choose_device(after)
            _set_jax("jax_default_device", device)
        if after.dtype == "float64":
            _set_jax("jax_enable_x64", True)
        elif "dtype" in checked:
            _restore_jax("jax_enable_x64")
        if "precision" in checked:
            _set_jax("jax_default_matmul_precision", PRECISIONS[after.precision])
        object.__setattr__(self, "settings", after)

    def reset(self) -> None:
        """Restore the defaults, and JAX to how it was found."""
        for option in tuple(_found):
            _restore_jax(option)
        object.__setattr__(self, "settings", Settings())

    def set_dtype(self, dtype: Any) -> None:
        """Work in float32 or float64."""
        self.update(dtype=dtype)

    def set_device(self, device: str, device_id: int | None = None) -> None:
        """Work on a device of this kind."""
        self.update(device=device, device_id=device_id)

    def set_memory_limit(self, gb: float) -> None:
        """Limit memory to so many GiB, more than 0."""
        if gb <= 0:
            raise ValueError(f"memory limit {gb} must be above 0 GiB")
        self.update(memory_limit_gb=gb)

    def optimize_for_memory(self) -> None:
        """Prefer small footprints: float32, batches that follow memory."""
        self.update(
            dtype="float32",
            auto_batch_sizing=True,
            oom_recovery=True,
            precompile_functions=False,
        )

    def optimize_for_speed(self) -> None:
        """Prefer speed: float32, everything compiled ahead."""
        self.update(
            dtype="float32",
            use_jax_jit=True,
            use_jax_vmap=True,
            precompile_functions=True,
            precision="high",
            optimization_level=2,
        )

    def optimize_for_accuracy(self) -> None:
        """Prefer accuracy: float64 and exact products."""
        self.update(dtype="float64", precision="highest")

    def get_recommended_batch_size(self, n_particles: int, n_timesteps: int) -> int:
        """Particles whose recorded run fits the memory limit; 100 at least."""
        if n_particles < 0 or n_timesteps < 1:
            raise ValueError(
                f"n_particles={n_particles}, n_timesteps={n_timesteps}: need >= 0, >= 1"
            )
        row = n_timesteps * 3 * working_dtype().itemsize * WORKSPACE_FACTOR
        fits = max(memory_budget_bytes() // row, MIN_BATCH_SIZE)
        return min(n_particles, fits)

    def get_system_info(self) -> dict[str, Any]:
        """Memory, devices and settings."""
        devices = [f"{d.platform}:{d.id} {d.device_kind}" for d in jax.devices()]
        return {
            "system_memory_gb": host_memory().total / GIB,
            "available_devices": devices,
            "jax_available": True,
            "current_config": dataclasses.asdict(self.settings)
            | {"device": self.device},
        }

    def ensure_consistent_arrays(self, *arrays: Any) -> tuple[jax.Array, ...]:
        """The arrays in the working dtype on the working device."""
        return ensure_consistent_arrays(*arrays)


_config = Config()
_found: dict[str, Any] = {}  # JAX options before this module first changed them


def configure(**settings: Any) -> None:
    """Change settings of the package, all or none; `Settings` lists them.

    `dtype="float64"` turns on 64 bits in JAX, `device` chooses where arrays go from
    now on, `memory_limit_gb` bounds what trackers and chunked operations take.
    """
    _config.update(**settings)


def get_config() -> Config:
    """The live settings."""
    return _config


def reset_config() -> None:
    """Restore the defaults, and JAX to how it was found."""
    _config.reset()


def configure_package(
    dtype: Any = None, device: str | None = None, memory_limit_gb: float | None = None
) -> None:
    """Change the three main settings; None leaves one as it is."""
    given = {"dtype": dtype, "device": device, "memory_limit_gb": memory_limit_gb}
    configure(**{name: value for name, value in given.items() if value is not None})


def get_package_config() -> dict[str, Any]:
    """The three main settings."""
    return {name: getattr(_config, name) for name in ("dtype", "device")} | {
        "memory_limit_gb": _config.memory_limit_gb
    }


def working_dtype() -> np.dtype:
    """The floating dtype that fields, integration and trajectories use."""
    return np.dtype(_config.settings.dtype)


def working_device() -> Device:
    """The device that arrays go to; opens devices."""
    chosen = jax.config.jax_default_device  # type: ignore[attr-defined]
    if chosen is None or isinstance(chosen, str):
        return jax.local_devices(backend=chosen)[0]
    return chosen


def memory_budget_bytes() -> int:
    """The bytes that a run, and every chunked operation, may take."""
    return int(_config.settings.memory_limit_gb * GIB)


def ensure_consistent_arrays(
    *arrays: Any, dtype: Any = None, device: str | None = None
) -> tuple[jax.Array, ...]:
    """The arrays in one dtype on one device: by default the working ones."""
    chosen = working_dtype() if dtype is None else np.dtype(dtype)
    if chosen.name not in DTYPES:
        raise ValueError(f"dtype {chosen.name} is not one of: {', '.join(DTYPES)}")
    if chosen.itemsize == 8 and not jax.config.values["jax_enable_x64"]:
        raise ValueError(f'{chosen.name} is off in JAX: configure(dtype="float64")')
    place = working_device() if device is None else pick_devices(device)[0]
    return tuple(jax.device_put(jnp.asarray(a, chosen), place) for a in arrays)


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
    """The device meant, None for JAX's own choice; the CPU where there is no such."""
    if settings.device == "auto" and settings.device_id is None:
        return settings, None
    try:
        devices = pick_devices(settings.device)
    except ValueError as error:
        warnings.warn(f"{error}; working on the cpu", RuntimeWarning, stacklevel=4)
        settings = dataclasses.replace(settings, device="cpu", device_id=None)
        devices = pick_devices("cpu")
    index = settings.device_id
    if index is None:
        return settings, devices[0]
    if index >= len(devices):
        raise ValueError(
            f"device_id={index} is too large: {len(devices)} {settings.device} "
            "devices there, counted from 0"
        )
    return settings, devices[index]
