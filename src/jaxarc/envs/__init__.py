"""The door to environments: configuration, actions, reset and step."""

from jaxarc.actions import (
    BboxAction,
    MaskAction,
    PointAction,
    create_bbox_action,
    create_mask_action,
    create_point_action,
)
from jaxarc.config import (
    ActionConfig,
    ArcEpisodeConfig,
    DatasetConfig,
    EnvironmentConfig,
    HistoryConfig,
    JaxArcConfig,
    RewardConfig,
    UnifiedActionConfig,
    UnifiedDatasetConfig,
    VisualizationConfig,
)
from jaxarc.envs.environment import (
    Environment,
    State,
    StepType,
    TimeStep,
    possible_operations,
    useful_operations,
)
from jaxarc.envs.functional import arc_reset, arc_step, batch_reset, batch_step
from jaxarc.envs.starts import EnvParams
from jaxarc.state import ArcEnvState

__all__ = [
    "ActionConfig",
    "ArcEnvState",
    "ArcEpisodeConfig",
    "BboxAction",
    "DatasetConfig",
    "EnvParams",
    "Environment",
    "EnvironmentConfig",
    "HistoryConfig",
    "JaxArcConfig",
    "MaskAction",
    "PointAction",
    "RewardConfig",
    "State",
    "StepType",
    "TimeStep",
    "UnifiedActionConfig",
    "UnifiedDatasetConfig",
    "VisualizationConfig",
    "arc_reset",
    "arc_step",
    "batch_reset",
    "batch_step",
    "create_bbox_action",
    "create_mask_action",
    "create_point_action",
    "possible_operations",
    "useful_operations",
]
