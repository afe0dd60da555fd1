"""A training run on disk: its configuration, checkpoints and metrics in one folder."""

import dataclasses
import json
from pathlib import Path
from typing import Any

from jaxarc.learning.training import Agent, AgentConfig, make_agent
from jaxrig.atomic import atomic_write
from jaxrig.checkpoint import CheckpointManager
from jaxrig.learn import PPOConfig

CONFIG_FILE = "agent.json"


def save_config(folder: Path | str, config: AgentConfig) -> None:
    """Write a run's configuration; a folder that holds another one is refused."""
    path = Path(folder) / CONFIG_FILE
    if path.exists() and load_config(folder) != config:
        raise ValueError(
            f"{folder} holds a run of another configuration ({path}): give another "
            "folder, or the same values"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write((json.dumps(dataclasses.asdict(config), indent=1) + "\n").encode())


def load_config(folder: Path | str) -> AgentConfig:
    """Read a run's configuration."""
    path = Path(folder) / CONFIG_FILE
    if not path.exists():
        raise FileNotFoundError(
            f"{path} is not there: {folder} holds no run of `jaxrig arc train`"
        )
    try:
        values: dict[str, Any] = json.loads(path.read_text())
        values["operations"] = tuple(values["operations"])
        values["ppo"] = PPOConfig(**values["ppo"])
        return AgentConfig(**values)
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is no configuration of a run: {error}") from error


def load_agent(folder: Path | str) -> tuple[Agent, Any, int]:
    """The agent of a run, its trained policy, and how many updates it had."""
    agent = make_agent(load_config(folder))
    manager = CheckpointManager(Path(folder) / "checkpoints", keep=2)
    if manager.latest() is None:
        raise FileNotFoundError(
            f"{folder} has no checkpoint yet: train it first with `jaxrig arc train`"
        )
    restored = manager.restore(agent.state)
    return agent, restored.tree.policy, restored.step


def read_metrics(folder: Path | str) -> list[dict[str, Any]]:
    """Every record of a run's metrics, oldest first."""
    path = Path(folder) / "metrics.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [_record(path, number, line) for number, line in enumerate(lines, 1)]


def _record(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{path}, line {number} is no record of metrics ({error}): remove the "
            "line, or train on, which drops it"
        ) from error
