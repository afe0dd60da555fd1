"""Bytes: of states, histories, batches and files, by action format."""

from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import equinox as eqx
import jax

from jaxarc.envs import EnvironmentConfig, JaxArcConfig, UnifiedActionConfig
from jaxarc.envs.functional import arc_reset, arc_step, batch_reset
from jaxarc.envs.structured_actions import create_point_action
from jaxarc.state import ArcEnvState
from jaxarc.tasks import create_demo_task, create_jax_task_index
from jaxrig import tree_bytes

key = jax.random.key(0)
# Saved states name their task by its id, so this one needs an id.
task = create_demo_task(max_train_pairs=10, max_test_pairs=3)
task = eqx.tree_at(lambda t: t.task_index, task, create_jax_task_index("demo"))
parser = SimpleNamespace(get_task_by_id=lambda task_id: task)


def make_config(kind: str, steps: int = 1000) -> JaxArcConfig:
    """A configuration with this action format and length of an episode."""
    return JaxArcConfig(
        environment=EnvironmentConfig(max_episode_steps=steps),
        action=UnifiedActionConfig(selection_format=kind),
    )


def raw_size(state: ArcEnvState) -> int:
    """Bytes of the same state and task as plain int32 and boolean arrays."""
    height, width = task.get_grid_shape()
    slots = task.max_train_pairs + task.max_test_pairs
    task_bytes = slots * 2 * height * width * (4 + 1)
    grids = 3 * (4 + 1) + 1  # working, target and clipboard with masks; selection
    return task_bytes + height * width * grids + state.action_history.nbytes


print("The history by action format, 1000 steps of 30 x 30")
states = {}
for kind in ("point", "bbox", "mask"):
    states[kind], _ = arc_reset(key, make_config(kind), task)
    history = states[kind].action_history
    print(f"  {kind:5}: {history.shape[1]:3d} fields, {history.nbytes:9,} bytes")

print("Shorter episodes need a shorter history")
for steps in (50, 200, 1000):
    state, _ = arc_reset(key, make_config("point", steps), task)
    print(f"  {steps:4d} steps: {state.action_history.nbytes:6,} bytes")

print("One state, its task apart")
episode = states["point"].episode
used = tree_bytes(episode) - episode.action_history.nbytes
print(f"  task {tree_bytes(task):,} bytes, episode {used:,} without its history")

print("Batches share the task")
for size in (16, 256):
    batch, _ = batch_reset(jax.random.split(key, size), make_config("point", 50), task)
    print(f"  {size:4d} environments: {tree_bytes(batch):,} bytes")

print("Files hold the episode and the id of its task, 20 steps in")
with TemporaryDirectory() as folder:
    for kind, state in states.items():
        for step in range(20):
            action = create_point_action(step % 10, step, 5)
            state, *_ = arc_step(state, action, make_config(kind))
        path = state.save(Path(folder) / f"{kind}.ckpt", make_config(kind))
        size = path.stat().st_size
        loaded = ArcEnvState.load(path, parser, make_config(kind))
        print(
            f"  {kind:5}: {size:,} bytes, "
            f"{1 - size / raw_size(state):.1%} less than plain arrays; "
            f"equal when loaded: {bool(eqx.tree_equal(loaded, state))}"
        )
print("To need less: point or bbox actions, shorter episodes, smaller grids.")
