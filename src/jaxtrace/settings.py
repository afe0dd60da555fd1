"""What can be set, and which values are allowed."""

import dataclasses
import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxrig.devices import KINDS
from jaxrig.memory import host_memory

GIB = 1024**3
DTYPES = ("float32", "float64")
PRECISIONS = {"fastest": "bfloat16", "high": "float32", "highest": "highest"}


@dataclass(frozen=True)
class Settings:
    """Every setting and its default; `device="auto"` is what JAX prefers."""

    dtype: str = "float32"
    device: str = "auto"
    device_id: int | None = None
    memory_limit_gb: float = 8.0
    auto_batch_sizing: bool = True
    oom_recovery: bool = True
    use_jax_jit: bool = True
    use_jax_vmap: bool = True
    precompile_functions: bool = True
    show_progress: bool = True
    verbose: bool = False
    precision: str = "highest"
    optimization_level: int = 2


NAMES = tuple(field.name for field in dataclasses.fields(Settings))


def check_settings(changes: Mapping[str, Any]) -> dict[str, Any]:
    """The values as they are stored; an error names the setting that is wrong."""
    for name in changes:
        if name not in NAMES:
            raise TypeError(unknown_setting(name))
    return {name: RULES[name](name, value) for name, value in changes.items()}


def unknown_setting(name: str) -> str:
    """What to say of a setting that does not exist."""
    close = difflib.get_close_matches(name, NAMES, n=1, cutoff=0.0)[0]
    return f"no setting {name!r}; did you mean {close!r}? There are: {', '.join(NAMES)}"


def _one_of(*allowed: Any) -> Callable[[str, Any], Any]:
    def rule(name: str, value: Any) -> Any:
        switch = isinstance(allowed[0], bool)  # True equals 1, and is not meant by it
        if value not in allowed or isinstance(value, bool) != switch:
            shown = ", ".join(map(str, allowed))
            raise ValueError(f"{name}={value!r} is not one of: {shown}")
        return value

    return rule


def _dtype_name(name: str, value: Any) -> str:
    try:
        found = None if value is None else np.dtype(value).name
    except TypeError:  # no dtype at all
        found = None
    return _one_of(*DTYPES)(name, value if found is None else found)


def _index(name: str, value: Any) -> int | None:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if value is not None and not (whole and value >= 0):
        raise ValueError(f"{name}={value!r} must be None or a whole number from 0")
    return None if value is None else int(value)


def _gigabytes(name: str, value: Any) -> float:
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not math.isfinite(value):
        raise ValueError(
            f"{name}={value!r} must be a number of GiB; 0 or less means half of the "
            "machine's memory"
        )
    return float(value) if value > 0 else max(0.5 * host_memory().total / GIB, 2.0)


RULES: dict[str, Callable[[str, Any], Any]] = {
    **{field.name: _one_of(True, False) for field in dataclasses.fields(Settings)},
    "dtype": _dtype_name,
    "device": _one_of(*KINDS),
    "device_id": _index,
    "memory_limit_gb": _gigabytes,
    "precision": _one_of(*PRECISIONS),
    "optimization_level": _one_of(0, 1, 2),
}
