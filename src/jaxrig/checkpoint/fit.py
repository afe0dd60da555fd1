"""Whether saved leaves fit the tree they are loaded into: every difference in words."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxrig.container import ContainerError, Entry
from jaxrig.dtypes import is_key
from jaxrig.plain import SCALARS, Scalar, is_array

CODE = "code"


class Kind(NamedTuple):
    """What a leaf is: a dtype and a shape, a Python type, or code."""

    type: str
    shape: tuple[int, ...] | None = None

    def __str__(self) -> str:
        return self.type if self.shape is None else f"{self.type} {self.shape}"


def kind_of(leaf: Any) -> Kind:
    """The kind of a leaf in memory."""
    if is_array(leaf) or isinstance(leaf, jax.ShapeDtypeStruct):
        typed = is_key(leaf.dtype)
        name = str(leaf.dtype) if typed else np.dtype(leaf.dtype).name
        return Kind(name, tuple(leaf.shape))
    return Kind(f"Python {type(leaf).__name__}" if type(leaf) in SCALARS else CODE)


def _stored_kind(entry: Entry, where: str) -> Kind:
    if entry.key is None:
        return Kind(entry.dtype, entry.shape)
    try:
        dtype = jax.eval_shape(lambda: jax.random.key(0, impl=entry.key)).dtype
    except ValueError as error:
        raise ContainerError(f"{where}: entry {entry.name!r}: {error}") from error
    return Kind(str(dtype), entry.shape[:-1])


def saved_kinds(
    entries: Iterable[Entry],
    scalars: Mapping[str, Scalar],
    code: Iterable[str],
    where: str,
) -> dict[str, Kind]:
    """The kind of every leaf of a file, by its dotted path."""
    kinds = {entry.name: _stored_kind(entry, where) for entry in entries}
    kinds |= {name: kind_of(value) for name, value in scalars.items()}
    return kinds | dict.fromkeys(code, Kind(CODE))


def is_under(name: str, prefixes: Sequence[str]) -> bool:
    """Whether a dotted path is one of the prefixes or lies below one."""
    return any(name == prefix or name.startswith(prefix + ".") for prefix in prefixes)


def differences(
    saved: Mapping[str, Kind], leaves: Mapping[str, Any], excluded: Sequence[str]
) -> list[str]:
    """One sentence for each way in which a file and the expected leaves differ."""
    found = []
    for name, leaf in leaves.items():
        expected = kind_of(leaf)
        if name in saved:
            remedy = _remedy(saved[name], expected, leaf)
            if remedy:
                found.append(
                    f"{name}: {saved[name]} in the file, {expected} expected; {remedy}"
                )
        elif not is_under(name, excluded):
            found.append(
                f"{name}: missing in the file, {expected} expected; drop it from "
                f"`like` or save again with it"
            )
    unexpected = [name for name in saved if name not in leaves]
    return found + [
        f"{name}: {saved[name]} in the file, nothing expected; add it to `like` or "
        f"save again without it"
        for name in unexpected
    ]


def _remedy(saved: Kind, expected: Kind, leaf: Any) -> str | None:
    if (saved.shape is None) != (expected.shape is None):
        return "use an array in both places or a Python value in both"
    if saved.shape != expected.shape:
        return "build `like` with the sizes used when saving"
    if saved.type != expected.type:
        return "build `like` with the type used when saving, convert after loading"
    on_device = isinstance(leaf, jax.Array | jax.ShapeDtypeStruct)
    if on_device and not is_key(leaf.dtype) and _is_too_wide(leaf.dtype):
        return "JAX would narrow it; set jax_enable_x64 or give a NumPy array in `like`"
    return None


def _is_too_wide(dtype: Any) -> bool:
    return jax.dtypes.canonicalize_dtype(dtype) != dtype


def place(value: Any, leaf: Any) -> Any:
    """A loaded array in the kind, and with the sharding, of its counterpart."""
    if isinstance(leaf, np.generic):
        return value[()]
    if isinstance(leaf, np.ndarray):
        return value
    # An uncommitted array must stay so, or later computations could not move it.
    if leaf.sharding is None or (isinstance(leaf, jax.Array) and not leaf.committed):
        return jax.device_put(value)
    if leaf.sharding.is_fully_addressable:
        return jax.device_put(value, leaf.sharding)
    return jax.make_array_from_callback(
        leaf.shape, leaf.sharding, lambda index: value[index]
    )
