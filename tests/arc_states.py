"""Small tasks, parsers and states that several tests of jaxarc begin with."""

import functools
import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxarc.config import (
    ActionConfig,
    DatasetConfig,
    EnvironmentConfig,
    JaxArcConfig,
)
from jaxarc.envs.functional import arc_reset
from jaxarc.envs.structured_actions import PointAction
from jaxarc.tasks import ArcAgiParser
from jaxarc.types import JaxArcTask

SIDE = 6


def small_config(selection_format="point", steps=8, **groups):
    return JaxArcConfig(
        environment=EnvironmentConfig(max_episode_steps=steps),
        dataset=DatasetConfig(max_grid_height=SIDE, max_grid_width=SIDE),
        action=ActionConfig(selection_format=selection_format),
        **groups,
    )


def small_task(demos=3, tests=2, slots=(4, 2), task_index=-1):
    """Demonstration i paints cell (0, 0) of a black 4x5 grid in color i + 1."""
    arrays = []
    for used, room in zip((demos, tests), slots, strict=True):
        mask = np.zeros((room, SIDE, SIDE), bool)
        mask[:used, :4, :5] = True
        given = np.where(mask, np.int32(0), np.int32(-1))
        wanted = given.copy()
        wanted[:used, 0, 0] = np.arange(1, used + 1)
        arrays += [given, mask, wanted, mask, used]
    return JaxArcTask(*arrays, task_index=task_index)


@functools.cache
def plain_state(mode, pair):
    """Made once: states never change."""
    return arc_reset(jax.random.key(0), small_config(), small_task(), mode, pair)[0]


def small_state(mode=0, pair=0, config=None, task=None):
    if config is None and task is None:
        return plain_state(mode, pair)
    config = config or small_config()
    task = task or small_task()
    return arc_reset(jax.random.key(0), config, task, mode, pair)[0]


def point(operation, row=0, col=0):
    return PointAction(*(jnp.asarray(n, jnp.int32) for n in (operation, row, col)))


def folder_parser(folder, ids=("aa", "bb", "cc"), **dataset):
    """A parser over small task files; the tasks differ by color."""
    target = folder / "data" / "training"
    target.mkdir(parents=True, exist_ok=True)
    for color, task_id in enumerate(ids, start=1):
        given, wanted = np.zeros((4, 5), int), np.full((4, 5), color)
        pair = {"input": given.tolist(), "output": wanted.tolist()}
        text = json.dumps({"train": [pair, pair], "test": [pair]})
        (target / f"{task_id}.json").write_text(text)
    sizes: Any = {"max_grid_height": SIDE, "max_grid_width": SIDE} | dataset
    return ArcAgiParser(DatasetConfig(dataset_path=str(folder), **sizes))


def assert_same(one, other):
    """Two pytrees are equal leaf for leaf, types included."""
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
