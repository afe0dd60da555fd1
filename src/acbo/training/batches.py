"""Batches of examples as the compiled step takes them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from acbo.graphs.parent_sets import enumerate_possible_parent_sets
from acbo.surrogate.encode import row_bucket, variable_bucket
from acbo.surrogate.losses import expert_vector
from acbo.training.codec import BatchArrays, encode_batch, pad_data, set_bucket
from acbo.training.examples import TrainingBatch, TrainingExample
from acbo.types import TARGET


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
    true_sets: Sequence[frozenset[str] | None] | None = None

    @property
    def batch_size(self) -> int:
        """How many examples there are."""
        return self.observational_data.shape[0]

    def as_args(self) -> tuple[Any, Any, Any, Array, Array, Array]:
        """The six batch arguments of the compiled step, in its order."""
        names = self.parent_sets, self.variable_orders, self.target_variables
        data = self.observational_data, self.expert_probs, self.expert_accuracies
        return (*names, *data)

    @cached_property
    def arrays(self) -> BatchArrays:
        """Arrays and masks of the batch: all that compiled code sees of it."""
        return encode_batch(*self.as_args(), true_sets=self.true_sets)

    @property
    def row_mask(self) -> Bool[Array, "B N"]:
        """Which rows are data."""
        return self.arrays.example.row_mask

    @property
    def var_mask(self) -> Bool[Array, "B d"]:
        """Which columns are variables."""
        return self.arrays.example.var_mask

    @property
    def set_mask(self) -> Bool[Array, "B K"]:
        """Which sets are candidates."""
        return self.arrays.example.set_mask

    @property
    def target_idx(self) -> Int[Array, " B"]:
        """The column of each target."""
        return self.arrays.example.target_idx

    @property
    def membership(self) -> Bool[Array, "B K d"]:
        """Which variables each candidate set holds."""
        return self.arrays.example.membership


def convert_to_jax_batch(batch: TrainingBatch) -> TrainingBatchJAX:
    """Pad to the bucket and line the experts up with the enumeration of sets."""
    examples = list(batch.examples)
    if not examples:
        raise ValueError("Cannot convert empty batch: it has no examples")
    largest = _largest_set(batch)
    columns = variable_bucket(max(len(e.variable_order) for e in examples))
    rows = row_bucket(max(len(e.observational_data) for e in examples))
    room = set_bucket(columns, largest)
    sets = [
        enumerate_possible_parent_sets(
            list(e.variable_order), e.target_variable, largest
        )
        for e in examples
    ]
    probs = np.zeros((len(examples), room), np.float32)
    for row, (example, candidates) in enumerate(zip(examples, sets, strict=True)):
        found = expert_vector(example.expert_posterior, candidates)
        probs[row, : len(candidates)] = found
    data = [pad_data(_tensor(e), rows, columns)[0] for e in examples]
    return TrainingBatchJAX(
        jnp.asarray(np.stack(data)),
        jnp.asarray(probs),
        jnp.asarray([float(e.expert_accuracy) for e in examples]),
        sets,
        [list(e.variable_order) for e in examples],
        [e.target_variable for e in examples],
        [e.true_parents for e in examples],
    )


def _largest_set(batch: TrainingBatch) -> int:
    sizes = [
        len(members)
        for example in batch.examples
        for members in example.expert_posterior.parent_set_probs
    ]
    return max(batch.max_parent_size, *sizes)


def _tensor(example: TrainingExample) -> np.ndarray:
    """The data tensor with its target flagged, which tells data from padding."""
    data = np.array(example.observational_data, np.float32)
    d = len(example.variable_order)
    if data.ndim != 3 or data.shape[1] != d:
        raise ValueError(
            f"observational_data has shape {data.shape}; for {d} variables it is "
            f"[rows, {d}, 3]"
        )
    data[..., TARGET] = 0.0
    data[:, list(example.variable_order).index(example.target_variable), TARGET] = 1.0
    return data
