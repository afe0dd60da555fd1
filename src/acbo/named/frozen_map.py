"""A dictionary that cannot change, for values and notes that travel with names."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from jaxrig.static import freeze

V = TypeVar("V")


class FrozenMap(Mapping[str, V]):
    """A read-only copy of a mapping, in its order; equal to any equal mapping."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, V] | Iterable[tuple[str, V]] = ()):
        self._items = dict(items)

    def __getitem__(self, key: str) -> V:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(freeze(dict(self._items)))

    def __repr__(self) -> str:
        return repr(self._items)


def as_float(value: Any, what: str) -> float:
    """A finite number as a Python float; ValueError naming `what` for anything else."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{what} is {value!r}: give a number") from None
    if number - number != 0.0:
        raise ValueError(f"{what} is {number}: give a finite number")
    return number
