"""Which devices there are, and JAX settings that come before the first of them."""

import jax

from jaxrig.devices import (
    KINDS,
    Device,
    devices_are_open,
    pick_devices,
    set_accelerator_memory,
)
from jaxtrace.config import working_device


def get_jax_version() -> str:
    """The version of JAX."""
    return jax.__version__


def get_devices(kind: str | None = None) -> list[Device]:
    """Devices of a kind ("cpu", "gpu", "tpu"), none where there are none."""
    if kind is not None and kind not in KINDS:
        raise ValueError(f"device kind {kind!r} is not one of: {', '.join(KINDS)}")
    try:
        return pick_devices("auto" if kind is None else kind)
    except ValueError:  # no device of this kind: the empty answer
        return []


def devices_in_use() -> list[Device]:
    """The devices that JAX prefers, and the one that arrays go to if it is another."""
    devices, chosen = jax.local_devices(), working_device()
    return devices if chosen in devices else [*devices, chosen]


def default_device_kind() -> str:
    """The kind of the device that arrays go to."""
    return working_device().platform


def configure_xla_env(
    *,
    preallocate: bool | None = None,
    mem_fraction: float | None = None,
    platform: str | None = None,
    quiet: bool = False,
) -> None:
    """Choose accelerator memory and platform before JAX opens a device.

    Once a device is open it is too late for all but `quiet`, and an error says so.
    """
    if preallocate is not None or mem_fraction is not None:
        set_accelerator_memory(preallocate=preallocate, fraction=mem_fraction)
    if platform is not None:
        if devices_are_open():
            raise RuntimeError(
                f"JAX has opened its devices; configure(device={platform!r}) still "
                "chooses among them"
            )
        jax.config.update("jax_platforms", platform)
    if quiet:
        jax.config.update("jax_logging_level", "ERROR")
