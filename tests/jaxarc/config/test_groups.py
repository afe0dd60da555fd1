"""Every group of settings: legal defaults, illegal values by name, what is unusual."""

import logging
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxarc.config import (
    ActionConfig,
    ArcEpisodeConfig,
    ConfigValidationError,
    DatasetConfig,
    DebugConfig,
    EnvironmentConfig,
    GridInitializationConfig,
    HistoryConfig,
    LoggingConfig,
    MemoryConfig,
    RewardConfig,
    StorageConfig,
    VisualizationConfig,
    WandbConfig,
)
from jaxarc.config.groups import get_action_record_fields
from jaxarc.ops.operations import ARCLEOperationType

GROUPS = (
    *(ActionConfig, ArcEpisodeConfig, DatasetConfig, EnvironmentConfig),
    *(GridInitializationConfig, HistoryConfig, LoggingConfig, RewardConfig),
    *(StorageConfig, VisualizationConfig, WandbConfig),
)
ILLEGAL: list[tuple[Any, str, Any]] = [
    (ActionConfig, "selection_format", "circle"),
    (ActionConfig, "selection_threshold", 1.5),
    (ActionConfig, "max_operations", 0),
    (ActionConfig, "allowed_operations", (-1,)),
    (ActionConfig, "allowed_operations", (42,)),
    (ActionConfig, "invalid_operation_policy", "ask"),
    (ArcEpisodeConfig, "episode_mode", 2),
    (ArcEpisodeConfig, "episode_mode", "eval"),
    (ArcEpisodeConfig, "episode_mode", True),
    (ArcEpisodeConfig, "demo_selection_strategy", "first"),
    (ArcEpisodeConfig, "test_selection_strategy", "first"),
    (ArcEpisodeConfig, "max_pairs_per_episode", 0),
    (ArcEpisodeConfig, "success_threshold", 1.1),
    (ArcEpisodeConfig, "training_reward_frequency", "never"),
    (DatasetConfig, "dataset_name", " "),
    (DatasetConfig, "max_grid_height", 0),
    (DatasetConfig, "min_grid_width", 0),
    (DatasetConfig, "max_colors", 1),
    (DatasetConfig, "max_test_pairs", 0),
    (DatasetConfig, "task_split", "validation"),
    (EnvironmentConfig, "max_episode_steps", 0),
    (EnvironmentConfig, "debug_level", 5),
    (EnvironmentConfig, "debug_level", "loud"),
    (EnvironmentConfig, "render_mode", "human"),
    (GridInitializationConfig, "demo_weight", -0.1),
    (GridInitializationConfig, "permutation_types", ()),
    (GridInitializationConfig, "permutation_types", ("shear",)),
    (GridInitializationConfig, "random_density", 1.5),
    (GridInitializationConfig, "random_pattern_type", "stripes"),
    (HistoryConfig, "max_history_length", "long"),
    (LoggingConfig, "log_format", "xml"),
    (LoggingConfig, "log_level", "info"),
    (LoggingConfig, "log_frequency", 0),
    (RewardConfig, "efficiency_bonus_threshold", -1),
    (StorageConfig, "policy", "all"),
    (StorageConfig, "base_output_dir", ""),
    (StorageConfig, "run_name", ""),
    (StorageConfig, "max_episodes_per_run", 0),
    (VisualizationConfig, "level", "research"),
    (VisualizationConfig, "output_formats", ("gif",)),
    (VisualizationConfig, "color_scheme", "dark"),
    (VisualizationConfig, "max_memory_mb", 0),
    (WandbConfig, "project_name", ""),
    (WandbConfig, "tags", ("a", "a")),
    (WandbConfig, "job_type", ""),
    (WandbConfig, "log_frequency", 0),
]
WEIGHTS = st.floats(0, 1e6)


@pytest.mark.parametrize("group", GROUPS)
def test_defaults_are_valid(group):
    assert group().validate() == ()


@pytest.mark.parametrize(("group", "field", "value"), ILLEGAL)
def test_illegal_values_are_named(group, field, value):
    (error,) = group(**{field: value}).validate()
    # Of a list, the item that is wrong is named.
    assert error.startswith(f"{group.section}.{field}")
    assert re.search(r" is .*: give ", error)


@pytest.mark.parametrize(
    ("config", "start"),
    [
        (
            ActionConfig(allowed_operations=(3, 34), max_operations=34),
            "action.allowed_operations holds 34; each must be below",
        ),
        (
            DatasetConfig(max_grid_width=4, min_grid_width=5),
            "dataset.max_grid_width is 4; it must be at least dataset.min_grid_width",
        ),
        (
            DatasetConfig(max_grid_height=4, min_grid_height=5),
            "dataset.max_grid_height is 4; it must be at least dataset.min_grid_height",
        ),
        (
            GridInitializationConfig(0, 0, 0, 0),
            "grid_initialization.demo_weight and the other three",
        ),
        (
            VisualizationConfig(
                debug=DebugConfig(memory_management=MemoryConfig(max_cache_mb=600))
            ),
            "visualization.debug.memory_management.max_cache_mb is 600; it must not "
            "exceed max_total_mb, which is 500.0",
        ),
        (
            VisualizationConfig(debug=DebugConfig(level="loud")),
            "visualization.debug.level is 'loud'",
        ),
    ],
)
def test_settings_that_contradict_each_other_are_named(config, start):
    (error,) = config.validate()
    assert error.startswith(start)


