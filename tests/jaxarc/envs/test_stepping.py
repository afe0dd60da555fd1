"""The functions behind the doorway: where a fresh episode starts."""

import jax
import numpy as np
import pytest

from arc_states import small_config, small_task
from jaxarc.config import ArcEpisodeConfig
from jaxarc.data.buffer import stack_task_list
from jaxarc.envs import functional, stepping
from jaxarc.envs.stepping import draw_start, observe

PUBLIC = ("arc_reset", "arc_step", "batch_reset", "batch_step")
COMPILED = ("_reset", "_reset_batch", "_step", "_step_batch")


@pytest.mark.parametrize("name", [*PUBLIC, *COMPILED])
def test_the_doorway_leads_here(name):
    assert getattr(functional, name) is getattr(stepping, name)


@pytest.mark.parametrize("strategy", ["sequential", "random"])
def test_starts_are_drawn_from_what_there_is(strategy):
    rules = ArcEpisodeConfig(demo_selection_strategy=strategy)
    config = small_config(episode=rules)
    tasks = stack_task_list([small_task(demos=n) for n in (1, 2, 3)])
    keys = jax.random.split(jax.random.key(0), 300)
    rows, pairs = jax.vmap(lambda key: draw_start(key, config, tasks, 0))(keys)
    starts = set(zip(rows.tolist(), pairs.tolist(), strict=True))
    every = {(row, pair) for row in range(3) for pair in range(row + 1)}
    assert starts == ({(0, 0), (1, 0), (2, 0)} if strategy == "sequential" else every)


def test_what_is_given_is_taken():
    config, task = small_config(), small_task()
    row, pair = draw_start(jax.random.key(0), config, task, 0, pair=2, row=0)
    assert (int(row), int(pair)) == (0, 2)
    beyond = draw_start(jax.random.key(0), config, task, 0, pair=3)
    assert int(beyond[1]) == 0


def test_the_observation_is_the_working_grid():
    state, seen = stepping.arc_reset(jax.random.key(0), small_config(), small_task())
    np.testing.assert_array_equal(seen, state.working_grid)
    np.testing.assert_array_equal(observe(state.episode), state.working_grid)
    assert seen.dtype == np.int32
