"""Directed graphs over names: causes first, cycles by name, and who reaches whom."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

Edge = tuple[str, str]


def check_names(names: Sequence[Any], what: str = "variable") -> tuple[str, ...]:
    """The names as a tuple; ValueError for an empty or a repeated one."""
    for name in names:
        if not isinstance(name, str) or not name:
            raise ValueError(f"{what} {name!r} is no name: give a non-empty string")
    repeated = sorted({name for name in names if list(names).count(name) > 1})
    if repeated:
        raise ValueError(f"{what} {repeated[0]!r} is given twice: names must differ")
    return tuple(names)


def check_known(name: str, names: Collection[str], what: str = "variable") -> None:
    """ValueError unless the name is one of `names`, which the message lists."""
    if name not in names:
        raise ValueError(f"{what} {name!r} is not one of: {', '.join(sorted(names))}")


def check_edges(names: Collection[str], edges: Iterable[Any]) -> frozenset[Edge]:
    """The edges as a set; ValueError where one names an unknown variable."""
    found = []
    for edge in edges:
        if isinstance(edge, str) or len(edge) != 2:
            raise ValueError(f"edge {edge!r} is not a pair (cause, effect)")
        for end in edge:
            check_known(end, names, f"edge {tuple(edge)!r}: variable")
        found.append((edge[0], edge[1]))
    return frozenset(found)


def parents_of(name: str, edges: Iterable[Edge]) -> tuple[str, ...]:
    """Direct causes of a variable, sorted by name."""
    return tuple(sorted(cause for cause, effect in edges if effect == name))


def reached_from(name: str, edges: Collection[Edge]) -> frozenset[str]:
    """Everything that a directed path from `name` leads to."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        here = waiting.pop()
        fresh = {effect for cause, effect in edges if cause == here} - found
        found |= fresh
        waiting.extend(fresh)
    return frozenset(found)


def sort_names(names: Sequence[str], edges: Collection[Edge]) -> tuple[str, ...]:
    """Causes before effects, otherwise in the given order; ValueError for a cycle."""
    causes = {name: set(parents_of(name, edges)) for name in names}
    left = dict.fromkeys(names)
    placed: list[str] = []
    while left:
        free = next((n for n in left if causes[n].isdisjoint(left)), None)
        if free is None:
            raise ValueError(
                f"the graph has a cycle: {' -> '.join(find_cycle(names, edges))}; "
                "remove one of its edges"
            )
        placed.append(free)
        del left[free]
    return tuple(placed)


def find_cycle(names: Sequence[str], edges: Collection[Edge]) -> tuple[str, ...]:
    """The variables of one cycle, the first repeated at the end; () if there is none.

    Variables without a cause are left out first, again and again, so that walking from
    effect to cause must come back to where it was.
    """
    causes = {name: parents_of(name, edges) for name in names}
    left = set(names)
    while free := {n for n in left if left.isdisjoint(causes[n])}:
        left -= free
    if not left:
        return ()
    walk = [min(left)]
    while True:
        cause = next(c for c in causes[walk[-1]] if c in left)
        if cause in walk:
            return tuple(reversed([*walk[walk.index(cause) :], cause]))
        walk.append(cause)
