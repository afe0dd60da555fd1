"""ARC puzzles as compiled reinforcement-learning environments."""

from importlib.metadata import version

from jaxarc.actions import MaskAction as ARCLEAction
from jaxarc.config import (
    JaxArcConfig,
    create_config_template,
    extend_jaxarc_config,
    get_jaxarc_config_dir,
    list_available_configs,
    load_jaxarc_config,
)
from jaxarc.envs import ArcEnvironment, ArcEnvState, arc_reset, arc_step
from jaxarc.factories import create_arc_env_state, create_arc_env_state_with_format
from jaxarc.types import Grid, JaxArcTask, TaskPair

__version__ = version("jaxrig")

__all__ = [
    "ARCLEAction",
    "ArcEnvState",
    "ArcEnvironment",
    "Grid",
    "JaxArcConfig",
    "JaxArcTask",
    "TaskPair",
    "__version__",
    "arc_reset",
    "arc_step",
    "create_arc_env_state",
    "create_arc_env_state_with_format",
    "create_config_template",
    "extend_jaxarc_config",
    "get_jaxarc_config_dir",
    "list_available_configs",
    "load_jaxarc_config",
]
