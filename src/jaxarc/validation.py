"""What is wrong with an action or a state, on the host and in compiled functions."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool

from jaxarc.actions import BboxAction, MaskAction, PointAction
from jaxarc.ops.names import NUM_OPERATIONS

ACTION_RULE = (
    "an action is out of range: operations are 0 to 41, rows and columns lie inside "
    "dataset.max_grid_height and dataset.max_grid_width; set "
    "action.validate_actions=False to clip instead"
)
STATE_RULE = (
    "the state is inconsistent: step_count must not be negative, similarity_score lies "
    "in [0, 1] and episode_mode is 0 or 1"
)


def check_action_kind(action: Any) -> None:
    """Refuse everything that is no structured action, dictionaries by name."""
    if isinstance(action, PointAction | BboxAction | MaskAction):
        return
    hint = "dictionary actions are not supported" if isinstance(action, dict) else ""
    raise TypeError(
        f"an action is a PointAction, a BboxAction or a MaskAction, not a "
        f"{type(action).__name__}{': ' + hint if hint else ''}; import them from "
        "jaxarc.envs.structured_actions"
    )


def check_mask_shape(action: Any, config: Any) -> None:
    """Refuse a mask that has not the configured shape; shapes are always known."""
    if not isinstance(action, MaskAction):
        return
    wanted = (config.dataset.max_grid_height, config.dataset.max_grid_width)
    if action.selection.shape[-2:] != wanted:
        raise ValueError(
            f"the selection has shape {action.selection.shape[-2:]}, the configuration "
            f"{wanted} (dataset.max_grid_height and max_grid_width): make them equal"
        )


def ranges(action: Any, config: Any) -> list[tuple[str, Any, int]]:
    """Name, value and exclusive upper bound of every number in an action."""
    height, width = config.dataset.max_grid_height, config.dataset.max_grid_width
    bounds = {"operation": NUM_OPERATIONS, "row": height, "col": width}
    bounds |= {"r1": height, "c1": width, "r2": height, "c2": width}
    # Asking a module for a field by its name costs more than a look at all of them.
    fields = vars(action).items()
    return [(name, value, bounds[name]) for name, value in fields if name in bounds]


def action_in_range(action: Any, config: Any) -> Bool[Array, "*batch"]:
    """Whether every number of an action is in range, row by row."""
    fine = [(v >= 0) & (v < bound) for _, v, bound in ranges(action, config)]
    return jnp.all(jnp.stack(fine), axis=0)


def state_in_range(episode: Any) -> Bool[Array, "*batch"]:
    """Whether the numbers of a state make sense, row by row."""
    similarity, mode = episode.similarity_score, episode.episode_mode
    return (
        (episode.step_count >= 0)
        & (similarity >= 0)
        & (similarity <= 1)
        & ((mode == 0) | (mode == 1))
    )


def out_of_range(numbers: list[tuple[str, Any, int]]) -> str | None:
    """What is wrong with concrete actions, with the rows it is wrong in."""
    for name, value, bound in numbers:
        values = np.asarray(value)
        # Plain integers: NumPy's scalar comparisons would cost as much as the step.
        if values.ndim == 0 and 0 <= values.item() < bound:
            continue
        wrong = (values < 0) | (values >= bound)
        if wrong.any():
            where = (
                "" if values.ndim == 0 else f" in rows {_some(np.nonzero(wrong)[0])}"
            )
            shown = values if values.ndim == 0 else _some(values[wrong])
            return (
                f"action.{name} is {shown}{where}: it must be 0 to {bound - 1}; set "
                "action.validate_actions=False to clip instead"
            )
    return None


def _some(values: np.ndarray) -> str:
    shown = ", ".join(map(str, values[:8].tolist()))
    return shown if len(values) <= 8 else f"{shown} and {len(values) - 8} more"


def is_traced(tree: Any) -> bool:
    """Whether any array of a pytree is being traced."""
    if isinstance(tree, jax.Array):
        return isinstance(tree, Tracer)
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(tree))
