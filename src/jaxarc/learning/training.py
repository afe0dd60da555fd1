"""Train an agent from one configuration; keep the run in one folder."""

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax

from jaxarc.adapters.learn import LearnEnvironment
from jaxarc.envs.environment import Environment
from jaxarc.envs.starts import EnvParams
from jaxarc.learning.policy import PointPolicy
from jaxarc.ops.operations import ARCLEOperationType as Op
from jaxarc.registration import make
from jaxarc.tasks.packing import find_misfits, select_tasks, stack_tasks
from jaxarc.tasks.parsers import create_parser
from jaxarc.wrappers import (
    AnswerObservationWrapper,
    ContextualObservationWrapper,
    InputGridObservationWrapper,
)
from jaxrig.atomic import write_file
from jaxrig.checkpoint import CheckpointManager
from jaxrig.compile_guard import compile_once
from jaxrig.learn import JsonLines, PPOConfig, PPOState, ppo_init, ppo_update, train
from jaxrig.progress import Meter

PAINTING = (*range(Op.FILL_0, Op.FILL_9 + 1), int(Op.RESIZE))
CONFIG_FILE = "agent.json"


@dataclass(frozen=True)
class AgentConfig:
    """Everything that decides what an agent sees, may do and learns with.

    `answer` shows it the output of the pair it works on; `context_pairs` is the
    number of demonstrations it sees; `max_side` limits it to tasks whose grids all fit
    so many rows and columns, `tasks` to the first ones (0: all).
    """

    environment: str = "Mini-all"
    dataset_path: str = ""
    max_side: int = 0
    tasks: int = 0
    max_episode_steps: int = 50
    operations: tuple[int, ...] = PAINTING
    answer: bool = False
    context_pairs: int = 0
    augment: bool = False
    features: int = 64
    depth: int = 1
    dtype: str = "float32"  # of the convolutions; "bfloat16" halves a GPU's work
    seed: int = 0
    ppo: PPOConfig = dataclasses.field(
        default_factory=lambda: PPOConfig(
            environments=4096, steps=32, epochs=2, minibatches=8, learning_rate=1e-3
        )
    )


@dataclass(frozen=True)
class Agent:
    """An environment as the agent sees it, and a learner at its start."""

    config: AgentConfig
    env: Any
    state: PPOState

    def environment(self, episode_mode: int) -> Any:
        """Return the same tasks and channels, on demonstrations or on tests."""
        params = self.env.params
        other = EnvParams(
            params.buffer,
            params.subset_indices,
            params.config,
            episode_mode,
            params.augment and episode_mode == 0,
        )
        return eqx.tree_at(lambda e: e.unwrapped.params, self.env, other)


def make_agent(config: AgentConfig, bare: Environment | None = None) -> Agent:
    """Make the network; tasks are those of the configuration, unless given."""
    env: Any = bare or _environment(config)
    if config.answer:
        env = AnswerObservationWrapper(env)
    if config.context_pairs:
        env = InputGridObservationWrapper(env)
        env = ContextualObservationWrapper(env, config.context_pairs)
    space = env.observation_space()
    channels = space.shape[2] if len(space.shape) == 3 else 1
    keys = jax.random.split(jax.random.key(config.seed))
    # Compiled as a whole: layer by layer it is a program for every draw.
    policy = eqx.filter_jit(PointPolicy)(
        keys[0],
        channels,
        config.operations,
        config.features,
        config.depth,
        config.dtype,
    )
    state = ppo_init(keys[1], LearnEnvironment(env), policy, config.ppo)
    return Agent(config, env, state)


def train_agent(
    agent: Agent,
    updates: int,
    folder: Path | str | None = None,
    meter: Meter | None = None,
    sinks: tuple[Callable[..., None], ...] = (),
    save_every: int = 100,
) -> tuple[PPOState, list[dict[str, float]]]:
    """Train for `updates` updates; with a folder, checkpoints and metrics go there.

    A run that finds a checkpoint of the same configuration goes on from it.
    """
    environment = LearnEnvironment(agent.env)
    compiled = compile_once(ppo_update)
    manager = None
    if folder is not None:
        manager = CheckpointManager(Path(folder) / "checkpoints", keep=2)
        sinks = (JsonLines(Path(folder) / "metrics.jsonl"), *sinks)
    return train(
        lambda state: compiled(state, environment, agent.config.ppo),
        agent.state,
        updates,
        meter=meter,
        sinks=sinks,
        manager=manager,
        save_every=save_every,
        config=agent.config,
    )


