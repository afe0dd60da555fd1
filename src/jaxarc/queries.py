"""Questions to a state: sizes, modes, counts and neighboring pairs.

Everything but the sizes and cropped grids works on batches and in compiled functions.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from jaxarc.episode import slot_of
from jaxarc.ops.operations import NUM_OPERATIONS

NONE = -1


class StateQueries:
    """The part of `ArcEnvState` that reads; it has no fields of its own."""

    tasks: Any
    episode: Any
    working_grid: Any
    target_grid: Any
    target_grid_mask: Any
    available_demo_pairs: Any
    available_test_pairs: Any
    demo_completion_status: Any
    test_completion_status: Any
    allowed_operations_mask: Any

    def get_actual_grid_shape(self) -> tuple[int, int]:
        """Height and width of the active area (host only)."""
        height, width = _one(self.episode.canvas.size, 1).tolist()
        return height, width

    def get_actual_working_grid(self) -> Int[Array, "height width"]:
        """The working grid without its padding (host only)."""
        height, width = self.get_actual_grid_shape()
        return self.working_grid[:height, :width]

    def get_actual_target_grid(self) -> Int[Array, "height width"]:
        """The target without its padding; no cells in test mode (host only)."""
        mask = _one(self.target_grid_mask, 2)
        height, width = mask.any(axis=1).sum(), mask.any(axis=0).sum()
        return self.target_grid[:height, :width]

    def is_training_mode(self) -> Bool[Array, "*batch"]:
        """Whether the episode is about demonstrations."""
        return self.episode.episode_mode == 0

    def is_test_mode(self) -> Bool[Array, "*batch"]:
        """Whether the episode is about test pairs."""
        return self.episode.episode_mode == 1

    def get_available_demo_count(self) -> Int[Array, "*batch"]:
        """How many demonstrations there are."""
        return _count(self.available_demo_pairs)

    def get_available_test_count(self) -> Int[Array, "*batch"]:
        """How many test pairs there are."""
        return _count(self.available_test_pairs)

    def get_completed_demo_count(self) -> Int[Array, "*batch"]:
        """How many demonstrations were solved in this episode."""
        return _count(self.demo_completion_status & self.available_demo_pairs)

    def get_completed_test_count(self) -> Int[Array, "*batch"]:
        """How many test pairs were answered correctly in this episode."""
        return _count(self.test_completion_status & self.available_test_pairs)

    def is_current_pair_completed(self) -> Bool[Array, "*batch"]:
        """Whether the pair being worked on was solved in this episode."""
        episode = self.episode
        slot = slot_of(self.tasks, episode.episode_mode, episode.current_example_idx)
        flags = jnp.take_along_axis(episode.completed, slot[..., None], axis=-1)
        return flags[..., 0]

    def is_operation_allowed(self, operation_id: Any) -> Bool[Array, "*batch"]:
        """Whether this state permits an operation; False for numbers out of range."""
        flags = self.allowed_operations_mask
        index = jnp.asarray(operation_id, jnp.int32)
        index = jnp.broadcast_to(index, flags.shape[:-1])
        known = (index >= 0) & (index < NUM_OPERATIONS)
        inside = jnp.clip(index, 0, NUM_OPERATIONS - 1)
        return jnp.take_along_axis(flags, inside[..., None], axis=-1)[..., 0] & known

    def get_next_available_demo_index(self) -> Int[Array, "*batch"]:
        """The demonstration after the current pair, going round; -1 without any."""
        return _neighbor(self, self.get_available_demo_count(), 1)

    def get_prev_available_demo_index(self) -> Int[Array, "*batch"]:
        """The demonstration before the current pair, going round; -1 without any."""
        return _neighbor(self, self.get_available_demo_count(), -1)

    def get_next_available_test_index(self) -> Int[Array, "*batch"]:
        """The test pair after the current pair, going round; -1 without any."""
        return _neighbor(self, self.get_available_test_count(), 1)

    def get_prev_available_test_index(self) -> Int[Array, "*batch"]:
        """The test pair before the current pair, going round; -1 without any."""
        return _neighbor(self, self.get_available_test_count(), -1)

    def get_first_unsolved_demo_index(self) -> Int[Array, "*batch"]:
        """The first demonstration not solved in this episode; -1 if all are."""
        return _first(self.available_demo_pairs & ~self.demo_completion_status)

    def get_first_unsolved_test_index(self) -> Int[Array, "*batch"]:
        """The first test pair not answered correctly yet; -1 if all are."""
        return _first(self.available_test_pairs & ~self.test_completion_status)


def _one(array: Any, rank: int) -> np.ndarray:
    """The values of an array of one state; batches have no one size."""
    if array.ndim != rank:
        raise ValueError(
            "a batch of states has a grid of another size in every row: take one, "
            "jax.tree.map(lambda x: x[i], states)"
        )
    return np.asarray(array)


def _count(flags: Bool[Array, "*batch n"]) -> Int[Array, "*batch"]:
    return jnp.sum(flags, axis=-1, dtype=jnp.int32)


def _neighbor(state: Any, count: Int[Array, "*batch"], step: int) -> Any:
    index = (state.episode.current_example_idx + step) % jnp.maximum(count, 1)
    return jnp.where(count > 0, index, NONE)


def _first(flags: Bool[Array, "*batch n"]) -> Int[Array, "*batch"]:
    found = jnp.argmax(flags, axis=-1).astype(jnp.int32)
    return jnp.where(jnp.any(flags, axis=-1), found, NONE)
