"""What is refused, and what the refusal says."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arc_play import make_config
from jaxarc.actions import (
    BboxAction,
    create_bbox_action,
    create_mask_action,
    create_point_action,
)
from jaxarc.envs.checks import (
    action_in_range,
    check_action_kind,
    check_mask_shape,
    is_traced,
    out_of_range,
    ranges,
    state_in_range,
)
from jaxarc.envs.functional import arc_reset

CONFIG = make_config((5, 7))


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
    told = out_of_range(ranges(action, CONFIG))
    assert told is not None
    assert told.startswith(problem)
    assert "validate_actions=False" in told
    assert not action_in_range(action, CONFIG)


@pytest.mark.parametrize(
    "action",
    [
        create_point_action(0, 0, 0),
        create_point_action(41, 4, 6),
        create_bbox_action(34, 4, 6, 0, 0),
        create_mask_action(5, np.ones((5, 7))),
    ],
)
def test_values_in_range_pass(action):
    assert out_of_range(ranges(action, CONFIG)) is None
    assert action_in_range(action, CONFIG)
    check_action_kind(action)
    check_mask_shape(action, CONFIG)


def test_rows_of_a_batch_are_named():
    zeros = jnp.zeros(20, jnp.int32)
    columns = zeros.at[jnp.asarray([3, 11])].set(jnp.asarray([8, -1], jnp.int32))
    action = BboxAction(zeros, zeros, columns, zeros, zeros)
    told = out_of_range(ranges(action, CONFIG))
    assert told is not None
    assert told.startswith("action.c1 is 8, -1 in rows 3, 11: it must be 0 to 6")
    fine = np.asarray(action_in_range(action, CONFIG))
    assert np.nonzero(~fine)[0].tolist() == [3, 11]


def test_many_bad_rows_are_counted():
    bad = jnp.full(20, 50, jnp.int32)
    told = out_of_range([("operation", bad, 42)])
    assert told is not None
    assert "in rows 0, 1, 2, 3, 4, 5, 6, 7 and 12 more" in told


def test_dictionaries_are_refused_by_name():
    with pytest.raises(TypeError, match=r"not a dict: dictionary actions are not supp"):
        check_action_kind({"operation": 1})
    with pytest.raises(TypeError, match=r"not a int; import them from jaxarc\.envs"):
        check_action_kind(3)


def test_a_mask_has_the_configured_shape():
    with pytest.raises(ValueError, match=r"shape \(7, 5\), the configuration \(5, 7\)"):
        check_mask_shape(create_mask_action(0, np.zeros((7, 5))), CONFIG)


@pytest.mark.parametrize(
    ("changes", "fine"),
    [
        ({}, True),
        ({"step_count": jnp.int32(-1)}, False),
        ({"similarity_score": jnp.float32(1.5)}, False),
        ({"similarity_score": jnp.float32(-0.5)}, False),
        ({"episode_mode": jnp.int32(2)}, False),
        ({"episode_mode": jnp.int32(1)}, True),
    ],
)
def test_states_that_make_sense(changes, fine, demo_state):
    assert bool(state_in_range(demo_state.replace(**changes).episode)) == fine


@pytest.fixture(scope="module")
def demo_state():
    return arc_reset(jax.random.key(0), CONFIG)[0]


def test_traced_values_are_known():
    assert not is_traced((jnp.zeros(3), 4))
    assert not is_traced(jnp.zeros(3))
    seen = []
    jax.jit(lambda x: seen.append(is_traced((1, x))) or x)(jnp.zeros(3))
    assert seen == [True]
