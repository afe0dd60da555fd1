import logging

import pytest

from jaxarc.config.fields import ConfigValidationError
from jaxarc.config.groups import EnvironmentConfig


def test_defaults_are_valid():
    config = EnvironmentConfig()
    assert config.validate() == ()
    assert config == EnvironmentConfig(100, True, True, "standard", "rgb_array")


@pytest.mark.parametrize(
    ("level", "name", "pictures", "storage"),
    [
        ("off", "off", "off", "none"),
        (0, "off", "off", "none"),
        (1, "minimal", "minimal", "minimal"),
        ("standard", "standard", "standard", "standard"),
        (3, "verbose", "verbose", "research"),
        ("research", "research", "full", "research"),
        (4, "research", "full", "research"),
    ],
)
def test_debug_levels_have_names_and_numbers(level, name, pictures, storage):
    config = EnvironmentConfig(debug_level=level)
    assert config.validate() == ()
    assert config.debug_name == name
    assert config.computed_visualization_level == pictures
    assert config.computed_storage_policy == storage


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_episode_steps", 0),
        ("max_episode_steps", "ten"),
        ("max_episode_steps", True),
        ("max_episode_steps", 10.0),
        ("debug_level", 5),
        ("debug_level", "loud"),
        ("render_mode", "human"),
        ("auto_reset", 1),
    ],
)
def test_illegal_values_are_named(field, value):
    (error,) = EnvironmentConfig(**{field: value}).validate()
    assert error.startswith(f"environment.{field} is {value!r}; it must be ")


def test_an_illegal_level_has_no_name():
    with pytest.raises(ValueError, match=r"environment\.debug_level is 5; it must be"):
        _ = EnvironmentConfig(debug_level=5).debug_name


def test_long_episodes_are_unusual(caplog):
    with caplog.at_level(logging.WARNING):
        assert EnvironmentConfig(max_episode_steps=10_001).validate() == ()
    assert "environment.max_episode_steps is 10001" in caplog.text


def test_a_setting_of_another_group_is_refused_here():
    with pytest.raises(ConfigValidationError, match="allow_invalid_actions is no"):
        EnvironmentConfig.from_hydra({"allow_invalid_actions": True})


def test_a_bare_off_is_read():
    assert EnvironmentConfig.from_hydra({"debug_level": False}).debug_level == "off"