def _environment(config: AgentConfig) -> Any:
    _, params = make(
        config.environment,
        dataset_path=config.dataset_path,
        episode_mode=0,
        augment=config.augment,
    )
    if config.max_side:
        params = fit_side(params, config.max_side)
    if not 0 <= config.tasks <= params.choices:
        raise ValueError(
            f"tasks is {config.tasks}: {config.environment} has {params.choices}"
        )
    limits = dataclasses.replace(
        params.config.environment, max_episode_steps=config.max_episode_steps
    )
    rules = dataclasses.replace(params.config, environment=limits)
    rows = range(config.tasks) if config.tasks else None
    return Environment(
        rules, params.buffer, 0, rows and list(rows), augment=config.augment
    )


def fit_side(params: EnvParams, side: int) -> EnvParams:
    """Return the tasks whose grids all fit `side` rows and columns, padded to these."""
    given = params.config.dataset
    height, width = min(side, given.max_grid_height), min(side, given.max_grid_width)
    dataset = dataclasses.replace(given, max_grid_height=height, max_grid_width=width)
    if dataset == given:
        return params
    parser = create_parser(given)
    misfits, here = find_misfits(parser.tasks, dataset), set(params.task_ids)
    known = enumerate(parser.tasks.ids)
    rows = [row for row, name in known if name in here and row not in misfits]
    if not rows:
        raise ValueError(
            f"no task has only grids of at most {side} x {side}: allow larger ones"
        )
    chosen = select_tasks(parser.tasks, rows)
    indices = [parser.get_task_index_for_id(name) for name in chosen.ids]
    return EnvParams.from_config(
        dataclasses.replace(params.config, dataset=dataset),
        stack_tasks(chosen, dataset, indices),
        params.episode_mode,
        augment=params.augment,
    )


def save_config(folder: Path | str, config: AgentConfig) -> None:
    """Write a run's configuration; a folder that holds another one is refused."""
    path = Path(folder) / CONFIG_FILE
    if path.exists() and load_config(folder) != config:
        raise ValueError(
            f"{folder} contains a run with a different configuration ({path}): use "
            "another folder, or the same values"
        )
    write_file(path, json.dumps(dataclasses.asdict(config), indent=1) + "\n")


def load_config(folder: Path | str) -> AgentConfig:
    """Read a run's configuration."""
    path = Path(folder) / CONFIG_FILE
    if not path.exists():
        raise FileNotFoundError(
            f"{path} does not exist: {folder} does not contain a run of `jaxrig arc "
            "train`"
        )
    try:
        values: dict[str, Any] = json.loads(path.read_text())
        values["operations"] = tuple(values["operations"])
        values["ppo"] = PPOConfig(**values["ppo"])
        return AgentConfig(**values)
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path} is not the configuration of a run: {error}"
        ) from error


def load_agent(folder: Path | str) -> tuple[Agent, Any, int]:
    """Load the agent of a run, its trained policy, and its number of updates."""
    agent = make_agent(load_config(folder))
    manager = CheckpointManager(Path(folder) / "checkpoints", keep=2)
    if manager.latest() is None:
        raise FileNotFoundError(
            f"{folder} has no checkpoint yet: train it first with `jaxrig arc train`"
        )
    restored = manager.restore(agent.state)
    return agent, restored.tree.policy, restored.step


def read_metrics(folder: Path | str) -> list[dict[str, Any]]:
    """Read every record of a run's metrics, oldest first."""
    path = Path(folder) / "metrics.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    records = []
    for number, line in enumerate(lines, 1):
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError as error:
            raise ValueError(
                f"{path}, line {number} is not a metrics record ({error}): remove the "
                "line, or continue training, which drops it"
            ) from error
    return records
