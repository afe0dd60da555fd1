"""The documented doorway to the functional interface: reset, step, batches of them.

`reset` and `step` are those of the environment object: parameters, state and time step.
"""

from jaxarc.envs.batching import (
    analyze_batch_performance,
    create_batch_episode_runner,
    create_batch_keys,
    ensure_deterministic_batch_keys,
    group_keys,
    split_key_for_batch_step,
    validate_batch_keys,
)
from jaxarc.envs.environment import reset, step
from jaxarc.envs.observation import create_observation
from jaxarc.envs.stepping import (
    _reset,
    _reset_batch,
    _step,
    _step_batch,
    arc_reset,
    arc_step,
    batch_reset,
    batch_step,
    draw_start,
    observe,
)

__all__ = [
    "_reset",
    "_reset_batch",
    "_step",
    "_step_batch",
    "analyze_batch_performance",
    "arc_reset",
    "arc_step",
    "batch_reset",
    "batch_step",
    "create_batch_episode_runner",
    "create_batch_keys",
    "create_observation",
    "draw_start",
    "ensure_deterministic_batch_keys",
    "group_keys",
    "observe",
    "reset",
    "split_key_for_batch_step",
    "step",
    "validate_batch_keys",
]
