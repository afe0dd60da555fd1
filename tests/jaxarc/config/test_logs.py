import logging

import pytest

from jaxarc.config.fields import ConfigValidationError
from jaxarc.config.outputs import LoggingConfig


def test_defaults_are_valid():
    assert LoggingConfig().validate() == ()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("log_format", "xml"),
        ("log_level", "info"),
        ("log_frequency", 0),
        ("log_rewards", "yes"),
    ],
)
def test_illegal_values_are_named(field, value):
    (error,) = LoggingConfig(**{field: value}).validate()
    assert error.startswith(f"logging.{field} is {value!r}; it must be ")


def test_settings_without_effect_are_refused():
    with pytest.raises(ConfigValidationError, match="queue_size has no effect here"):
        LoggingConfig.from_hydra({"queue_size": 500})


def test_steps_that_no_level_lets_through_are_warned_of(caplog):
    config = LoggingConfig(log_rewards=True)
    with caplog.at_level(logging.WARNING):
        assert config.validate() == ()
    assert "logging.log_rewards is on, but logging.log_level is 'INFO'" in caplog.text
    caplog.clear()
    assert LoggingConfig(log_rewards=True, log_level="DEBUG").validate() == ()
    assert caplog.messages == []
