"""Documented attributes of a state, changed by name and packed again."""

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxarc import bits
from jaxarc.bits import compiled
from jaxarc.episode import Episode, pack_flags, repack
from jaxarc.ops.canvas import Canvas
from jaxarc.types import JaxArcTask, check_colors, check_content, is_traced, measure

_GRIDS = ("working_grid", "working_grid_mask", "clipboard", "clipboard_mask")
_FLAGS = ("demo_completion_status", "test_completion_status")
_ARRAYS = (
    *("current_example_idx", "episode_mode", "step_count", "episode_done"),
    *("similarity_score", "action_history"),
    *("action_history_length", "action_history_write_pos"),
)
_PACKED = ("selected", "allowed_operations_mask")
_REPLACEABLE = (*_GRIDS, *_FLAGS, *_ARRAYS, *_PACKED, "task_data")
_DERIVED = (
    *("target_grid", "target_grid_mask", "task_index"),
    *("available_demo_pairs", "available_test_pairs"),
)


def changed_parts(
    state: Any, changes: dict[str, Any]
) -> tuple[JaxArcTask | None, Episode]:
    """Return the new task, if there is one, and the episode with changed attributes."""
    for name in changes:
        _check_name(name)
    values = {
        name: _like(name, value, getattr(state, name))
        for name, value in changes.items()
        if name != "task_data"
    }
    parts = {name: values[name] for name in _ARRAYS if name in values}
    task = changes.get("task_data")
    if task is not None:
        _check_task(state.tasks, task)
        parts["task_row"] = jnp.zeros_like(state.episode.task_row)
    if "selected" in values:
        parts["selection"] = bits.pack_rows(values["selected"])
    if "allowed_operations_mask" in values:
        parts["allowed"] = pack_flags(values["allowed_operations_mask"])
    if not values.keys().isdisjoint(_FLAGS):
        present = {name: getattr(state, name) for name in _FLAGS}
        flags = [(present | values)[name] for name in _FLAGS]
        parts["completed"] = jnp.concatenate(flags, axis=-1)
    return task, repack(state.episode, _canvas(state, values), **parts)


def _check_name(name: str) -> None:
    if name in _DERIVED:
        raise TypeError(
            f"{name} cannot be replaced: it follows from task_data, episode_mode and "
            "current_example_idx, replace those"
        )
    if name not in _REPLACEABLE:
        raise TypeError(
            f"a state has no attribute {name!r} to replace; there are "
            f"{', '.join(sorted(_REPLACEABLE))}"
        )


def _like(name: str, value: Any, present: Array) -> Array:
    """Return a value in the type and shape of the present one; scalars fill it."""
    value = jnp.asarray(value, present.dtype)
    if value.shape not in ((), present.shape):
        raise ValueError(
            f"{name} has shape {value.shape}, the state's {present.shape}: give one of "
            "that shape, or a single number"
        )
    return jnp.broadcast_to(value, present.shape)


def _check_task(tasks: JaxArcTask, task: JaxArcTask) -> None:
    shape = tasks.pairs.shape[-4:]
    same = (task.width, task.max_train_pairs) == (tasks.width, tasks.max_train_pairs)
    if task.pairs.shape != shape or not same:
        raise ValueError(
            f"task_data is packed as {task.pairs.shape}, the state's task as {shape}: "
            "load both with the same DatasetConfig, or reset on the other task"
        )


def _canvas(state: Any, values: dict[str, Array]) -> Canvas:
    canvas = state.episode.canvas
    if "working_grid" in values or "working_grid_mask" in values:
        planes, size = _working(state, values)
        canvas = replace(canvas, planes=planes, size=size)
    if "clipboard" in values or "clipboard_mask" in values:
        clipboard, origin = _clipboard(state, values)
        canvas = replace(canvas, clipboard=clipboard, origin=origin)
    return canvas


def _working(state: Any, values: dict[str, Array]) -> tuple[Array, Array]:
    """Return planes and size; cells that a wider mask uncovers are black."""
    grid = values.get("working_grid", jnp.maximum(state.working_grid, 0))
    mask = values.get("working_grid_mask", grid >= 0)
    size = jnp.stack(measure(mask), axis=-1).astype(jnp.int32)
    if not is_traced((grid, mask)):
        check_content("working_grid", *map(np.asarray, (grid, mask)))
        if not np.all(size):
            raise ValueError("working_grid is empty, not a filled rectangle of cells")
    return _packed(grid, mask), size


def _clipboard(state: Any, values: dict[str, Array]) -> tuple[Array, Array]:
    """Return layers and corner of the content: without a mask, all colors but 0."""
    grid = jnp.asarray(values.get("clipboard", state.clipboard))
    mask = values.get("clipboard_mask", grid > 0)
    if not is_traced((grid, mask)):
        check_colors("clipboard", *map(np.asarray, (grid, mask)))
    return _content(grid, mask)


@compiled
def _packed(grid: Array, mask: Array) -> Array:
    return bits.pack_grid(jnp.where(mask, grid, bits.PADDING))


@compiled
def _content(grid: Array, mask: Array) -> tuple[Array, Array]:
    planes = _packed(grid, mask)
    layers = jnp.concatenate([planes, bits.pack_rows(mask)[..., None, :]], axis=-2)
    corner = [jnp.argmax(jnp.any(mask, axis=axis), axis=-1) for axis in (-1, -2)]
    return layers, jnp.stack(corner, axis=-1).astype(jnp.int32)
