"""Names outside compiled code: what a name may be, and directed graphs over names."""

import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeVar

from acbo.types import check_known
from jaxrig.settings import nearest
from jaxrig.static_arguments import freeze

Edge = tuple[str, str]  # (cause, effect)
V = TypeVar("V")


def check_names(names: Sequence[Any], what: str = "variable") -> tuple[str, ...]:
    """Return the names as a tuple; ValueError for an empty or a repeated one."""
    for name in names:
        if not isinstance(name, str) or not name:
            raise ValueError(
                f"{what} {name!r} is not a valid name: pass a non-empty string"
            )
    repeated = sorted({name for name in names if list(names).count(name) > 1})
    if repeated:
        raise ValueError(f"{what} {repeated[0]!r} is a duplicate: names must be unique")
    return tuple(names)


def check_edges(names: Collection[str], edges: Iterable[Any]) -> frozenset[Edge]:
    """Return the edges as a set; ValueError where one names an unknown variable."""
    found = []
    for edge in edges:
        if isinstance(edge, str) or len(edge) != 2:
            raise ValueError(f"edge {edge!r} is not a pair (cause, effect)")
        for end in edge:
            check_known(end, names, f"edge {tuple(edge)!r}: variable")
        found.append((edge[0], edge[1]))
    return frozenset(found)


def parents_of(name: str, edges: Iterable[Edge]) -> tuple[str, ...]:
    """Return the direct causes of a variable, sorted by name."""
    return tuple(sorted(cause for cause, effect in edges if effect == name))


def sort_names(names: Sequence[str], edges: Collection[Edge]) -> tuple[str, ...]:
    """Sort causes before effects; ValueError naming a cycle."""
    sorter = TopologicalSorter({name: parents_of(name, edges) for name in names})
    try:
        return tuple(sorter.static_order())
    except CycleError as error:
        raise ValueError(
            f"the graph has a cycle: {' -> '.join(error.args[1])}; remove one of its "
            "edges"
        ) from None


def find_name(name: str, known: Sequence[str], what: str = "variable") -> str:
    """Return the column meant by a name: itself, or the only one that differs from it
    in case, spaces or the unit in brackets.

    >>> find_name("yield", ["Temp (K)", "Yield (%)"])
    'Yield (%)'
    """
    name = str(name)  # frames may have numbers as names
    if name in known:
        return name
    close = [each for each in known if plain_name(each) == plain_name(name)]
    if len(close) != 1:
        # The nearest without units: a short name is far from one with them.
        like = difflib.get_close_matches(plain_name(name), map(plain_name, known), n=1)
        meant = next((each for each in known if plain_name(each) in like), name)
        raise ValueError(f"{what} {name!r} is not known; {nearest(meant, known)}")
    return close[0]


def plain_name(name: str) -> str:
    """Return a name without its unit, in small letters with underscores."""
    bare = re.sub(r"\([^)]*\)|\[[^\]]*\]", "", name) or name
    return re.sub(r"[\s_-]+", "_", bare.strip()).casefold()


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
