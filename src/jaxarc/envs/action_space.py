"""Which operations a state allows, asked from outside a step."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jaxarc.config import ActionConfig, JaxArcConfig
from jaxarc.envs.filtering import allowed_words, filter_operation
from jaxarc.episode import unpack_flags
from jaxarc.ops.names import NUM_OPERATIONS
from jaxarc.pairs import pair_counts
from jaxarc.state import ArcEnvState


class ActionSpaceController:
    """The rules that `arc_step` applies to operations, for one state at a time."""

    @staticmethod
    def get_allowed_operations(
        state: ArcEnvState, action_config: ActionConfig
    ) -> Bool[Array, " operations"]:
        """What state, configuration and moment allow, one truth per operation."""
        return unpack_flags(_allowed(state, action_config), NUM_OPERATIONS)

    @staticmethod
    def filter_invalid_operation(
        operation_id: Any, state: ArcEnvState, action_config: ActionConfig
    ) -> Int[Array, ""]:
        """The operation that would run; -1 where the policy rejects this one."""
        operation = jnp.asarray(operation_id, jnp.int32)
        allowed = _allowed(state, action_config)
        policy = action_config.invalid_operation_policy
        return filter_operation(operation, allowed, policy)[0]


def _allowed(state: ArcEnvState, action_config: ActionConfig) -> Array:
    episode = state.episode
    return allowed_words(
        episode.allowed,
        episode.episode_mode,
        episode.step_count,
        *pair_counts(state.tasks, episode.task_row),
        JaxArcConfig(action=action_config),
    )
