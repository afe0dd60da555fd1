"""Questions about a model's graph, for models and for plain descriptions of them.

A description is anything with `["variables"]`, `["edges"]` and `["mechanisms"]`: a
`NamedSCM`, or a dictionary that may still be wrong.
"""

from collections.abc import Mapping
from typing import Any

from acbo.named.digraph import (
    Edge,
    check_known,
    find_cycle,
    parents_of,
    reached_from,
    sort_names,
)
from acbo.named.model import NamedSCM

Description = NamedSCM | Mapping[str, Any]


def get_variables(scm: Description) -> frozenset[str]:
    """Names of all variables, hidden ones included."""
    return frozenset(scm["variables"])


def get_edges(scm: Description) -> frozenset[Edge]:
    """Pairs (cause, effect)."""
    return frozenset((cause, effect) for cause, effect in scm["edges"])


def get_mechanisms(scm: Description) -> dict[str, Any]:
    """The mechanism of each variable."""
    return dict(scm["mechanisms"])


def get_target(scm: Description) -> str | None:
    """Name of the target, if there is one."""
    return scm["target"]


def get_parents(scm: Description, variable: str) -> frozenset[str]:
    """Direct causes of a variable."""
    check_known(variable, get_variables(scm))
    return frozenset(parents_of(variable, get_edges(scm)))


def get_children(scm: Description, variable: str) -> frozenset[str]:
    """Direct effects of a variable."""
    check_known(variable, get_variables(scm))
    return frozenset(b for a, b in get_edges(scm) if a == variable)


def get_ancestors(scm: Description, variable: str) -> frozenset[str]:
    """Direct and indirect causes of a variable."""
    check_known(variable, get_variables(scm))
    return reached_from(variable, {(b, a) for a, b in get_edges(scm)})


def get_descendants(scm: Description, variable: str) -> frozenset[str]:
    """Direct and indirect effects of a variable."""
    check_known(variable, get_variables(scm))
    return reached_from(variable, get_edges(scm))


def is_cyclic(scm: Description) -> bool:
    """Whether some variable is among its own causes."""
    return bool(find_cycle(sorted(get_variables(scm)), get_edges(scm)))


def topological_sort(scm: Description) -> list[str]:
    """Variables with causes before effects; ValueError naming the cycle if any."""
    return list(sort_names(sorted(get_variables(scm)), get_edges(scm)))


def validate_mechanisms(scm: Description) -> bool:
    """Whether there is exactly one mechanism for each variable."""
    return get_variables(scm) == set(get_mechanisms(scm))


def validate_edge_consistency(scm: Description) -> bool:
    """Whether every edge joins two different known variables."""
    known = get_variables(scm)
    return all(a in known and b in known and a != b for a, b in get_edges(scm))
