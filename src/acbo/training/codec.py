"""From lists of names and sets to padded arrays and masks, outside compiled code.

What depends on names alone is cached, so that repeating a batch costs a look-up.
"""

import functools
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from acbo.graphs.parent_sets import count_parent_sets
from acbo.surrogate.encode import row_bucket, variable_bucket
from acbo.types import CHANNELS, INTERVENED, TARGET, VALUE

FLAG = 0.5  # what parts a set flag from an unset one in a data tensor
UNKNOWN = -1  # index of a true set that nobody told
USUAL_PARENTS = 3  # buckets hold the sets of so many parents, or more where given

ParentSets = Sequence[frozenset[str]]


class Example(eqx.Module):
    """One data set in its bucket, and the candidate sets of its target."""

    values: Float[Array, "*batch n d"]
    intervened: Bool[Array, "*batch n d"]
    row_mask: Bool[Array, "*batch n"]
    var_mask: Bool[Array, "*batch d"]
    target_idx: Int[Array, "*batch"]
    membership: Bool[Array, "*batch k d"]
    set_mask: Bool[Array, "*batch k"]


class BatchArrays(eqx.Module):
    """All that a compiled step sees of a batch: arrays of the bucket's shape."""

    example: Example
    expert_probs: Float[Array, "*batch k"]
    expert_accuracies: Float[Array, "*batch"]
    true_index: Int[Array, "*batch"]


def set_bucket(columns: int, largest: int) -> int:
    """Room for the sets of a bucket: all of up to 3 parents, or of more if needed."""
    return count_parent_sets(columns, max(largest, USUAL_PARENTS))


def pad_data(
    data: np.ndarray, rows: int, columns: int
) -> tuple[np.ndarray, np.ndarray]:
    """A data tensor with room for so many rows and columns, and which rows are data."""
    missing = [(0, rows - data.shape[0]), (0, columns - data.shape[1]), (0, 0)]
    return np.pad(data, missing), np.arange(rows) < len(data)


@functools.lru_cache(maxsize=4096)
def encode_names(
    parent_sets: tuple[frozenset[str], ...],
    variable_order: tuple[str, ...],
    target_variable: str,
    columns: int,
    room: int | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """`var_mask`, `target_idx`, `membership` and `set_mask` of one example.

    Empty sets after the first one are padding, as some data has it. `room` is the
    number of sets to pad to, None for the bucket's.
    """
    place = {name: i for i, name in enumerate(variable_order)}
    if target_variable not in place:
        raise ValueError(
            f"target {target_variable!r} is not one of {list(variable_order)}"
        )
    if room is None:
        room = set_bucket(columns, max(map(len, parent_sets), default=0))
    membership, mask = np.zeros((room, columns), bool), np.zeros(room, bool)
    seen: set[frozenset[str]] = set()
    for row, members in enumerate(parent_sets):
        if not members and members in seen:
            continue
        if members in seen or target_variable in members:
            raise ValueError(
                f"the set {sorted(members)} is listed twice or holds the target "
                f"{target_variable!r}: list each candidate once"
            )
        seen.add(members)
        mask[row] = True
        membership[row, [_place(place, name) for name in members]] = True
    index = np.asarray(place[target_variable], np.int32)
    found = np.arange(columns) < len(variable_order), index, membership, mask
    for array in found:
        array.setflags(write=False)
    return found


def _place(place: dict[str, int], name: str) -> int:
    if name not in place:
        raise ValueError(f"a parent set names {name!r}, not one of {list(place)}")
    return place[name]


def encode_batch(
    parent_sets: Sequence[ParentSets],
    variable_orders: Sequence[Sequence[str]],
    target_variables: Sequence[str],
    observational_data: Any,
    expert_probs: Any,
    expert_accuracies: Any,
    true_sets: Sequence[frozenset[str] | None] | None = None,
) -> BatchArrays:
    """Arrays and masks of a batch, padded to its bucket of rows, variables and sets.

    Rows that flag no target are padding.
    """
    data = np.asarray(observational_data, np.float32)
    if data.ndim != 4 or data.shape[-1] != CHANNELS:
        raise ValueError(
            f"observational_data has shape {data.shape}: it is [batch, rows, "
            f"variables, {CHANNELS}]"
        )
    columns = variable_bucket(max(data.shape[2], *map(len, variable_orders)))
    largest = max((len(one) for sets in parent_sets for one in sets), default=0)
    probs = np.asarray(expert_probs, np.float32)
    room = max(set_bucket(columns, largest), probs.shape[1])
    coded = [
        encode_names(tuple(sets), tuple(order), target, columns, room)
        for sets, order, target in zip(
            parent_sets, variable_orders, target_variables, strict=True
        )
    ]
    padded = np.stack(
        [pad_data(one, row_bucket(data.shape[1]), columns)[0] for one in data]
    )
    row_mask = (padded[..., TARGET] > FLAG).any(axis=-1)
    if not row_mask.any(axis=-1).all():
        raise ValueError(
            "observational_data flags no target in an example: channel "
            f"{TARGET} is 1 in the column of the target"
        )
    var_mask, target_idx, membership, set_mask = (
        jnp.asarray(np.stack(part)) for part in zip(*coded, strict=True)
    )
    example = Example(
        jnp.asarray(padded[..., VALUE]),
        jnp.asarray(padded[..., INTERVENED] > FLAG),
        jnp.asarray(row_mask),
        *(var_mask, target_idx, membership, set_mask),
    )
    probs = np.pad(probs, ((0, 0), (0, room - probs.shape[1])))
    accuracies = jnp.asarray(expert_accuracies, jnp.float32)
    places = true_places(parent_sets, true_sets)
    return BatchArrays(example, jnp.asarray(probs), accuracies, jnp.asarray(places))


def true_places(
    parent_sets: Sequence[ParentSets],
    true_sets: Sequence[frozenset[str] | None] | None,
) -> np.ndarray:
    """Where each example's true set is in its list; -1 where it is unknown or not."""
    known = [None] * len(parent_sets) if true_sets is None else true_sets
    found = [
        UNKNOWN if truth is None or truth not in sets else list(sets).index(truth)
        for sets, truth in zip(parent_sets, known, strict=True)
    ]
    return np.asarray(found, np.int32)
