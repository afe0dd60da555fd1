"""Train an agent from one configuration; keep the run in one folder."""

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from jaxarc import bits
from jaxarc.envs.environment import Environment
from jaxarc.envs.starts import EnvParams
from jaxarc.learning.policy import PointPolicy
from jaxarc.ops.operations import ARCLEOperationType as Op
from jaxarc.registration import make
from jaxarc.types import JaxArcTask
from jaxarc.wrappers import (
    AnswerObservationWrapper,
    ContextualObservationWrapper,
    InputGridObservationWrapper,
)
from jaxarc.wrappers.episodes import AnyEnvironment, refuse_resets
from jaxrig.atomic import write_file
from jaxrig.checkpoint import CheckpointManager
from jaxrig.compile_guard import compile_once
from jaxrig.learn import (
    JsonLines,
    PPOConfig,
    PPOState,
    Step,
    ppo_init,
    ppo_update,
    train,
)
from jaxrig.progress import Meter
from jaxrig.sharding import is_main, spread


class LearnEnvironment(eqx.Module):
    """A wrapped environment with the protocol of `jaxrig.learn`.

    Learners start other episodes themselves, so the environment has no `AutoReset`; its
    tasks are arrays of this pytree and hence arguments of a compiled update. Steps draw
    nothing at random and leave their key unused.
    """

    env: AnyEnvironment

    def __check_init__(self):
        refuse_resets(self.env, "learners begin other episodes themselves")

    def reset(self, key: Any) -> tuple[Any, Any]:
        """Start an episode; return its state and observation."""
        state, step = self.env.reset(key)
        return state, step.observation

    def step(self, key: Any, state: Any, action: Any) -> Step:
        """Advance by one action; return the state and what it earned."""
        after, step = self.env.step(state, action)
        return Step(
            state=after,
            observation=step.observation,
            reward=step.reward,
            terminated=step.terminated(),
            truncated=step.truncated(),
        )


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
        augment = params.augment and episode_mode == 0
        other = dataclasses.replace(params, episode_mode=episode_mode, augment=augment)
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
    mesh: Mesh | None = None,
) -> tuple[PPOState, list[dict[str, float]]]:
    """Train for `updates` updates; with a folder, checkpoints and metrics go there.

    A run that finds a checkpoint of the same configuration goes on from it. With a
    mesh, environments and minibatches are shared out over its devices.
    """
    environment = spread(LearnEnvironment(agent.env), mesh)
    compiled = compile_once(ppo_update)
    return train(
        lambda state: compiled(state, environment, agent.config.ppo, mesh),
        spread(agent.state, mesh, lambda state: state.runner),
        updates,
        meter=meter,
        save_every=save_every,
        config=agent.config,
        **keep_in(folder, sinks),
    )


def keep_in(
    folder: Path | str | None, sinks: tuple[Callable[..., None], ...] = ()
) -> dict[str, Any]:
    """Return arguments of `train` that keep checkpoints and metrics in a folder."""
    if folder is None:
        return {"sinks": sinks}
    if is_main():  # a file has one writer
        sinks = (JsonLines(Path(folder) / "metrics.jsonl"), *sinks)
    return {"manager": _checkpoints(folder), "sinks": sinks}


def _checkpoints(folder: Path | str) -> CheckpointManager:
    return CheckpointManager(Path(folder) / "checkpoints", keep=2)


def _environment(config: AgentConfig) -> Environment:
    _, params = make(
        config.environment,
        dataset_path=config.dataset_path,
        episode_mode=0,
        augment=config.augment,
        max_episode_steps=config.max_episode_steps,
    )
    if config.max_side:
        params = fit_side(params, config.max_side)
    if not 0 <= config.tasks <= params.choices:
        raise ValueError(
            f"tasks is {config.tasks}: {config.environment} has {params.choices}"
        )
    rows = jnp.arange(config.tasks, dtype=jnp.int32) if config.tasks else None
    return Environment(params=dataclasses.replace(params, subset_indices=rows))


def fit_side(params: EnvParams, side: int) -> EnvParams:
    """Return the tasks whose grids all fit `side` rows and columns, padded to these."""
    shape = [min(side, given) for given in params.buffer.get_grid_shape()]
    largest = np.asarray(params.buffer.sizes).max(axis=(1, 2))
    rows = np.flatnonzero((largest <= side).all(axis=1))
    if not rows.size:
        raise ValueError(
            f"no task has only grids of at most {side} x {side}: allow larger ones"
        )
    chosen = jax.tree.map(lambda x: jnp.asarray(np.asarray(x)[rows]), params.buffer)
    sizes = dict(zip(("max_grid_height", "max_grid_width"), shape, strict=True))
    return EnvParams.from_config(
        params.config.with_settings(**sizes),
        fit_tasks(chosen, *shape),
        params.episode_mode,
        augment=params.augment,
    )


def fit_tasks(buffer: JaxArcTask, height: int, width: int) -> JaxArcTask:
    """Return a stack of tasks padded to another shape; ValueError if one is larger."""
    if buffer.get_grid_shape() == (height, width):
        return buffer
    sizes = np.asarray(buffer.sizes)
    largest = sizes.reshape(-1, 2).max(axis=0).tolist()
    if largest[0] > height or largest[1] > width:
        raise ValueError(
            f"a grid of {largest[0]} x {largest[1]} cells: this solver reads grids of "
            f"up to {height} x {width}; train one for larger grids with `jaxrig arc "
            "train-solver`"
        )
    planes = np.asarray(buffer.pairs)[..., :height]
    room = [(0, 0)] * (planes.ndim - 1) + [(0, height - planes.shape[-1])]
    return JaxArcTask.from_packed(
        np.pad(planes, room).astype(bits.word_type(height, width)),
        sizes,
        buffer.num_train_pairs,
        buffer.num_test_pairs,
        buffer.task_index,
        width,
        buffer.max_train_pairs,
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
    manager = _checkpoints(folder)
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
