"""Checks of arguments, actions and states, before anything compiles where possible."""

import dataclasses
import logging
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool

from jaxarc.actions import BboxAction, MaskAction, PointAction, as_int32
from jaxarc.config import ConfigValidationError, JaxArcConfig
from jaxarc.envs.direct_calls import fields_of
from jaxarc.episode import Augmentation, is_stack
from jaxarc.ops.operations import NUM_OPERATIONS
from jaxarc.tasks.augment import check_augmentation
from jaxarc.tasks.identity import registered_id
from jaxarc.tasks.samples import create_demo_task
from jaxarc.types import JaxArcTask, is_traced
from jaxrig.checks import CheckError, get_error_mode
from jaxrig.settings import nearest

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
        "an action is a PointAction, a BboxAction or a MaskAction, not a "
        f"{type(action).__name__}{': ' + hint if hint else ''}; import them from "
        "jaxarc.envs.structured_actions"
    )


def check_mask_shape(action: Any, config: JaxArcConfig) -> None:
    """Refuse a mask that has not the configured shape; shapes are always known."""
    cells = fields_of(action).get("selection")
    wanted = (config.dataset.max_grid_height, config.dataset.max_grid_width)
    if cells is not None and cells.shape[-2:] != wanted:
        raise ValueError(
            f"the selection has shape {cells.shape[-2:]}, the configuration "
            f"{wanted} (dataset.max_grid_height and max_grid_width): make them equal"
        )


def check_action_rows(action: Any, states: tuple[int, ...]) -> None:
    """Refuse an action that is not one for every state; shapes are always known."""
    for name, value in fields_of(action).items():
        shape = value.shape[:-2] if name == "selection" else value.shape
        if shape == states:
            continue
        given = f"action.{name} has the batch axes {shape}"
        if states == ():
            raise ValueError(
                f"{given}, and there is one state: to step many, use batch_reset and "
                "batch_step, or Vectorize around an environment"
            )
        raise ValueError(
            f"{given}, and the states {states}: give one action for every state"
        )


def check_count(name: str, many: Any, others: dict[str, Any]) -> None:
    """Refuse arrays without one entry, along the first axis, for every environment."""
    count = np.shape(jax.tree.leaves(many)[0])[:1]
    if count == ():
        raise ValueError(
            f"the {name} of Vectorize have a leading axis, for instance that of "
            "jax.random.split(key, 16), and this is a single one: take the environment "
            "inside"
        )
    for other, given in others.items():
        for shape in map(np.shape, jax.tree.leaves(given)):
            if shape[:1] != count:
                raise ValueError(
                    f"{other} has shape {shape}, and there are {count[0]} {name}: give "
                    "one for each along the first axis"
                )


def ranges(action: Any, config: JaxArcConfig) -> list[tuple[str, Any, int]]:
    """Name, value and exclusive upper bound of every number in an action."""
    height, width = config.dataset.max_grid_height, config.dataset.max_grid_width
    bounds = {"operation": NUM_OPERATIONS, "row": height, "col": width}
    bounds |= {"r1": height, "c1": width, "r2": height, "c2": width}
    fields = fields_of(action).items()
    return [(name, value, bounds[name]) for name, value in fields if name in bounds]


def action_in_range(action: Any, config: JaxArcConfig) -> Bool[Array, "*batch"]:
    """Return whether every number of an action is in range, row by row."""
    fine = [(v >= 0) & (v < bound) for _, v, bound in ranges(action, config)]
    return jnp.all(jnp.stack(fine), axis=0)


def state_in_range(episode: Any) -> Bool[Array, "*batch"]:
    """Return whether the numbers of a state make sense, row by row."""
    similarity, mode = episode.similarity_score, episode.episode_mode
    return (
        (episode.step_count >= 0)
        & (similarity >= 0)
        & (similarity <= 1)
        & ((mode == 0) | (mode == 1))
    )


def out_of_range(numbers: list[tuple[str, Any, int]]) -> str | None:
    """Return what is wrong with concrete actions, with the rows it is wrong in."""
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


logger = logging.getLogger(__name__)


