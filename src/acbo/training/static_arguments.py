"""Lists of parent sets and names as hashable tuples, and back."""

from collections.abc import Iterable, Sequence
from typing import Any

StaticArguments = tuple[tuple[Any, ...], tuple[Any, ...], tuple[str, ...]]


def prepare_static_args(
    parent_sets: Sequence[Sequence[Iterable[str]]],
    variable_orders: Sequence[Sequence[str]],
    target_variables: Sequence[str],
) -> StaticArguments:
    """Every set a sorted tuple, every list a tuple; the order of sets is kept.

    Our compiled steps need none of this: they take arrays. It serves functions of
    one's own that must have names as static arguments.
    """
    return (
        tuple(tuple(tuple(sorted(one)) for one in sets) for sets in parent_sets),
        tuple(tuple(order) for order in variable_orders),
        tuple(target_variables),
    )


def restore_static_args(
    hashable_args: StaticArguments,
) -> tuple[list[list[frozenset[str]]], list[list[str]], list[str]]:
    """What `prepare_static_args` was given, as lists and frozensets."""
    parent_sets, variable_orders, target_variables = hashable_args
    return (
        [[frozenset(one) for one in sets] for sets in parent_sets],
        [list(order) for order in variable_orders],
        list(target_variables),
    )
