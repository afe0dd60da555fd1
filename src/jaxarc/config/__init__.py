"""Every static choice of an environment, as frozen and hashable dataclasses."""

from jaxarc.config.action import ActionConfig, UnifiedActionConfig
from jaxarc.config.base import Config, ConfigValidationError
from jaxarc.config.dataset import DatasetConfig, UnifiedDatasetConfig
from jaxarc.config.environment import EnvironmentConfig
from jaxarc.config.episode import ArcEpisodeConfig
from jaxarc.config.grid_initialization import GridInitializationConfig
from jaxarc.config.history import (
    HistoryConfig,
    get_action_record_fields,
    get_selection_data_size,
)
from jaxarc.config.logs import LoggingConfig
from jaxarc.config.package_files import (
    create_config_template,
    extend_jaxarc_config,
    get_config,
    get_jaxarc_config_dir,
    list_available_configs,
    load_jaxarc_config,
)
from jaxarc.config.reward import RewardConfig, UnifiedRewardConfig
from jaxarc.config.storage import StorageConfig
from jaxarc.config.tracking import WandbConfig
from jaxarc.config.visualization import DebugConfig, MemoryConfig, VisualizationConfig
from jaxarc.config.whole import JaxArcConfig

__all__ = [
    "ActionConfig",
    "ArcEpisodeConfig",
    "Config",
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
    "UnifiedActionConfig",
    "UnifiedDatasetConfig",
    "UnifiedRewardConfig",
    "VisualizationConfig",
    "WandbConfig",
    "create_config_template",
    "extend_jaxarc_config",
    "get_action_record_fields",
    "get_config",
    "get_jaxarc_config_dir",
    "get_selection_data_size",
    "list_available_configs",
    "load_jaxarc_config",
]
