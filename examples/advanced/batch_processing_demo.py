"""Batches of environments: keys, groups, shared tasks, scaling, whole episodes."""

import jax
import numpy as np

from jaxarc.data import create_demo_task, stack_task_list
from jaxarc.envs import DatasetConfig, JaxArcConfig, UnifiedActionConfig
from jaxarc.envs.batching import group_keys
from jaxarc.envs.functional import (
    analyze_batch_performance,
    arc_reset,
    batch_reset,
    create_batch_episode_runner,
    create_batch_keys,
    ensure_deterministic_batch_keys,
)
from jaxrig import tree_bytes

config = JaxArcConfig(
    dataset=DatasetConfig(max_grid_height=10, max_grid_width=10),
    action=UnifiedActionConfig(selection_format="point"),
)
task = create_demo_task(10, 10)
key = jax.random.key(42)

print("A batch is many environments in one state")
keys = create_batch_keys(key, 8)
states, observations = batch_reset(keys, config, task)
one, _ = arc_reset(keys[3], config, task)
same = np.array_equal(states.working_grid[3], one.working_grid)
print(f"  observations {observations.shape}; row 3 equals a single reset: {same}")

print("The task is shared, so memory grows with the episodes alone")
for size in (1, 256):
    states, _ = batch_reset(create_batch_keys(key, size), config, task)
    shared, own = tree_bytes(states.tasks), tree_bytes(states.episode)
    print(f"  {size:5d}: {shared:6,} bytes of task, {own / size:8,.0f} an environment")

print("Several tasks at once: every key draws one, a group shares its start")
tasks = stack_task_list([task, create_demo_task(10, 10)])
states, _ = batch_reset(group_keys(key, groups=4, size=3), config, tasks)
print(f"  tasks drawn: {states.episode.task_row.reshape(4, 3).tolist()}")

print("Keys of a step depend on the key and the step alone")
again = [ensure_deterministic_batch_keys(key, 4, step) for step in (0, 0, 1)]
data = [jax.random.key_data(keys) for keys in again]
print(f"  step 0 twice: {np.array_equal(data[0], data[1])}")
print(f"  steps 0 and 1: {np.array_equal(data[0], data[2])}")

print("Whole episodes of random actions, compiled as one")
runner = create_batch_episode_runner(config, task, max_steps=20)
_, rewards, lengths = runner(create_batch_keys(key, 256), 20)
print(f"  mean reward {float(rewards.mean()):.3f}, mean length {lengths.mean():.1f}")

print("How the rate grows with the batch on this machine")
found = analyze_batch_performance(config, task, (1, 256), num_steps=20)
first = found["batch_metrics"][1]["steps_per_second"]
for size, metrics in found["batch_metrics"].items():
    rate = metrics["steps_per_second"]
    print(f"  {size:4d}: {rate:12,.0f} steps per second, {rate / first:6.1f} times one")
