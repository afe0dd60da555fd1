"""Parameters of environments are checked when they are made."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arc_environments import SHAPE, clipping, small_buffer, small_params
from arc_play import make_config
from jaxarc.envs.starts import EnvParams
from jaxarc.tasks.samples import gather_task
from jaxarc.types import JaxArcTask


def test_mode_and_rows_default_to_the_configuration_and_all():
    params = small_params()
    assert params.episode_mode == 0
    assert params.subset_indices is None
    assert params.choices == 4
    testing = small_params(clipping(episode={"episode_mode": 1}))
    assert testing.episode_mode == 1
    assert small_params(episode_mode=1).episode_mode == 1


def test_a_mapping_is_a_configuration_too():
    mapping = {"dataset": {"max_grid_height": 5, "max_grid_width": 5}}
    params = EnvParams.from_config(mapping, small_buffer())
    assert params.config.dataset.max_grid_height == 5


def test_the_rows_behind_choices():
    params = small_params(subset_indices=[3, 1])
    assert params.choices == 2
    assert params.subset_indices is not None
    assert params.subset_indices.dtype == jnp.int32
    np.testing.assert_array_equal(params.row(jnp.arange(2)), [3, 1])
    everything = small_params()
    np.testing.assert_array_equal(everything.row(jnp.arange(4)), np.arange(4))


@pytest.mark.parametrize(
    "rows", [[], [[0, 1]], [0.5], ["a"], [4], [-1], np.zeros((2, 2), int)]
)
def test_rows_that_are_none_are_refused(rows):
    with pytest.raises(ValueError, match="subset_indices"):
        small_params(subset_indices=rows)


def test_rows_may_repeat_only_where_they_are_drawn():
    assert small_params(subset_indices=[1, 1, 2]).choices == 3
    ordered = {"dataset": {"shuffle_tasks": False} | sides()}
    with pytest.raises(ValueError, match="every row once"):
        EnvParams.from_config(ordered, small_buffer(), subset_indices=[1, 1, 2])


def sides():
    return {"max_grid_height": SHAPE[0], "max_grid_width": SHAPE[1]}


@pytest.mark.parametrize("mode", [2, -1, "eval", 0.5])
def test_modes_are_zero_and_one(mode):
    with pytest.raises(ValueError, match="episode_mode"):
        small_params(episode_mode=mode)


def test_a_configuration_with_errors_is_refused():
    config = make_config(SHAPE, steps=0)
    with pytest.raises(ValueError, match="max_episode_steps"):
        small_params(config)


def test_a_buffer_is_a_stack_of_tasks():
    single: JaxArcTask = gather_task(small_buffer(), 0)
    with pytest.raises(ValueError, match="stack_task_list"):
        small_params(buffer=single)
    with pytest.raises(TypeError, match="a list"):
        EnvParams.from_config(clipping(), [single])


def test_rules_are_static_and_tasks_are_leaves():
    params = small_params(subset_indices=[0, 2])
    leaves = jax.tree.leaves(params)
    assert len(leaves) == len(jax.tree.leaves(params.buffer)) + 1
    assert all(isinstance(leaf, jax.Array) for leaf in leaves)
    hash(jax.tree.structure(params))
