import logging

import pytest

from jaxarc.config.fields import ConfigValidationError
from jaxarc.config.groups import ActionConfig, UnifiedActionConfig
from jaxarc.ops.operations import ARCLEOperationType


def test_defaults_are_valid():
    assert ActionConfig().validate() == ()
    assert ActionConfig().max_operations == 42
    assert UnifiedActionConfig is ActionConfig


def test_operations_may_be_given_by_name_or_in_a_list():
    names = [ARCLEOperationType.FILL_0, ARCLEOperationType.SUBMIT]
    config = ActionConfig(allowed_operations=names)  # type: ignore[arg-type]
    assert config.allowed_operations == (0, 34)
    assert config.validate() == ()


@pytest.mark.parametrize(
    ("changes", "start"),
    [
        ({"selection_format": "circle"}, "action.selection_format is 'circle'"),
        ({"selection_threshold": 1.5}, "action.selection_threshold is 1.5"),
        ({"max_operations": 0}, "action.max_operations is 0"),
        ({"allowed_operations": ()}, "action.allowed_operations is ()"),
        ({"allowed_operations": (1, 1)}, "action.allowed_operations is (1, 1)"),
        ({"allowed_operations": (-1,)}, "action.allowed_operations is (-1,)"),
        ({"allowed_operations": (42,)}, "action.allowed_operations is (42,)"),
        ({"allowed_operations": 3}, "action.allowed_operations is 3"),
        ({"invalid_operation_policy": "ask"}, "action.invalid_operation_policy"),
        (
            {"allowed_operations": (3, 34), "max_operations": 34},
            "action.allowed_operations holds 34; each must be below",
        ),
    ],
)
def test_illegal_values_are_named(changes, start):
    (error,) = ActionConfig(**changes).validate()
    assert error.startswith(start)


def test_many_operations_are_unusual(caplog):
    with caplog.at_level(logging.WARNING):
        assert ActionConfig(max_operations=101).validate() == ()
    assert "action.max_operations is 101" in caplog.text


def test_other_names_are_read():
    read = ActionConfig.from_hydra({"num_operations": 35, "clip_invalid_actions": True})
    assert read == ActionConfig(max_operations=35, allow_invalid_actions=False)
    assert ActionConfig.from_hydra({"clip_invalid_actions": False}) == ActionConfig(
        allow_invalid_actions=True
    )


def test_a_setting_without_effect_is_refused():
    with pytest.raises(ConfigValidationError, match="has no effect here; remove it"):
        ActionConfig.from_hydra({"allow_partial_selection": True})