@pytest.mark.parametrize(
    ("group", "large"),
    [
        (ActionConfig, {"max_operations": 101}),
        (EnvironmentConfig, {"max_episode_steps": 10_001}),
        (HistoryConfig, {"max_history_length": 10_001}),
        (
            DatasetConfig,
            {
                "max_grid_height": 201,
                "max_grid_width": 201,
                "max_colors": 51,
                "max_train_pairs": 21,
                "max_test_pairs": 6,
            },
        ),
    ],
)
def test_large_values_are_legal_and_unusual(caplog, group, large):
    with caplog.at_level(logging.WARNING):
        assert group(**large).validate() == ()
    starts = [f"{group.section}.{name} is {value}" for name, value in large.items()]
    for message, start in zip(caplog.messages, starts, strict=True):
        assert message.startswith(start)


def test_operations_may_be_given_by_name_or_in_a_list():
    names = [ARCLEOperationType.FILL_0, ARCLEOperationType.SUBMIT]
    config = ActionConfig(allowed_operations=names)  # type: ignore[arg-type]
    assert config.allowed_operations == (0, 34)
    assert config.validate() == ()


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


def test_an_illegal_level_has_no_name():
    with pytest.raises(ValueError, match=r"environment\.debug_level is 5: give"):
        _ = EnvironmentConfig(debug_level=5).debug_name


def test_a_setting_of_another_group_is_refused():
    with pytest.raises(ConfigValidationError, match="validate_actions is not a sett"):
        EnvironmentConfig.from_hydra({"validate_actions": True})


@pytest.mark.parametrize(("word", "number"), [("train", 0), ("test", 1)])
def test_modes_have_words(word, number):
    config = ArcEpisodeConfig.from_hydra({"episode_mode": word})
    assert config == ArcEpisodeConfig(episode_mode=number)
    assert type(config.episode_mode) is int
    assert config.validate() == ()


@given(st.tuples(WEIGHTS, WEIGHTS, WEIGHTS, WEIGHTS).filter(any))
def test_probabilities_add_up_to_one_and_keep_ratios(weights):
    got = GridInitializationConfig(*weights).probabilities
    assert sum(got) == pytest.approx(1)
    assert got == pytest.approx([weight / sum(weights) for weight in weights])


@pytest.mark.parametrize("weights", [(0, 0, 0, 0), (1e308, 1e308, 0, 0)])
def test_weights_must_have_a_sum(weights):
    with pytest.raises(ConfigValidationError, match="finite and above 0"):
        _ = GridInitializationConfig(*weights).probabilities


@pytest.mark.parametrize(("form", "fields"), [("point", 6), ("bbox", 8), ("mask", 904)])
def test_records_have_the_documented_sizes(form, fields):
    assert get_action_record_fields(form, 30, 30) == fields
    usage = HistoryConfig().estimate_memory_usage(form)
    assert usage["total_bytes"] == fields * 4 * 1000


def test_memory_is_explained():
    usage = HistoryConfig(max_history_length=10).estimate_memory_usage("mask", 5, 4, 2)
    assert usage == {
        "total_bytes": 480,
        "human_readable": "480 bytes",
        "breakdown": {
            "records": 10,
            "selection_bytes": 400,
            "metadata_bytes": 80,
            "fields_per_record": 24,
        },
    }
    assert HistoryConfig(enabled=False).estimate_memory_usage()["total_bytes"] == 0
    thin = HistoryConfig(store_selection_data=False).estimate_memory_usage("mask")
    assert thin["total_bytes"] == 16_000
    with pytest.raises(ValueError, match="'circle' is not one of: point, bbox, mask"):
        HistoryConfig().estimate_memory_usage("circle")


@pytest.mark.parametrize("length", [0, -1])
def test_a_history_without_room_is_refused_at_construction(length):
    with pytest.raises(ConfigValidationError, match=f"max_history_length is {length}"):
        HistoryConfig(max_history_length=length)


def test_the_documented_debug_block_is_read():
    memory = {
        "max_cache_mb": 100.0,
        "max_total_mb": 500.0,
        "lazy_loading": True,
        "compression": True,
    }
    block = {
        "level": "standard",
        "async_logging": True,
        "performance_monitoring": True,
        "memory_management": memory,
    }
    config = VisualizationConfig.from_hydra({"debug": block})
    assert config == VisualizationConfig(debug=DebugConfig())
    assert config.debug is not None
    assert config.debug.memory_management == MemoryConfig(100.0, 500.0, True, True)
    with pytest.raises(ConfigValidationError, match="did you mean 'max_cache_mb'"):
        VisualizationConfig.from_hydra(
            {"debug": {"memory_management": {"max_cache": 1}}}
        )


def test_steps_that_no_level_lets_through_are_warned_of(caplog):
    config = LoggingConfig(log_rewards=True)
    with caplog.at_level(logging.WARNING):
        assert config.validate() == ()
    assert "logging.log_rewards is on, but logging.log_level is 'INFO'" in caplog.text
    caplog.clear()
    assert LoggingConfig(log_rewards=True, log_level="DEBUG").validate() == ()
    assert caplog.messages == []


def test_older_names_are_read_once():
    read = ActionConfig.from_hydra({"num_operations": 35, "clip_invalid_actions": True})
    assert read == ActionConfig(max_operations=35, allow_invalid_actions=False)
    assert ActionConfig.from_hydra({"clip_invalid_actions": False}) == ActionConfig(
        allow_invalid_actions=True
    )
    assert VisualizationConfig.from_hydra({"memory_limit_mb": 7}).max_memory_mb == 7
    with pytest.raises(ConfigValidationError, match="given twice, once as"):
        ActionConfig.from_hydra({"max_operations": 3, "num_operations": 3})
