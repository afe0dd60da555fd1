"""Arguments are read, or refused with the value, the rule and the remedy.

What is refused, and what the refusal says.
"""

import logging

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from omegaconf import OmegaConf

from arc_play import make_config, random_puzzle
from jaxarc.actions import (
    create_bbox_action,
    create_mask_action,
    create_point_action,
)
from jaxarc.config import ConfigValidationError, EnvironmentConfig, JaxArcConfig
from jaxarc.envs import Environment, arc_reset, checks
from jaxarc.tasks.samples import stack_task_list
from jaxrig.checks import error_mode

CONFIG = make_config((5, 7))


def test_configurations_and_mappings_are_read():
    settings = {"environment": {"max_episode_steps": 7}}
    assert checks.as_config(CONFIG) is CONFIG
    wanted = JaxArcConfig.from_hydra(settings)
    assert wanted.environment.max_episode_steps == 7
    assert (
        checks.as_config(settings)
        == checks.as_config(OmegaConf.create(settings))
        == wanted
    )
    with pytest.raises(TypeError, match="configuration is a int: pass a JaxArcConfig"):
        checks.as_config(3)


def test_without_a_task_there_is_one_and_a_warning(caplog):
    with caplog.at_level(logging.WARNING):
        task = checks.tasks_or_demo(None, CONFIG)
    assert task.get_grid_shape() == (5, 7)
    assert (int(task.num_train_pairs), int(task.num_test_pairs)) == (1, 1)
    assert "no task given" in caplog.text
    pair = task.get_train_pair(0)
    given, wanted = pair.input_grid.data, pair.output_grid.data
    assert pair.input_grid.mask.all()
    assert set(np.unique(given)) == {0, 1}
    np.testing.assert_array_equal(wanted, 2 * given)
    with pytest.raises(TypeError, match="task_data is a dict: pass a JaxArcTask"):
        checks.tasks_or_demo({}, CONFIG)


@pytest.fixture(scope="module")
def stack():
    rng = np.random.default_rng(0)
    counts = ((1, 3), (4, 1))
    return stack_task_list(
        [random_puzzle(rng, (5, 7), *count).as_task() for count in counts]
    )


@pytest.mark.parametrize(
    ("mode", "pair", "row", "message"),
    [
        (0, 4, 1, r"pair is 4: there are 4 demonstration pairs"),
        (1, 1, 1, r"pair is 1: there are 1 test pairs"),
        (0, -1, 1, r"pair is -1"),
        (0, 1, None, r"pair is 1: there are 1 demonstration pairs"),
        (0, [0, 1], [1, 0], r"pair is \[0, 1\]: there are \[4, 1\]"),
        (0, None, 2, r"task is 2: there are 2 tasks"),
        (0, None, [0, -1], r"task is \[0, -1\]"),
    ],
)
def test_choices_that_do_not_exist_are_refused(stack, mode, pair, row, message):
    with pytest.raises(ValueError, match=message):
        checks.checked_start(stack, mode, row, pair)


@pytest.mark.parametrize(
    ("mode", "row", "pair"),
    [(0, None, None), (0, None, 0), (0, [1, 0], [3, 0]), (1, 0, 2)],
)
def test_choices_that_exist_become_arrays(stack, mode, row, pair):
    for chosen, found in zip(
        (row, pair), checks.checked_start(stack, mode, row, pair), strict=True
    ):
        assert (found is None) == (chosen is None)
        assert found is None or (found.dtype, found.tolist()) == (jnp.int32, chosen)


def test_tasks_without_a_pair_to_begin_with_are_refused(stack):
    bare = eqx.tree_at(lambda t: t.num_test_pairs, stack, jnp.array([3, 0], jnp.int32))
    for begin in (
        lambda: Environment(CONFIG, bare, 1),
        lambda: arc_reset(jax.random.key(0), CONFIG, bare, 1),
        lambda: arc_reset(jax.random.key(0), CONFIG, bare, 1, task_row=1),
    ):
        with pytest.raises(ValueError, match=r"test mode has no pair of .* \[1\]"):
            begin()
    assert Environment(CONFIG, bare, 1, [0]).params.choices == 1
    assert arc_reset(jax.random.key(0), CONFIG, bare, 1, task_row=0)[0].is_test_mode()


def test_a_choice_for_each_of_many(stack):
    names = ("rows", "pairs")
    rows, pairs = checks.checked_start(stack, 0, [1, 0], 0, names, 2)
    assert (rows.tolist(), pairs.tolist()) == ([1, 0], [0, 0])
    with pytest.raises(ValueError, match=r"rows has shape \(3,\).*each of the 2 keys"):
        checks.checked_start(stack, 0, [1, 0, 1], None, names, 2)
    with pytest.raises(ValueError, match=r"pairs has shape \(3,\).*each of the 2 keys"):
        checks.checked_start(stack, 0, [1, 0], [0, 0, 0], names, 2)
    with pytest.raises(TypeError, match="pairs is 'a': it must be a whole number"):
        checks.checked_start(stack, 0, None, "a", names)


def test_traced_choices_pass(stack):
    jax.jit(lambda i: checks.checked_start(stack, 0, i, i))(jnp.int32(99))


@pytest.mark.parametrize(
    ("mode", "left"), [("nan", True), ("off", False), ("breakpoint", True)]
)
def test_other_error_modes_leave_the_check_to_the_step(mode, left):
    with error_mode(mode):
        assert checks.checked_action(create_point_action(77, 0, 0), CONFIG)[1] == left


def test_broken_rules_are_refused_or_logged(caplog):
    wrong = EnvironmentConfig(max_episode_steps=0)
    with pytest.raises(ConfigValidationError, match="max_episode_steps is 0"):
        checks.checked_config(JaxArcConfig(environment=wrong))
    lax = {"environment": {"max_episode_steps": 0, "strict_validation": False}}
    with caplog.at_level(logging.WARNING):
        assert checks.checked_config(lax) == JaxArcConfig.from_hydra(lax)
    assert "not valid: environment.max_episode_steps is 0" in caplog.text
    assert checks.checked_config(CONFIG) is CONFIG


@pytest.mark.parametrize(
    ("action", "problem"),
    [
        (create_point_action(42, 0, 0), "action.operation is 42: it must be 0 to 41"),
        (create_point_action(-1, 0, 0), "action.operation is -1: it must be 0 to 41"),
        (create_point_action(0, 5, 0), "action.row is 5: it must be 0 to 4"),
        (create_point_action(0, 0, 7), "action.col is 7: it must be 0 to 6"),
        (create_bbox_action(0, 0, 0, -2, 0), "action.r2 is -2: it must be 0 to 4"),
        (create_bbox_action(0, 0, 9, 0, 0), "action.c1 is 9: it must be 0 to 6"),
        (create_mask_action(99, np.zeros((5, 7))), "action.operation is 99"),
    ],
)
def test_a_value_out_of_range_is_named_with_its_rule(action, problem):
    told = checks.out_of_range(checks.ranges(action, CONFIG))
    assert told is not None
    assert told.startswith(problem)
    assert "validate_actions=False" in told
    assert not checks.action_in_range(action, CONFIG)


def test_many_bad_rows_are_counted():
    bad = jnp.full(20, 50, jnp.int32)
    told = checks.out_of_range([("operation", bad, 42)])
    assert told is not None
    assert "in rows 0, 1, 2, 3, 4, 5, 6, 7 and 12 more" in told
