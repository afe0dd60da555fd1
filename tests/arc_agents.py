"""Folders of small tasks, agents to train on them, and players that follow a script."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from arc_samples import write_tasks
from jaxarc.actions import PointAction
from jaxarc.learning.training import PAINTING, AgentConfig
from jaxarc.ops.operations import ARCLEOperationType as Op
from jaxarc.tasks.task_json import RawTask
from jaxrig.learn import Choice, PPOConfig

TINY_PPO = PPOConfig(
    environments=4, steps=4, epochs=1, minibatches=2, learning_rate=1e-3
)
STEPS = 30  # enough for a resize and every cell of a 5x5 grid


def write_small_tasks(folder, count=3, seed=0):
    """Tasks with 1, 2, 3 and so on demonstrations and a test, none solved as given."""
    rng = np.random.default_rng(seed)

    def pair():
        shapes = rng.integers(2, 6, (2, 2))
        given = rng.integers(0, 10, shapes[0]).astype(np.int8)
        wanted = rng.integers(0, 10, shapes[1]).astype(np.int8)
        wanted[0, 0] = (given[0, 0] + 1) % 10
        return given, wanted

    tasks = [
        RawTask(f"task{index}", tuple(pair() for _ in range(index + 1)), (pair(),))
        for index in range(count)
    ]
    return write_tasks(folder, tasks)


def tiny_config(folder, **values):
    """An agent that is made and trained in little time."""
    return AgentConfig(
        **{
            "environment": "Mini-all",
            "dataset_path": str(folder),
            "max_episode_steps": STEPS,
            "features": 8,
            "depth": 0,
            "ppo": TINY_PPO,
        }
        | values
    )


class Scripted(eqx.Module):
    """A player without weights; `best` and `sample` do the same."""

    operations: tuple[int, ...] = eqx.field(static=True, default=PAINTING)

    def best(self, observation):
        raise NotImplementedError

    def sample(self, key, observation):
        return Choice(self.best(observation), jnp.zeros(()), jnp.zeros(()))


class Oracle(Scripted):
    """Reads the answer from the last channel: its size first, then cell by cell."""

    def best(self, observation):
        width = observation.shape[1]
        grid, answer = observation[..., 0], observation[..., -1]
        there = answer >= 0
        resized = jnp.all(there == (grid >= 0))
        last = there.size - 1 - jnp.argmax(there.reshape(-1)[::-1])
        wrong = jnp.argmax((grid != answer).reshape(-1))
        cell = jnp.where(resized, wrong, last).astype(jnp.int32)
        color = jnp.maximum(answer.reshape(-1)[cell], 0).astype(jnp.int32)
        operation = jnp.where(resized, color, jnp.int32(Op.RESIZE))
        return PointAction(operation, cell // width, cell % width)


class Idler(Scripted):
    """Selects a cell and changes nothing: the input is copied over itself."""

    def best(self, observation):
        zero = jnp.zeros((), jnp.int32)
        return PointAction(jnp.full((), int(Op.COPY_INPUT), jnp.int32), zero, zero)


class Submitter(Scripted):
    """Hands in what it was given."""

    def best(self, observation):
        zero = jnp.zeros((), jnp.int32)
        return PointAction(jnp.full((), int(Op.SUBMIT), jnp.int32), zero, zero)


class Wanderer(Oracle):
    """Goes to the next demonstration where the first cell is black, else paints."""

    def best(self, observation):
        paint = super().best(observation)
        leave = observation[0, 0, 0] == 0
        operation = jnp.where(leave, int(Op.SWITCH_TO_NEXT_DEMO_PAIR), paint.operation)
        return PointAction(operation.astype(jnp.int32), paint.row, paint.col)
