"""What `--log` of the commands reads, and an episode told to a logger."""

import dataclasses
from pathlib import Path
from typing import Annotated

import jax
import typer

from jaxarc.config import EnvironmentConfig, JaxArcConfig
from jaxarc.envs.functional import arc_reset, arc_step
from jaxarc.log import ExperimentLogger, create_start_log, create_step_log
from jaxarc.recording import Recording, action_of
from jaxarc.types import JaxArcTask

GROUPS = ("visualization", "storage", "logging", "wandb")

LogOption = Annotated[
    Path | None,
    typer.Option(
        "--log",
        help="Log the run as this YAML file says: its groups visualization, storage, "
        "logging and wandb, and environment.debug_level.",
    ),
]


def read_log_settings(path: Path) -> JaxArcConfig:
    """The settings of a log; a file that sets anything else is refused."""
    if not path.is_file():
        raise typer.BadParameter(f"{path} is not there")
    config = JaxArcConfig.from_yaml(path)
    level = config.environment.debug_level
    defaults = JaxArcConfig(environment=EnvironmentConfig(debug_level=level))
    names = {field.name for field in dataclasses.fields(config)} - set(GROUPS)
    odd = [n for n in sorted(names) if getattr(config, n) != getattr(defaults, n)]
    if odd:
        raise typer.BadParameter(
            f"{path} sets {', '.join(odd)}, which the command's own options decide: "
            f"keep {', '.join(GROUPS)} and environment.debug_level"
        )
    return config


def log_recording(
    log: ExperimentLogger, recording: Recording, task: JaxArcTask, number: int = 0
) -> None:
    """Run a recorded episode again, and tell a logger of every step."""
    config, shape = recording.config, task.get_grid_shape()
    state, _ = arc_reset(
        jax.random.key(0), config, task, recording.mode, recording.pair
    )
    log.log_task_start(create_start_log(task, state=state, episode_num=number))
    for numbers in recording.actions:
        action = action_of(recording.form, numbers, shape)
        after, _, reward, _, info = arc_step(state, action, config)
        log.log_step(create_step_log(state, action, after, reward, info, number))
        state = after
    log.log_episode_summary()
