"""Keys for batches of environments, whole episodes of them, and how fast they run."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jaxarc.actions import BboxAction, MaskAction, PointAction
from jaxarc.config import JaxArcConfig
from jaxarc.envs.arguments import as_config
from jaxarc.envs.stepping import arc_step, batch_reset
from jaxarc.ops.names import NUM_OPERATIONS
from jaxarc.state import ArcEnvState, join_state, shared_tasks
from jaxarc.types import JaxArcTask
from jaxrig.dtypes import is_key
from jaxrig.timing import measure

Policy = Callable[[Any, ArcEnvState], Any]
Runner = Callable[
    [Any, int], tuple[ArcEnvState, Float[Array, " batch"], Int[Array, " batch"]]
]


def create_batch_keys(key: Any, batch_size: int) -> Any:
    """One key for every environment of a batch."""
    return jax.random.split(key, batch_size)


def split_key_for_batch_step(key: Any, batch_size: int) -> tuple[Any, Any]:
    """The key to go on with, and one for every environment of this step."""
    keys = jax.random.split(key, batch_size + 1)
    return keys[0], keys[1:]


def ensure_deterministic_batch_keys(
    key: Any, batch_size: int, step_count: Any = 0
) -> Any:
    """Keys that depend on the key and the step alone, for every environment."""
    return jax.random.split(jax.random.fold_in(key, step_count), batch_size)


def group_keys(key: Any, groups: int, size: int) -> Any:
    """Keys of `groups` x `size` environments; those of one group start alike.

    Group policies compare several attempts at the same start: rows `g * size` to
    `(g + 1) * size - 1` share the key, and so the task and the pair that it draws.
    """
    return jnp.repeat(jax.random.split(key, groups), size, axis=0)


def validate_batch_keys(keys: Any, batch_size: int) -> bool:
    """Whether these are keys, raw or typed, for a batch of this size."""
    if not isinstance(keys, jax.Array | np.ndarray):
        return False
    if is_key(keys.dtype):
        return keys.shape == (batch_size,)
    return keys.dtype == np.uint32 and keys.shape == (batch_size, 2)


def random_action(key: Any, state: ArcEnvState, config: JaxArcConfig) -> Any:
    """An operation and a selection drawn evenly, in the configured format."""
    dataset = config.dataset
    height = min(dataset.max_grid_height, state.tasks.height)
    width = min(dataset.max_grid_width, state.tasks.width)
    what, *where = jax.random.split(key, 5)
    operation = jax.random.randint(what, (), 0, NUM_OPERATIONS)
    if config.action.selection_format == "mask":
        shape = (dataset.max_grid_height, dataset.max_grid_width)
        return MaskAction(operation, jax.random.bernoulli(where[0], 0.5, shape))
    draw = lambda key, side: jax.random.randint(key, (), 0, side)
    sides = (height, width, height, width)
    corners = [draw(key, side) for key, side in zip(where, sides, strict=True)]
    if config.action.selection_format == "point":
        return PointAction(operation, *corners[:2])
    return BboxAction(operation, *corners)


def create_batch_episode_runner(
    config: Any,
    task: JaxArcTask | None = None,
    max_steps: int = 100,
    policy: Policy | None = None,
) -> Runner:
    """A compiled function `(keys, num_steps)` that runs an episode for every key.

    It gives the last states, and the summed reward and number of steps of each. A row
    that is done stays as it is. `policy(key, state)` chooses the action of one row;
    without one actions are drawn at random.
    """
    config = as_config(config)
    if policy is None:
        policy = functools.partial(random_action, config=config)
    run = functools.partial(_run_episodes, config=config, policy=policy)
    compiled = jax.jit(run, static_argnames="num_steps")

    def runner(keys: Any, num_steps: int = max_steps) -> Any:
        if not 0 <= num_steps <= max_steps:
            raise ValueError(
                f"num_steps={num_steps}: this runner was made for 0 to {max_steps}"
            )
        starts = jax.vmap(jax.random.split)(keys)
        states, _ = batch_reset(starts[:, 0], config, task)
        return compiled(starts[:, 1], states, num_steps=num_steps)

    return runner


def _run_episodes(keys, states, num_steps, config, policy):
    """Every row by itself, and all of them at once: the tasks are shared."""
    tasks, axis = shared_tasks(states)

    def one(tasks, key, episode):
        def step(carry, key):
            state, total, length = carry
            after, _, reward, _, _ = arc_step(state, policy(key, state), config)
            running = ~state.episode_done
            keep = lambda new, old: jnp.where(running, new, old)
            episode = jax.tree.map(keep, after.episode, state.episode)
            total = total + jnp.where(running, reward, 0.0)
            length = length + running.astype(jnp.int32)
            return (join_state(tasks, episode), total, length), None

        start = (join_state(tasks, episode), jnp.float32(0.0), jnp.int32(0))
        keys = jax.random.split(key, num_steps)
        (state, total, length), _ = jax.lax.scan(step, start, keys)
        return state.episode, total, length

    run = jax.vmap(one, in_axes=(axis, 0, 0))
    episodes, totals, lengths = run(tasks, keys, states.episode)
    return join_state(states.tasks, episodes), totals, lengths


def analyze_batch_performance(
    config: Any,
    task: JaxArcTask | None = None,
    batch_sizes: Sequence[int] = (1, 2, 4, 8, 16, 32),
    num_steps: int = 10,
) -> dict[str, Any]:
    """Seconds and rates of random episodes by batch size, compiling not counted."""
    if not batch_sizes or min(batch_sizes) < 1 or num_steps < 1:
        raise ValueError(
            f"batch_sizes={tuple(batch_sizes)}, num_steps={num_steps}: give sizes and "
            "steps of 1 or more"
        )
    runner = create_batch_episode_runner(config, task, num_steps)
    metrics = {size: _measure(runner, size, num_steps) for size in batch_sizes}
    best = max(metrics, key=lambda size: metrics[size]["steps_per_second"])
    return {
        "batch_metrics": metrics,
        "optimal_batch_size": best,
        "peak_throughput": metrics[best]["steps_per_second"],
    }


def _measure(runner: Runner, size: int, num_steps: int) -> dict[str, Any]:
    keys = create_batch_keys(jax.random.key(0), size)
    seconds = measure(runner, keys, num_steps, repeats=3).median
    _, rewards, lengths = runner(keys, num_steps)
    return {
        "batch_size": size,
        "total_time": seconds,
        "time_per_env": seconds / size,
        "steps_per_second": size * num_steps / seconds,
        "avg_reward": float(jnp.mean(rewards)),
        "avg_length": float(jnp.mean(lengths.astype(jnp.float32))),
    }
