import pytest

from jaxarc.config.fields import ConfigValidationError
from jaxarc.config.outputs import DebugConfig, MemoryConfig, VisualizationConfig

DOCUMENTED = {
    "debug": {
        "level": "standard",
        "async_logging": True,
        "performance_monitoring": True,
        "memory_management": {
            "max_cache_mb": 100.0,
            "max_total_mb": 500.0,
            "lazy_loading": True,
            "compression": True,
        },
    }
}


def test_defaults_are_valid():
    assert VisualizationConfig().validate() == ()
    assert VisualizationConfig().debug is None


def test_the_documented_debug_block_is_read():
    config = VisualizationConfig.from_hydra(DOCUMENTED)
    assert config == VisualizationConfig(debug=DebugConfig())
    assert config.debug is not None
    assert config.debug.memory_management == MemoryConfig(100.0, 500.0, True, True)
    assert config.validate() == ()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("level", "research"),
        ("output_formats", ()),
        ("output_formats", ("gif",)),
        ("output_formats", "svg"),
        ("color_scheme", "dark"),
        ("max_memory_mb", 0),
        ("debug", "standard"),
    ],
)
def test_illegal_values_are_named(field, value):
    (error,) = VisualizationConfig(**{field: value}).validate()
    assert error.startswith(f"visualization.{field} is {value!r}; it must be ")


def test_values_in_the_debug_block_are_named():
    memory = MemoryConfig(max_cache_mb=600)
    debug = DebugConfig(memory_management=memory)
    assert VisualizationConfig(debug=debug).validate() == (
        "visualization.debug.memory_management.max_cache_mb is 600; it must not exceed "
        "max_total_mb, which is 500.0",
    )
    (error,) = VisualizationConfig(debug=DebugConfig(level="loud")).validate()
    assert error.startswith("visualization.debug.level is 'loud'")


def test_keys_in_the_debug_block_are_checked():
    with pytest.raises(ConfigValidationError, match="did you mean 'max_cache_mb'"):
        VisualizationConfig.from_hydra(
            {"debug": {"memory_management": {"max_cache": 1}}}
        )


def test_the_other_name_of_the_memory_limit_is_read():
    assert VisualizationConfig.from_hydra({"memory_limit_mb": 7}).max_memory_mb == 7


def test_settings_without_effect_are_refused():
    with pytest.raises(ConfigValidationError, match="image_quality has no effect here"):
        VisualizationConfig.from_hydra({"image_quality": "high"})
