"""A short episode as logs, and configurations that say what becomes of them."""

import functools
from datetime import datetime

from arc_states import point, small_config, small_state, small_task
from jaxarc.config import (
    EnvironmentConfig,
    JaxArcConfig,
    LoggingConfig,
    StorageConfig,
    VisualizationConfig,
    WandbConfig,
)
from jaxarc.envs.functional import arc_step
from jaxarc.log import create_start_log, create_step_log

MOVES = ((2, 0, 0), (0, 3, 4), (1, 0, 0))  # a change, none, the solution


def clock():
    return datetime(2025, 1, 2, 3, 4, 5)


def start_log(number=0):
    return create_start_log(small_task(), state=small_state(), episode_num=number)


@functools.cache
def _steps():
    config, state, steps = small_config(), small_state(), []
    for move in MOVES:
        after, _, reward, _, info = arc_step(state, point(*move), config)
        steps.append((state, point(*move), after, reward, info))
        state = after
    return steps


def step_logs(number=0):
    """Steps that paint a wrong color, nothing, and the right color."""
    return [create_step_log(*step, episode_num=number) for step in _steps()]


def log_config(folder, debug_level="research", **groups):
    kinds = {
        "visualization": VisualizationConfig,
        "storage": StorageConfig,
        "logging": LoggingConfig,
        "wandb": WandbConfig,
    }
    groups["storage"] = {
        "base_output_dir": str(folder),
        "run_name": "run",
        **groups.get("storage", {}),
    }
    chosen = {name: kinds[name](**values) for name, values in groups.items()}
    return JaxArcConfig(
        environment=EnvironmentConfig(debug_level=debug_level), **chosen
    )


def play(logger, number=0):
    """Tell a logger of the whole episode."""
    logger.log_task_start(start_log(number))
    for log in step_logs(number):
        logger.log_step(log)
    logger.log_episode_summary()


def files(folder):
    """Every file below a folder, by its place in it."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return sorted(str(path.relative_to(folder)) for path in found)
