"""One pair of a task, as an episode sees it."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt

from jaxarc.data.augment import transform_planes
from jaxarc.similarity import similarity
from jaxarc.types import JaxArcTask


class Augmentation(eqx.Module):
    """How the pairs of a task are shown: one of eight symmetries, colors renamed."""

    symmetry: Int[Array, "*batch"]
    permutation: Int[Array, "*batch colors"]


class Pair(eqx.Module):
    """Input and output of a pair, packed."""

    given: UInt[Array, "planes h"]
    given_size: Int[Array, " two"]
    wanted: UInt[Array, "planes h"]
    wanted_size: Int[Array, " two"]


def slot_of(
    tasks: JaxArcTask, mode: Int[Array, "*batch"], index: Int[Array, "*batch"]
) -> Int[Array, "*batch"]:
    """Where a pair lies among demonstrations and tests."""
    return index + jnp.where(mode == 0, 0, tasks.max_train_pairs)


def load_pair(
    tasks: JaxArcTask,
    row: Int[Array, ""],
    slot: Int[Array, ""],
    augmentation: Augmentation | None = None,
) -> Pair:
    """The pair in this slot of a task, or of this row of a stack of tasks."""
    at = (row, slot) if is_stack(tasks) else (slot,)
    planes = tasks.pairs.at[at].get(mode="clip")
    sizes = tasks.sizes.at[at].get(mode="clip")
    given = _shown(planes[0], sizes[0], augmentation, tasks.width)
    wanted = _shown(planes[1], sizes[1], augmentation, tasks.width)
    return Pair(*given, *wanted)


def load_start(
    tasks: JaxArcTask,
    row: Int[Array, ""],
    slot: Int[Array, ""],
    augmentation: Augmentation | None = None,
) -> tuple[UInt[Array, "planes h"], Int[Array, " two"], Float[Array, ""]]:
    """What an episode on a pair begins with: the input, its size, its similarity.

    Similarity is known beforehand, except under an augmentation: a flip moves two grids
    of different sizes against each other.
    """
    if augmentation is not None:
        pair = load_pair(tasks, row, slot, augmentation)
        wanted = (pair.wanted, pair.wanted_size)
        alike = similarity(pair.given, pair.given_size, *wanted)
        return pair.given, pair.given_size, alike
    at = (row, slot) if is_stack(tasks) else (slot,)
    planes = tasks.pairs.at[(*at, 0)].get(mode="clip")
    size = tasks.sizes.at[(*at, 0)].get(mode="clip")
    return planes, size, tasks.start_similarity.at[at].get(mode="clip")


def is_stack(tasks: JaxArcTask) -> bool:
    """Whether these are several tasks and not one."""
    return tasks.pairs.ndim == 5


def _shown(
    planes: UInt[Array, "planes h"],
    size: Int[Array, " two"],
    augmentation: Augmentation | None,
    width: int,
) -> tuple[UInt[Array, "planes h"], Int[Array, " two"]]:
    if augmentation is None:
        return planes, size
    symmetry, permutation = augmentation.symmetry, augmentation.permutation
    return transform_planes(planes, size, symmetry, permutation, width)


def pair_counts(
    tasks: JaxArcTask, row: Int[Array, ""]
) -> tuple[Int[Array, ""], Int[Array, ""]]:
    """How many demonstrations and how many test pairs a task has."""
    if is_stack(tasks):
        take = lambda counts: counts.at[row].get(mode="clip")
        return take(tasks.num_train_pairs), take(tasks.num_test_pairs)
    return tasks.num_train_pairs, tasks.num_test_pairs


def has_answer(pair: Pair) -> Bool[Array, ""]:
    """Whether the output of a pair is known."""
    return pair.wanted_size[0] > 0
