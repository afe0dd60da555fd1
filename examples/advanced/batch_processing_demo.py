"""Batches of environments: keys, groups, shared tasks, whole episodes, scaling."""

import time

import jax
import jax.numpy as jnp
import numpy as np

from jaxarc.envs import DatasetConfig, JaxArcConfig, PointAction, UnifiedActionConfig
from jaxarc.envs.functional import arc_reset, batch_reset, batch_step
from jaxarc.tasks import create_demo_task, stack_task_list
from jaxrig import tree_bytes

config = JaxArcConfig(
    dataset=DatasetConfig(max_grid_height=10, max_grid_width=10),
    action=UnifiedActionConfig(selection_format="point"),
)
task = create_demo_task(10, 10)
key = jax.random.key(42)

print("A batch is many environments in one state")
keys = jax.random.split(key, 8)
states, observations = batch_reset(keys, config, task)
one, _ = arc_reset(keys[3], config, task)
same = np.array_equal(states.working_grid[3], one.working_grid)
print(f"  observations {observations.shape}; row 3 equals a single reset: {same}")

print("The task is shared, so memory grows with the episodes alone")
for size in (1, 256):
    states, _ = batch_reset(jax.random.split(key, size), config, task)
    shared, own = tree_bytes(states.tasks), tree_bytes(states.episode)
    print(f"  {size:5d}: {shared:6,} bytes of task, {own / size:8,.0f} an environment")

print("Several tasks at once: every key draws one, equal keys start alike")
tasks = stack_task_list([task, create_demo_task(10, 10)])
groups = jnp.repeat(jax.random.split(key, 4), 3, axis=0)  # four groups of three
states, _ = batch_reset(groups, config, tasks)
print(f"  tasks drawn: {states.episode.task_row.reshape(4, 3).tolist()}")


@jax.jit
def play(states, keys):
    """Take a random action in every environment, once for each key."""

    def turn(states, key):
        size = states.step_count.shape
        what, row, col = jax.random.split(key, 3)
        actions = PointAction(
            operation=jax.random.randint(what, size, 0, 42),
            row=jax.random.randint(row, size, 0, 10),
            col=jax.random.randint(col, size, 0, 10),
        )
        states, _, rewards, _, _ = batch_step(states, actions, config)
        return states, rewards

    return jax.lax.scan(turn, states, keys)


print("Whole episodes of random actions are one program, and large batches are fast")
turns = jax.random.split(key, 20)
rates = {}
for size in (1, 256):
    states, _ = batch_reset(jax.random.split(key, size), config, task)
    jax.block_until_ready(play(states, turns))  # compile
    begin = time.perf_counter()
    _, rewards = jax.block_until_ready(play(states, turns))
    rates[size] = size * len(turns) / (time.perf_counter() - begin)
    print(
        f"  {size:4d}: {rates[size]:12,.0f} steps per second, "
        f"{rates[size] / rates[1]:6.1f} times one; mean reward {rewards.mean():.3f}"
    )
