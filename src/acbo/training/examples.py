"""Examples to learn from, and batches of them as arrays and masks for compiled steps.

Lists of names and sets become arrays outside compiled code. What depends on names alone
is cached, so that repeating a batch costs a look-up.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from acbo.graphs import count_parent_sets, enumerate_possible_parent_sets
from acbo.posterior.distribution import ParentSetPosterior
from acbo.surrogate.encode import pad_rows, row_bucket, variable_bucket
from acbo.surrogate.losses import expert_vector
from acbo.types import CHANNELS, INTERVENED, TARGET, VALUE


@dataclass(frozen=True, eq=False)
class TrainingExample:
    """A data tensor [rows, variables, 3] and the expert's posterior for it."""

    observational_data: Any
    target_variable: str
    variable_order: Sequence[str]
    expert_posterior: ParentSetPosterior
    expert_accuracy: float
    scm_info: Mapping[str, Any] = field(default_factory=dict)
    problem_difficulty: str = "medium"


@dataclass(frozen=True, eq=False)
class TrainingBatch:
    """Examples for one step. Candidates are all sets of up to `max_parent_size`
    variables, or of more where an expert's sets are larger.
    """

    examples: Sequence[TrainingExample]
    max_parent_size: int = 3

    @property
    def batch_size(self) -> int:
        """Return how many examples there are."""
        return len(self.examples)


FLAG = 0.5  # what parts a set flag from an unset one in a data tensor
USUAL_PARENTS = 3  # buckets hold the sets of so many parents, or more where given

ParentSets = Sequence[frozenset[str]]


class Names(NamedTuple):
    """What the columns and the candidate sets of a data set are called."""

    variable_order: tuple[str, ...]
    target_variable: str
    parent_sets: tuple[frozenset[str], ...]


class Example(eqx.Module):
    """One data set in its bucket, and the candidate sets of its target.

    For a model that takes names it has them, and no padding; see `UserModel`.
    """

    values: Float[Array, "*batch n d"]
    intervened: Bool[Array, "*batch n d"]
    row_mask: Bool[Array, "*batch n"]
    var_mask: Bool[Array, "*batch d"]
    target_idx: Int[Array, "*batch"]
    membership: Bool[Array, "*batch k d"]
    set_mask: Bool[Array, "*batch k"]
    names: Names | None = eqx.field(static=True, default=None)


class BatchArrays(eqx.Module):
    """All that a compiled step sees of a batch: arrays of the bucket's shape."""

    example: Example
    expert_probs: Float[Array, "*batch k"]
    expert_accuracies: Float[Array, "*batch"]


def set_bucket(columns: int, largest: int) -> int:
    """Return the sets of a bucket: all of up to 3 parents, or of more if needed."""
    return count_parent_sets(columns, max(largest, USUAL_PARENTS))


def flag_target(data: Any, names: Sequence[str], target: str) -> np.ndarray:
    """Return a data tensor with its target flagged, which tells data from padding."""
    found = np.array(data, np.float32)
    if found.ndim != 3 or found.shape[1:] != (len(names), CHANNELS):
        raise ValueError(
            f"the data has shape {found.shape}; for {len(names)} variables it is "
            f"[rows, {len(names)}, {CHANNELS}]"
        )
    found[..., TARGET] = 0.0
    found[:, list(names).index(target), TARGET] = 1.0
    return found


