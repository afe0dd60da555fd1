"""Which operations would change anything, so that the others can be masked."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxarc.config import JaxArcConfig
from jaxarc.envs.arguments import check_action_kind
from jaxarc.envs.environment import as_action
from jaxarc.envs.episode import advance
from jaxarc.envs.filtering import allowed_words
from jaxarc.envs.params import EnvParams
from jaxarc.episode import Episode, unpack_flags
from jaxarc.ops.names import NUM_OPERATIONS
from jaxarc.ops.names import ARCLEOperationType as Op
from jaxarc.pairs import pair_counts


def useful_operations(
    env_or_params: Any, state: Any, action: Any
) -> Bool[Array, " operations"]:
    """The operations that would change something with this action's selection.

    Exact, by trying all of them: the grid, its size, the clipboard or the pair becomes
    another one. Submit is always useful; what is not allowed never is. The operation of
    the action itself does not matter.
    """
    params, episode = _parts(env_or_params, state)
    action = as_action(action, params.config.action.selection_threshold)
    check_action_kind(action)
    config = _permissive(params.config)

    def one(operation: Int[Array, ""]) -> Bool[Array, ""]:
        tried = dataclasses.replace(action, operation=operation)
        after, _ = advance(params.buffer, episode, tried, config)
        return _differs(episode, after)

    operations = jnp.arange(NUM_OPERATIONS, dtype=jnp.int32)
    changes = jax.vmap(one)(operations) | (operations == Op.SUBMIT)
    return changes & possible_operations(env_or_params, state)


def possible_operations(env_or_params: Any, state: Any) -> Bool[Array, " operations"]:
    """The operations that the rules allow in a state, whatever they would do."""
    params, episode = _parts(env_or_params, state)
    words = allowed_words(
        episode.allowed,
        episode.episode_mode,
        episode.step_count,
        *pair_counts(params.buffer, episode.task_row),
        params.config,
    )
    return unpack_flags(words, NUM_OPERATIONS)


def mask_useless(
    env_or_params: Any,
    state: Any,
    action: Any,
    scores: Float[Array, " scores"],
) -> Float[Array, " scores"]:
    """Scores of operations with minus infinity for those that would change nothing.

    Where nothing is useful, which needs a configuration without Submit, scores are left
    as they are: an agent has to choose something.
    """
    useful = useful_operations(env_or_params, state, action)[: scores.shape[0]]
    useful = useful | ~jnp.any(useful)
    return jnp.where(useful, scores, -jnp.inf)


def _parts(env_or_params: Any, state: Any) -> tuple[EnvParams, Episode]:
    if isinstance(env_or_params, EnvParams):
        return env_or_params, state.episode
    if hasattr(state, "tasks"):
        return env_or_params.params, state.episode
    return env_or_params.params, env_or_params.arc_state(state).episode


def _permissive(config: JaxArcConfig) -> JaxArcConfig:
    """The same rules, with every operation run as it is asked for."""
    rules = dataclasses.replace(config.action, invalid_operation_policy="passthrough")
    return dataclasses.replace(config, action=rules)


def _differs(before: Episode, after: Episode) -> Bool[Array, ""]:
    one, other = before.canvas, after.canvas
    pairs = (
        (one.planes, other.planes),
        (one.size, other.size),
        (one.clipboard, other.clipboard),
        (one.origin, other.origin),
        (before.current_example_idx, after.current_example_idx),
    )
    return jnp.any(jnp.stack([jnp.any(a != b) for a, b in pairs]))
