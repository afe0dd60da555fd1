"""ARC puzzles as compiled reinforcement-learning environments."""

from jaxarc.actions import (
    BboxAction,
    MaskAction,
    PointAction,
    create_bbox_action,
    create_mask_action,
    create_point_action,
)
from jaxarc.actions import MaskAction as ARCLEAction
from jaxarc.config import (
    ActionConfig,
    DatasetConfig,
    EnvironmentConfig,
    JaxArcConfig,
    create_config_template,
    extend_jaxarc_config,
    get_jaxarc_config_dir,
    list_available_configs,
    load_jaxarc_config,
)
from jaxarc.envs import (
    ArcEnvironment,
    ArcEnvState,
    arc_reset,
    arc_step,
    batch_reset,
    batch_step,
)
from jaxarc.envs.environment import Environment
from jaxarc.envs.params import EnvParams
from jaxarc.envs.timestep import StepType, TimeStep
from jaxarc.factories import create_arc_env_state, create_arc_env_state_with_format
from jaxarc.registration import make, register
from jaxarc.types import Grid, JaxArcTask, TaskPair
from jaxrig import __version__

__all__ = [
    "ARCLEAction",
    "ActionConfig",
    "ArcEnvState",
    "ArcEnvironment",
    "BboxAction",
    "DatasetConfig",
    "EnvParams",
    "Environment",
    "EnvironmentConfig",
    "Grid",
    "JaxArcConfig",
    "JaxArcTask",
    "MaskAction",
    "PointAction",
    "StepType",
    "TaskPair",
    "TimeStep",
    "__version__",
    "arc_reset",
    "arc_step",
    "batch_reset",
    "batch_step",
    "create_arc_env_state",
    "create_arc_env_state_with_format",
    "create_bbox_action",
    "create_config_template",
    "create_mask_action",
    "create_point_action",
    "extend_jaxarc_config",
    "get_jaxarc_config_dir",
    "list_available_configs",
    "load_jaxarc_config",
    "make",
    "register",
]
