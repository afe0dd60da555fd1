"""Every static choice of an environment, as frozen and hashable dataclasses."""

from jaxarc.config.fields import ConfigValidationError
from jaxarc.config.groups import (
    ActionConfig,
    ArcEpisodeConfig,
    DatasetConfig,
    EnvironmentConfig,
    GridInitializationConfig,
    HistoryConfig,
    RewardConfig,
)
from jaxarc.config.outputs import (
    DebugConfig,
    LoggingConfig,
    MemoryConfig,
    StorageConfig,
    VisualizationConfig,
    WandbConfig,
)
from jaxarc.config.root import JaxArcConfig, get_jaxarc_config_dir, load_jaxarc_config

__all__ = [
    "ActionConfig",
    "ArcEpisodeConfig",
    "ConfigValidationError",
    "DatasetConfig",
    "DebugConfig",
    "EnvironmentConfig",
    "GridInitializationConfig",
    "HistoryConfig",
    "JaxArcConfig",
    "LoggingConfig",
    "MemoryConfig",
    "RewardConfig",
    "StorageConfig",
    "VisualizationConfig",
    "WandbConfig",
    "get_jaxarc_config_dir",
    "load_jaxarc_config",
]
