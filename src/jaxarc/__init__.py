"""ARC puzzles as compiled reinforcement-learning environments.

Names are loaded on first use, so that commands import only what they need.
"""

from typing import TYPE_CHECKING

from jaxrig import __version__
from jaxrig.lazy_imports import lazy_attributes

if TYPE_CHECKING:
    from jaxarc import config as config
    from jaxarc import draw as draw
    from jaxarc import envs as envs
    from jaxarc import learning as learning
    from jaxarc import log as log
    from jaxarc import ops as ops
    from jaxarc import tasks as tasks
    from jaxarc import wrappers as wrappers
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
        GridInitializationConfig,
        HistoryConfig,
        JaxArcConfig,
        RewardConfig,
        get_jaxarc_config_dir,
        load_jaxarc_config,
    )
    from jaxarc.envs.environment import Environment, StepType, TimeStep
    from jaxarc.envs.functional import arc_reset, arc_step, batch_reset, batch_step
    from jaxarc.envs.starts import EnvParams
    from jaxarc.registration import make, register
    from jaxarc.state import ArcEnvState
    from jaxarc.types import JaxArcTask

__all__ = [
    "ActionConfig",
    "ArcEnvState",
    "ArcEpisodeConfig",
    "BboxAction",
    "DatasetConfig",
    "EnvParams",
    "Environment",
    "EnvironmentConfig",
    "GridInitializationConfig",
    "HistoryConfig",
    "JaxArcConfig",
    "JaxArcTask",
    "MaskAction",
    "PointAction",
    "RewardConfig",
    "StepType",
    "TimeStep",
    "__version__",
    "arc_reset",
    "arc_step",
    "batch_reset",
    "batch_step",
    "create_bbox_action",
    "create_mask_action",
    "create_point_action",
    "get_jaxarc_config_dir",
    "load_jaxarc_config",
    "make",
    "register",
]

__getattr__ = lazy_attributes(__name__, __file__)