@functools.lru_cache(maxsize=4096)
def encode_names(
    parent_sets: tuple[frozenset[str], ...],
    variable_order: tuple[str, ...],
    target_variable: str,
    columns: int,
    room: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return `var_mask`, `target_idx`, `membership` and `set_mask` of one example.

    Empty sets after the first one are padding, as some data has it. `room` is the
    number of sets to pad to.
    """
    place = {name: i for i, name in enumerate(variable_order)}
    index = np.asarray(_find_target(target_variable, variable_order), np.int32)
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
        for name in members:
            if name not in place:
                raise ValueError(
                    f"a parent set names {name!r}, not one of {list(place)}"
                )
            membership[row, place[name]] = True
    found = np.arange(columns) < len(variable_order), index, membership, mask
    for array in found:
        array.setflags(write=False)
    return found


def _find_target(target: str, names: Sequence[str]) -> int:
    if target not in names:
        raise ValueError(f"target {target!r} is not one of {list(names)}")
    return list(names).index(target)


def _as_tensors(observational_data: Any) -> np.ndarray:
    data = np.asarray(observational_data, np.float32)
    if data.ndim != 4 or data.shape[-1] != CHANNELS:
        raise ValueError(
            f"observational_data has shape {data.shape}: it is [batch, rows, "
            f"variables, {CHANNELS}]"
        )
    return data


def encode_batch(
    parent_sets: Sequence[ParentSets],
    variable_orders: Sequence[Sequence[str]],
    target_variables: Sequence[str],
    observational_data: Any,
    expert_probs: Any,
    expert_accuracies: Any,
    padded: bool = True,
) -> BatchArrays:
    """Return arrays and masks of a batch, padded to its bucket of sizes unless told
    otherwise.

    Rows that do not flag their target are padding. Nothing that stands in the padding
    reaches the arrays.
    """
    data = _as_tensors(observational_data)
    probs = np.asarray(expert_probs, np.float32)
    rows, columns, room = data.shape[1], data.shape[2], probs.shape[1]
    if padded:
        rows = row_bucket(rows)
        columns = variable_bucket(max(columns, *map(len, variable_orders)))
        largest = max((len(one) for sets in parent_sets for one in sets), default=0)
        room = max(set_bucket(columns, largest), room)
    named = zip(parent_sets, variable_orders, target_variables, strict=True)
    coded = [
        encode_names(tuple(sets), tuple(order), target, columns, room)
        for sets, order, target in named
    ]
    var_mask, target_idx, membership, set_mask = map(np.stack, zip(*coded, strict=True))
    data = np.stack([pad_rows(one, rows, columns) for one in data])
    # The target flag of a row tells data from padding: the six parts carry no mask.
    row_mask = data[np.arange(len(data)), :, target_idx, TARGET] > FLAG
    if not row_mask.any(axis=-1).all():
        raise ValueError(
            "observational_data flags no target in an example: channel "
            f"{TARGET} is 1 in the column of the target"
        )
    cells = row_mask[:, :, None] & var_mask[:, None, :]
    values = np.where(cells, data[..., VALUE], 0.0)
    intervened = (data[..., INTERVENED] > FLAG) & cells
    probs = np.pad(probs, ((0, 0), (0, room - probs.shape[1])))
    masks = row_mask, var_mask, target_idx, membership, set_mask
    example: list[Any] = [jnp.asarray(each) for each in (values, intervened, *masks)]
    labels = np.where(set_mask, probs, 0.0), np.asarray(expert_accuracies, np.float32)
    return BatchArrays(Example(*example), *map(jnp.asarray, labels))


def encode_named(
    parent_sets: Sequence[ParentSets],
    variable_orders: Sequence[Sequence[str]],
    target_variables: Sequence[str],
    observational_data: Any,
    *labels: Any,
) -> tuple[BatchArrays, ...]:
    """Return the examples of a batch without padding, those of the same names together.

    Takes what `encode_batch` takes.
    """
    data, groups = _as_tensors(observational_data), {}
    probs, accuracies = (np.asarray(each, np.float32) for each in labels)
    every = zip(variable_orders, target_variables, parent_sets, strict=True)
    for i, (order, target, sets) in enumerate(every):
        rows = np.flatnonzero(data[i, :, _find_target(target, order), TARGET] > FLAG)
        # Empty sets after the first one are padding.
        kept = (one for k, one in enumerate(sets) if one or one not in sets[:k])
        names = Names(tuple(order), target, tuple(kept))
        groups.setdefault((names, tuple(rows.tolist())), []).append(i)
    found = []
    for (names, rows), chosen in groups.items():
        order, target, sets = ([each] * len(chosen) for each in names)
        cells = data[np.ix_(chosen, rows, range(len(names.variable_order)))]
        own = probs[chosen][:, : len(names.parent_sets)], accuracies[chosen]
        part = encode_batch(sets, order, target, cells, *own, padded=False)
        found.append(replace(part, example=replace(part.example, names=names)))
    return tuple(found)


@dataclass(frozen=True, eq=False)
class TrainingBatchJAX:
    """A batch padded to its bucket; padded rows, variables and sets are masked.

    Lists of sets and names hold what is really there, in the order of the arrays.
    """

    observational_data: Float[Array, "B N d 3"]
    expert_probs: Float[Array, "B K"]
    expert_accuracies: Float[Array, " B"]
    parent_sets: Sequence[Sequence[frozenset[str]]]
    variable_orders: Sequence[Sequence[str]]
    target_variables: Sequence[str]

    @property
    def batch_size(self) -> int:
        """Return how many examples there are."""
        return self.observational_data.shape[0]

    def as_args(self) -> tuple[Any, Any, Any, Array, Array, Array]:
        """Return the six batch arguments of the compiled step, in its order."""
        names = self.parent_sets, self.variable_orders, self.target_variables
        data = self.observational_data, self.expert_probs, self.expert_accuracies
        return (*names, *data)

    @functools.cached_property
    def arrays(self) -> BatchArrays:
        """Return arrays and masks of the batch: all that compiled code sees of it."""
        return encode_batch(*self.as_args())

    @property
    def row_mask(self) -> Bool[Array, "B N"]:
        """Return which rows are data."""
        return self.arrays.example.row_mask

    @property
    def var_mask(self) -> Bool[Array, "B d"]:
        """Return which columns are variables."""
        return self.arrays.example.var_mask

    @property
    def set_mask(self) -> Bool[Array, "B K"]:
        """Return which sets are candidates."""
        return self.arrays.example.set_mask

    @property
    def target_idx(self) -> Int[Array, " B"]:
        """Return the column of each target."""
        return self.arrays.example.target_idx

    @property
    def membership(self) -> Bool[Array, "B K d"]:
        """Return which variables each candidate set holds."""
        return self.arrays.example.membership


def convert_to_jax_batch(batch: TrainingBatch) -> TrainingBatchJAX:
    """Pad to the bucket and line the experts up with the enumeration of sets."""
    examples = list(batch.examples)
    if not examples:
        raise ValueError("Cannot convert empty batch: it has no examples")
    experts = [e.expert_posterior.parent_set_probs for e in examples]
    sizes = [len(members) for expert in experts for members in expert]
    largest = max(batch.max_parent_size, *sizes)
    columns = variable_bucket(max(len(e.variable_order) for e in examples))
    rows = row_bucket(max(len(e.observational_data) for e in examples))
    sets = [
        enumerate_possible_parent_sets(e.variable_order, e.target_variable, largest)
        for e in examples
    ]
    probs = np.zeros((len(examples), set_bucket(columns, largest)), np.float32)
    for row, expert, candidates in zip(probs, experts, sets, strict=True):
        row[: len(candidates)] = expert_vector(expert, candidates)
    data = [
        flag_target(e.observational_data, e.variable_order, e.target_variable)
        for e in examples
    ]
    return TrainingBatchJAX(
        jnp.asarray(np.stack([pad_rows(each, rows, columns) for each in data])),
        jnp.asarray(probs),
        jnp.asarray([float(e.expert_accuracy) for e in examples]),
        sets,
        [list(e.variable_order) for e in examples],
        [e.target_variable for e in examples],
    )
