"""Nested lists, sets, dictionaries and small arrays to hashable values and back."""

from collections.abc import Hashable
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxrig.dtypes import DTYPES


class Frozen(NamedTuple):
    """A frozen container: its kind, and its items in an order that equality keeps."""

    kind: str
    items: tuple[Any, ...]


def is_hashable(value: Any) -> bool:
    """Whether a value, with all that it holds, can be a static argument."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def freeze(value: Any) -> Hashable:
    """A hashable equal of `value`, for use as a static argument; `thaw` reverses it.

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
            f"cannot freeze {kind.__name__} {value!r}: it is not hashable, and no "
            "plain list, tuple, set, dict or array"
        )
    return value


def thaw(value: Any) -> Any:
    """The value that `freeze` was given; dictionaries and sets in a fixed order."""
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


def _ordered(items: Any) -> list[Any]:
    """A stable order for items that need not be comparable with each other."""
    return sorted(items, key=lambda item: (type(item).__name__, repr(item)))
