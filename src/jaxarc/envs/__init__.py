"""The door to environments: configuration, actions, reset and step."""

from jaxarc.actions import PointAction
from jaxarc.config import (
    DatasetConfig,
    EnvironmentConfig,
    JaxArcConfig,
    VisualizationConfig,
)
from jaxarc.config.groups import UnifiedActionConfig, UnifiedDatasetConfig
from jaxarc.envs.environment import (
    Environment,
    State,
    possible_operations,
    useful_operations,
)
from jaxarc.envs.functional import arc_reset, arc_step, batch_reset, batch_step

__all__ = [
    "DatasetConfig",
    "Environment",
    "EnvironmentConfig",
    "JaxArcConfig",
    "PointAction",
    "State",
    "UnifiedActionConfig",
    "UnifiedDatasetConfig",
    "VisualizationConfig",
    "arc_reset",
    "arc_step",
    "batch_reset",
    "batch_step",
    "possible_operations",
    "useful_operations",
]
