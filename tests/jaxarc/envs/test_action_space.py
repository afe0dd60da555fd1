"""Allowed operations from outside a step, against the rules written out."""

import numpy as np
import pytest

from arc_states import small_state, small_task
from jaxarc.config import ActionConfig
from jaxarc.envs.action_space import ActionSpaceController

controller = ActionSpaceController()


def rule(config, state, demos, tests):
    allowed = np.asarray(state.allowed_operations_mask).copy()
    if config.allowed_operations is not None:
        allowed &= np.isin(np.arange(42), config.allowed_operations)
    if config.dynamic_action_filtering and config.context_dependent_operations:
        training = int(state.episode_mode) == 0
        allowed[[35, 36, 40]] &= training and demos > 1
        allowed[[37, 38, 41]] &= not training and tests > 1
        allowed[39] &= int(state.step_count) > 0
    return allowed


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("demos", [1, 3])
@pytest.mark.parametrize("steps", [0, 2])
@pytest.mark.parametrize(
    "config",
    [
        ActionConfig(),
        ActionConfig(allowed_operations=(0, 5, 34, 35)),
        ActionConfig(
            dynamic_action_filtering=True,
            context_dependent_operations=True,
            allowed_operations=tuple(range(3, 42)),
        ),
    ],
)
def test_allowed_operations(mode, demos, steps, config):
    state = small_state(mode, task=small_task(demos=demos))
    permitted = np.arange(42) != 20
    state = state.replace(step_count=steps, allowed_operations_mask=permitted)
    found = controller.get_allowed_operations(state, config)
    np.testing.assert_array_equal(found, rule(config, state, demos, 2))


@pytest.mark.parametrize(
    ("policy", "wanted"),
    [
        ("clip", {5: 5, 6: 5, 7: 5, 8: 10, 0: 5, 41: 10}),
        ("penalize", {7: 5, 8: 10}),
        ("reject", {5: 5, 7: -1}),
        ("passthrough", {5: 5, 7: 7}),
    ],
)
def test_what_runs_instead(policy, wanted):
    config = ActionConfig(allowed_operations=(5, 10), invalid_operation_policy=policy)
    state = small_state()
    found = {
        operation: int(controller.filter_invalid_operation(operation, state, config))
        for operation in wanted
    }
    assert found == wanted
