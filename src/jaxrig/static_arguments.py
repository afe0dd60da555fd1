"""What is static in a call: hashable values, and the signature of all arguments.

`freeze` makes nested data hashable; a `Signature` says what a function was traced for,
and `changes` how a later call differs from it.
"""

import dataclasses
import inspect
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxrig.dtypes import DTYPES


class Frozen(NamedTuple):
    """A frozen container: its kind, and its items in an order that equality keeps."""

    kind: str
    items: tuple[Any, ...]


def is_hashable(value: Any) -> bool:
    """Return whether a value, with all that it holds, can be a static argument."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def freeze(value: Any) -> Hashable:
    """Return a hashable equal of `value`, to be static; `thaw` reverses it.

    >>> freeze([{"b", "a"}]) == freeze([{"a", "b"}])
    True
    """
    kind = type(value)
    if kind in (list, tuple):
        return Frozen(kind.__name__, tuple(freeze(x) for x in value))
    if kind in (set, frozenset):
        return Frozen(kind.__name__, tuple(_ordered(map(freeze, value))))
    if kind is dict:
        pairs = [(freeze(k), freeze(v)) for k, v in value.items()]
        return Frozen("dict", tuple(_ordered(pairs)))
    if isinstance(value, np.ndarray | jax.Array):
        array = np.asarray(value)
        if array.dtype.name not in DTYPES:
            raise TypeError(f"cannot freeze an array of dtype {array.dtype}")
        return Frozen("array", (array.dtype.name, array.shape, array.tobytes()))
    if not is_hashable(value):
        raise TypeError(
            f"cannot freeze {kind.__name__} {value!r}: it is neither hashable nor "
            "a plain list, tuple, set, dict or array"
        )
    return value


def thaw(value: Any) -> Any:
    """Return what `freeze` was given; dictionaries and sets in a fixed order."""
    if not isinstance(value, Frozen):
        return value
    kind, items = value
    if kind == "array":
        dtype, shape, data = items
        return np.frombuffer(data, DTYPES[dtype]).reshape(shape).copy()
    if kind == "dict":
        return {thaw(k): thaw(v) for k, v in items}
    make = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}[kind]
    return make(thaw(x) for x in items)


def _ordered(items: Iterable[Any]) -> list[Any]:
    """Return a stable order for items that need not be comparable with each other."""
    return sorted(items, key=lambda item: (type(item).__name__, repr(item)))


ARRAY_TYPES = (jax.Array, np.ndarray, np.generic, jax.ShapeDtypeStruct)


@dataclass(frozen=True)
class ArrayLeaf:
    """A traced leaf: what the compiler knows of it."""

    shape: tuple[int, ...]
    dtype: str
    weak: bool

    def __str__(self) -> str:
        sizes = ",".join(map(str, self.shape))
        return f"{self.dtype}[{sizes}]" + (" (weakly typed)" if self.weak else "")


@dataclass(frozen=True)
class StaticLeaf:
    """A leaf that is part of the program: compared by type and value."""

    type: type
    value: Any

    def __str__(self) -> str:
        text = repr(self.value)
        return f"static {text if len(text) <= 80 else text[:77] + '...'}"


@dataclass(frozen=True)
class Signature:
    """Every leaf of a call by its path, and the containers of each argument."""

    leaves: Mapping[str, ArrayLeaf | StaticLeaf]
    containers: Mapping[str, Any]


def leaf_of(value: Any) -> ArrayLeaf | StaticLeaf:
    """Return what tracing sees of one leaf."""
    if isinstance(value, ARRAY_TYPES):
        weak = bool(getattr(value, "weak_type", False))
        return ArrayLeaf(tuple(value.shape), str(value.dtype), weak)
    return StaticLeaf(type(value), value)


def path_of(name: str, path: Sequence[Any]) -> str:
    """Return a leaf's path as a user writes it: `state.grid`, `batch['x'][0]`."""
    return name + jax.tree_util.keystr(tuple(path))


def signature_of(
    parameters: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Signature:
    """Return the signature of one call."""
    arguments = parameters.bind(*args, **kwargs).arguments
    leaves, containers = {}, {}
    for name, value in arguments.items():
        found, containers[name] = jax.tree_util.tree_flatten_with_path(value)
        leaves |= {path_of(name, path): leaf_of(leaf) for path, leaf in found}
    return Signature(leaves, containers)


def changes(before: Signature, after: Signature) -> list[str]:
    """Return one line per leaf or container that differs, each with its remedy."""
    lines = []
    old_leaves, new_leaves = _fields(before.leaves), _fields(after.leaves)
    for path in dict.fromkeys([*old_leaves, *new_leaves]):
        old, new = old_leaves.get(path), new_leaves.get(path)
        if old != new:
            lines.append(
                f"{path}: {old or 'absent'} -> {new or 'absent'}\n"
                f"    {_remedy(old, new)}"
            )
    for name in dict.fromkeys([*before.containers, *after.containers]):
        old, new = before.containers.get(name), after.containers.get(name)
        if old != new and not any(line.startswith(name) for line in lines):
            lines.append(
                f"{name}: {old} -> {new}\n    Keep one tree structure: the same "
                "classes, static fields, containers and Nones."
            )
    return lines


def _fields(
    leaves: Mapping[str, ArrayLeaf | StaticLeaf],
) -> dict[str, ArrayLeaf | StaticLeaf]:
    """Yield the fields of static dataclasses, such as configurations."""
    found = {}
    for path, leaf in leaves.items():
        if isinstance(leaf, StaticLeaf) and dataclasses.is_dataclass(leaf.value):
            inner = {
                f"{path}.{field.name}": leaf_of(getattr(leaf.value, field.name))
                for field in dataclasses.fields(leaf.value)
            }
            found |= _fields(inner)
        else:
            found[path] = leaf
    return found


def _remedy(
    old: ArrayLeaf | StaticLeaf | None, new: ArrayLeaf | StaticLeaf | None
) -> str:
    if old is None or new is None:
        return "Keep one tree structure: fill what is absent, mask what is unused."
    if isinstance(old, StaticLeaf) and isinstance(new, StaticLeaf):
        return _static_remedy(new)
    if isinstance(old, StaticLeaf) or isinstance(new, StaticLeaf):
        return "Pass an array every time: jnp.asarray(value)."
    if old.shape != new.shape:
        return "Pad to one shape; jaxrig.batching does so for the end of a long axis."
    if old.dtype != new.dtype:
        return f"Cast at the boundary: jnp.asarray(value, jnp.{old.dtype})."
    return "Give literals a dtype: jnp.asarray(value, dtype) is never weakly typed."


def _static_remedy(leaf: StaticLeaf) -> str:
    if leaf.value != leaf.value:
        return "NaN equals nothing, so it is new every time; pass jnp.asarray(value)."
    if isinstance(leaf.value, int | float | complex):
        return "What is not an array is static; if it varies, pass jnp.asarray(value)."
    if callable(leaf.value):
        return "Define the function once, outside the loop that calls this."
    return "What is not an array is part of the program: keep it the same."