def as_config(config: Any) -> JaxArcConfig:
    """Return a configuration, read from a mapping or DictConfig if need be."""
    if isinstance(config, JaxArcConfig):
        return config
    if isinstance(config, Mapping) or hasattr(config, "_metadata"):
        return JaxArcConfig.from_hydra(config)
    raise TypeError(
        f"the configuration is a {type(config).__name__}: pass a JaxArcConfig, or a "
        "mapping for JaxArcConfig.from_hydra"
    )


def checked_config(config: Any) -> JaxArcConfig:
    """Return a configuration whose rules hold, as environment objects are made of.

    With `environment.strict_validation` off, broken rules are logged and not refused.
    """
    config = as_config(config)
    problems = config.validate()
    if problems and config.environment.strict_validation:
        raise ConfigValidationError("; ".join(problems))
    for problem in problems:
        logger.warning("the configuration is not valid: %s", problem)
    return config


def tasks_or_demo(tasks: Any, config: JaxArcConfig) -> JaxArcTask:
    """Return the task given, or a made-up one of the configured size."""
    if isinstance(tasks, JaxArcTask):
        return tasks
    if tasks is not None:
        raise TypeError(
            f"task_data is a {type(tasks).__name__}: pass a JaxArcTask, for instance "
            "parser.get_task_by_id(...) or stack_task_list([...])"
        )
    height, width = config.dataset.max_grid_height, config.dataset.max_grid_width
    logger.warning("no task given: using a synthetic %dx%d task", height, width)
    return create_demo_task(height, width)


def checked_mode(episode_mode: Any, config: JaxArcConfig) -> int:
    """Return 0 or 1; None takes the configuration's."""
    mode = config.episode.episode_mode if episode_mode is None else episode_mode
    if is_traced(mode) or not isinstance(mode, int | np.integer | jax.Array):
        raise ValueError(f"episode_mode is {mode!r}: it must be 0 (train) or 1 (test)")
    if int(mode) not in (0, 1):
        raise ValueError(
            f"episode_mode is {int(mode)}: it must be 0 (train) or 1 (test)"
        )
    return int(mode)


def count_keys(keys: Any) -> int:
    """Return how many keys there are; one key by itself is refused."""
    if not hasattr(keys, "dtype"):
        raise TypeError(f"keys is a {type(keys).__name__}: join them, jnp.stack(keys)")
    shape = keys.shape
    typed = shape and jnp.issubdtype(keys.dtype, jax.dtypes.prng_key)
    if len(shape) != (1 if typed else 2):
        raise ValueError(
            f"keys has shape {shape}: give one key for every environment, for "
            "instance jax.random.split(key, 16)"
        )
    return shape[0]


def task_ids(tasks: JaxArcTask) -> tuple[str | None, ...]:
    """Return the id of every row of a stack of tasks; None where it has none."""
    if is_traced(tasks.task_index):
        raise TypeError(
            "ids are not known inside a compiled function: find the rows before it, "
            "with env.params.rows_of([...]), and pass them as numbers"
        )
    return tuple(map(registered_id, np.atleast_1d(tasks.task_index).tolist()))


def find_rows(tasks: JaxArcTask, chosen: Any) -> Any:
    """Return tasks chosen by their ids as rows; rows come back as they are."""
    if isinstance(chosen, str):
        return find_rows(tasks, [chosen])[0]
    if not isinstance(chosen, list | tuple) or not all(
        isinstance(name, str) for name in chosen
    ):
        return chosen
    ids = task_ids(tasks)
    rows = {name: row for row, name in reversed(list(enumerate(ids))) if name}
    for name in chosen:
        if name not in rows:
            raise ValueError(
                f"none of the {len(ids)} tasks has the id {name!r}: "
                f"{nearest(name, rows)}"
            )
    return np.asarray([rows[name] for name in chosen], np.int32)


