"""Choosing devices, and settings made before JAX starts."""

import os
from typing import Any, TypeAlias

import jax

Device: TypeAlias = Any  # jax.Device, which is a variable to type checkers
KINDS = ("auto", "cpu", "gpu", "tpu")


def pick_devices(kind: str = "auto", count: int | None = None) -> list[Device]:
    """Return the first `count` local devices of a kind; auto: what JAX prefers."""
    if kind not in KINDS:
        raise ValueError(f"device kind {kind!r} is not one of: {', '.join(KINDS)}")
    try:
        devices = jax.local_devices(backend=None if kind == "auto" else kind)
    except RuntimeError as error:
        present = sorted({device.platform for device in jax.devices()})
        raise ValueError(
            f"no {kind} device: JAX found only {', '.join(present)}; for NVIDIA GPUs "
            "install the cuda extra"
        ) from error
    if count is not None and not 1 <= count <= len(devices):
        raise ValueError(
            f"{count} devices requested, but only {len(devices)} "
            f"{devices[0].platform} devices available"
        )
    return devices[:count]


def set_accelerator_memory(
    *, preallocate: bool | None = None, fraction: float | None = None
) -> None:
    """Choose how much accelerator memory JAX takes, before JAX opens a device.

    `preallocate=False` takes memory as needed; `fraction` bounds what is taken.
    """
    if fraction is not None and not 0 < fraction <= 1:
        raise ValueError(f"fraction={fraction} must be above 0 and at most 1")
    if devices_are_open():
        raise RuntimeError(
            "JAX has opened its devices; set accelerator memory before the first array"
        )
    if preallocate is not None:
        os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = str(preallocate).lower()
    if fraction is not None:
        os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] = str(fraction)


def devices_are_open() -> bool:
    """Return whether JAX has already started a backend in this process."""
    from jax._src import xla_bridge  # JAX has no public way to ask without starting one

    return xla_bridge.backends_are_initialized()
