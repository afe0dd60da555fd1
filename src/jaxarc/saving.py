"""States on disk: the episode and the identity of its task, never the task itself."""

import dataclasses
import hashlib
import json
import os
import warnings
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxarc.config import JaxArcConfig
from jaxarc.episode import Augmentation, Episode
from jaxarc.tasks.identity import extract_task_id_from_index
from jaxarc.types import JaxArcTask

SCHEMA = "jaxarc.state"
VERSION = 1
_HISTORY = "action_history"


def write_state(
    task: JaxArcTask,
    episode: Episode,
    path: str | os.PathLike[str],
    config: JaxArcConfig | None = None,
) -> Path:
    """Write an episode and which task it is about; only used history is stored."""
    if episode.step_count.ndim:
        raise ValueError(
            "this is a batch of states: save one row, jax.tree.map(lambda x: x[i], "
            "states), or the whole batch with jaxrig.checkpoint.save_tree"
        )
    index = int(task.task_index)
    task_id = extract_task_id_from_index(index)
    if task_id is None:
        raise ValueError(
            "the task of this state has no id (task_index is -1), so that no parser "
            "could find it again: take the task from a parser, or give it an id with "
            "create_jax_task_index"
        )
    shown = episode.augmentation
    arrays: dict[str, Any] = {
        name: value
        for name, value in vars(episode).items()
        if isinstance(value, jax.Array | np.ndarray)
    } | ({} if shown is None else vars(shown))
    records, shrunk = _pack_history(np.asarray(arrays.pop(_HISTORY)))
    metadata = {
        "schema": SCHEMA,
        "version": VERSION,
        "task_id": task_id,
        "task_index": index,
        "task_checksum": task_checksum(task),
        "dataset_name": config.dataset.dataset_name if config else None,
        "task_split": config.dataset.task_split if config else None,
        "config_hash": config_hash(config) if config else None,
        "grid_shape": list(task.get_grid_shape()),
        "slots": episode.slots,
        "history": {"shape": list(episode.action_history.shape), "dtype": shrunk},
    }
    # Imported only here: it brings progress bars, which a step does not need.
    from jaxrig.checkpoint import save_tree

    return save_tree(path, {**arrays, _HISTORY: records}, metadata=metadata)


def read_state(
    path: str | os.PathLike[str], parser: Any, config: JaxArcConfig | None = None
) -> tuple[JaxArcTask, Episode]:
    """Read task and episode of a file; the parser has the task, by its id."""
    from jaxrig.checkpoint import load_tree, read_header

    header = read_header(path)
    about = header["metadata"]
    if about.get("schema") != SCHEMA or about.get("version") != VERSION:
        raise ValueError(
            f"{os.fspath(path)} does not contain a state that this version can read "
            "(schema "
            f"{about.get('schema')!r}, version {about.get('version')!r}; wanted "
            f"{SCHEMA!r}, {VERSION}): write states with state.save"
        )
    task = _find_task(about, parser, path)
    if config and about["config_hash"] not in (None, config_hash(config)):
        warnings.warn(
            f"{os.fspath(path)} was saved with a different configuration: the episode "
            "may continue differently",
            stacklevel=3,
        )
    like = {
        name: jax.ShapeDtypeStruct(tuple(leaf["shape"]), np.dtype(leaf["type"]))
        for name, leaf in header["leaves"].items()
    }
    arrays = load_tree(path, like)
    arrays[_HISTORY] = _unpack_history(arrays[_HISTORY], about["history"])
    shown = [arrays.pop(name, None) for name in ("symmetry", "permutation")]
    augmentation = None if shown[0] is None else Augmentation(*shown)
    width, slots = task.width, about["slots"]
    return task, Episode(**arrays, augmentation=augmentation, width=width, slots=slots)


def task_checksum(task: JaxArcTask) -> int:
    """Return a number that tells tasks apart by their grids and how they are padded."""
    parts = (task.pairs, task.sizes, task.num_train_pairs, task.num_test_pairs)
    content = b"".join(np.ascontiguousarray(part).tobytes() for part in parts)
    return zlib.crc32(content)


def config_hash(config: JaxArcConfig) -> str:
    """Return a short name for a configuration, the same in every process."""
    text = json.dumps(dataclasses.asdict(config), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _find_task(about: Mapping[str, Any], parser: Any, path: Any) -> JaxArcTask:
    task_id, where = about["task_id"], os.fspath(path)
    task = parser.get_task_by_id(task_id)
    if list(task.get_grid_shape()) != about["grid_shape"]:
        raise ValueError(
            f"{where}: task {task_id!r} was padded to {about['grid_shape']}, the "
            f"parser pads it to {list(task.get_grid_shape())}: use the DatasetConfig "
            "that the state was made with"
        )
    if task_checksum(task) != about["task_checksum"]:
        raise ValueError(
            f"{where}: the parser's task {task_id!r} is not the one the state was "
            f"made with (data set {about['dataset_name']!r}, split "
            f"{about['task_split']!r}): use that data set and the same DatasetConfig"
        )
    return task


def _pack_history(records: np.ndarray) -> tuple[np.ndarray, str]:
    """Return the rows in use, a field after the other, compressed; and their type.

    Records hold whole numbers unless someone added others; only what survives the
    way to a small integer and back, bit for bit, is stored as one.
    """
    used = np.flatnonzero(records.view(np.uint32).any(axis=1))
    kept = records[: used[-1] + 1 if used.size else 0]
    for name in ("int8", "int16"):
        with np.errstate(invalid="ignore"):
            small = kept.astype(name)
        if small.astype(np.float32).tobytes() == kept.tobytes():
            kept = small
            break
    # Field by field: neighbors are then alike, which deflate rewards.
    packed = zlib.compress(np.ascontiguousarray(kept.T).tobytes(), 9)
    return np.frombuffer(packed, np.uint8), kept.dtype.name


def _unpack_history(packed: Any, about: Mapping[str, Any]) -> jax.Array:
    room, fields = about["shape"]
    columns = np.frombuffer(
        zlib.decompress(np.asarray(packed).tobytes()), about["dtype"]
    )
    records = np.zeros((room, fields), np.float32)
    if columns.size:
        rows = columns.reshape(fields, -1).T
        records[: len(rows)] = rows
    return jnp.asarray(records)