def checked_start(
    tasks: JaxArcTask,
    mode: int,
    row: Any,
    pair: Any,
    names: tuple[str, ...] = ("task", "pair"),
    count: int | None = None,
) -> tuple[Any, Any]:
    """Return row and pair of a start, or one of each for `count` starts, as arrays.

    Arrays, so that another choice compiles nothing. What is known not to exist is
    refused; where it is traced, the first row and pair are taken.
    """
    row = find_rows(tasks, row)
    found = _indices(row, names[0], count), _indices(pair, names[1], count)
    if not is_traced((row, tasks.pairs)) and row is not None:
        many = tasks.pairs.shape[0] if is_stack(tasks) else 1
        _refuse(names[0], row, many, "tasks")
    if pair is not None and not is_traced((pair, row, tasks.num_train_pairs)):
        counts = np.asarray((tasks.num_train_pairs, tasks.num_test_pairs)[mode])
        if row is None:
            # Which task a key will draw is not known, so all must have the pair.
            counts = counts.min()
        elif counts.ndim:
            counts = counts[np.asarray(row)]
        _refuse(names[1], pair, counts, ("demonstration pairs", "test pairs")[mode])
    return found


def check_pairs(tasks: JaxArcTask, mode: int, rows: Any = None) -> None:
    """Refuse known tasks, by default all, without a pair to begin with."""
    counts = (tasks.num_train_pairs, tasks.num_test_pairs)[mode]
    if is_traced((counts, rows)):
        return
    counts = np.atleast_1d(np.asarray(counts))
    chosen = np.arange(len(counts)) if rows is None else np.atleast_1d(rows)
    if not counts[chosen].all():
        raise ValueError(
            f"{('train', 'test')[mode]} mode has no pair of task row "
            f"{chosen[counts[chosen] == 0].tolist()} to begin with: leave these tasks "
            "out, or use the other episode_mode"
        )


def checked_augmentation(
    tasks: JaxArcTask, shown: Augmentation | None, count: int | None = None
) -> Augmentation | None:
    """Return how tasks are to be shown, once for each of `count` starts if given."""
    if shown is None:
        return None
    given = shown.symmetry, shown.permutation
    symmetry, permutation = check_augmentation(*given, tasks.height, tasks.width)
    places = () if count is None else (count,)
    if symmetry.shape not in ((), places):
        raise ValueError(
            f"augmentation.symmetry has shape {symmetry.shape}: give one number, or in "
            "a batch one for each key"
        )
    spread = lambda x, *shape: jnp.broadcast_to(x, (*places, *shape))
    return Augmentation(spread(symmetry), spread(permutation, permutation.shape[-1]))


def _refuse(name: str, index: Any, count: Any, what: str) -> None:
    values = np.asarray(index)
    if np.any((values < 0) | (values >= count)):
        there = np.asarray(count).tolist()
        raise ValueError(f"{name} is {values.tolist()}: there are {there} {what}")


def _indices(index: Any, name: str, count: int | None) -> Any:
    if index is None:
        return None
    index = as_int32(index, name)
    if count is None:
        return index
    if index.shape not in ((), (count,)):
        raise ValueError(
            f"{name} has shape {index.shape}: give one index, or one for each of the "
            f"{count} keys"
        )
    return jnp.broadcast_to(index, (count,))


def validates(config: JaxArcConfig) -> bool:
    """Return whether actions out of range are errors; otherwise they are clipped."""
    return config.action.validate_actions and not config.action.allow_invalid_actions


def as_arrays(action: Any, threshold: float) -> Any:
    """Return an action with int32 numbers and boolean cells, as a step takes it.

    Of a selection of fractions the cells at the threshold and above are selected.
    """
    changed = {}
    for name, value in fields_of(action).items():
        if name == "selection":
            if (given := jnp.asarray(value)).dtype != bool:
                fractions = jnp.issubdtype(given.dtype, jnp.floating)
                given = given >= threshold if fractions else given.astype(bool)
        else:
            given = as_int32(value, name)
        if given is not value:
            changed[name] = given
    return dataclasses.replace(action, **changed) if changed else action


def checked_action(action: Any, config: JaxArcConfig) -> tuple[Any, bool]:
    """Return the action as arrays, and whether its check is left to the compiled step.

    On the host it costs little and names the value; a step compiled without it holds no
    callback and can be kept between processes.
    """
    check_action_kind(action)
    given, action = action, as_arrays(action, config.action.selection_threshold)
    if not validates(config):
        return action, False
    check_mask_shape(action, config)
    numbers = ranges(given, config)
    mode = get_error_mode()
    if mode != "raise" or any(isinstance(value, Tracer) for _, value, _ in numbers):
        return action, mode != "off"
    problem = out_of_range(numbers)
    if problem is not None:
        raise CheckError(problem)
    return action, False
